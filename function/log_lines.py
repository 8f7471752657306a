"""The line of JSON that a record becomes, as powertools writes it."""

from json import JSONEncoder
from logging import LogRecord

from aws_lambda_powertools.logging.formatter import RESERVED_LOG_ATTRS, LambdaPowertoolsFormatter

RESERVED = frozenset(RESERVED_LOG_ATTRS)  # powertools looks each of a record's thirty fields up in a list


class LineFormatter(LambdaPowertoolsFormatter):
    """Writes powertools' lines, and those of requests in a third of its time (python -m bench warm-profile).

    powertools looks for JSON in each message, for keys that the context or the logger add to each line, and for the
    place in the code. None of it is in the line of a request, so only records with an exception or with arguments go
    the long way.
    """

    def __init__(self, service: str) -> None:
        """State `service` in each line."""
        super().__init__()
        self.append_keys(service=service, location=None)
        self._service = service
        self.json_serializer = JSONEncoder(  # json.dumps would make one for each line
            default=self.json_default, indent=self.json_indent, separators=(",", ":"), ensure_ascii=False
        ).encode

    def format(self, record: LogRecord) -> str:
        """Return one line; fields that are None are left out."""
        if record.exc_info or record.args:
            return super().format(record)
        fields = {
            "level": record.levelname,
            "message": record.msg,
            "timestamp": self.formatTime(record),
            "service": self._service,
        }
        fields |= {name: value for name, value in vars(record).items() if name not in RESERVED and value is not None}
        if (trace_id := self._get_latest_trace_id()) is not None:
            fields["xray_trace_id"] = trace_id
        return self.serialize(fields)
