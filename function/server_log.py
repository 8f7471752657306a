"""The server's log: the lines that the function writes in Lambda, made in a fifth of the time, and counted."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from function.telemetry import Log

CountRequest = Callable[[Mapping[str, Any]], None]  # takes the fields of a request's line


class ServerLog:
    """Writes each line of information by itself, and leaves exceptions to the function's logger."""

    def __init__(self, logger: Log, service: str, count_request: CountRequest) -> None:
        """Write to standard output, one line at a time, so that the lines of several processes do not mix."""
        self._logger = logger
        self._service = service
        self._count_request = count_request
        self._output = sys.stdout.fileno()

    def info(self, msg: object, *, extra: Mapping[str, Any]) -> None:
        """Write one line of JSON with further fields; a request's line is counted."""
        fields = {"level": "INFO", "message": msg, "timestamp": _timestamp(), "service": self._service, **extra}
        os.write(self._output, json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        if "status" in extra:
            self._count_request(extra)

    def exception(self, msg: object, *, extra: Mapping[str, Any]) -> None:
        """Write one line with further fields and the trace of the exception that is being handled."""
        self._logger.exception(msg, extra=extra)


def _timestamp() -> str:
    """Return the time as the function's logger writes it, such as "2026-11-22 06:08:30,950+0000"."""
    now = time.time()
    seconds = time.localtime(now)
    return time.strftime("%Y-%m-%d %H:%M:%S", seconds) + f",{int(now % 1 * 1000):03}" + time.strftime("%z", seconds)
