"""The rows of a file of JSON lines."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from export.corpus.corpus import corpus_error
from export.corpus.lines import read_lines


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the line, from 1, and the object of each line; raises CorpusError at the first that holds none."""
    for line, text in enumerate(read_lines(path), 1):
        start = text.strip()[:40]
        if not start:
            continue
        if not start.startswith("{"):
            remedy = "write one object per line; for an array: jq -c '.[]' FILE"
            raise corpus_error(path, f"line {line}", repr(start), "a JSON object on each line", remedy)
        try:
            row = cast(dict[str, object], _DECODER.decode(text.rstrip()))
            if "\\u" in text:
                compact_json(row).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError) as error:
            reason = str(error)
            if isinstance(error, json.JSONDecodeError):
                reason = f"{error.msg} at column {error.colno}"
            found = f"broken JSON ({reason})"
            raise corpus_error(
                path, f"line {line}", found, "one whole object on the line", "correct that line"
            ) from error
        yield line, row


def _finite(number: str) -> float:
    """Read a JSON number with a point or exponent; raises ValueError if it is too large for a float."""
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number} is too large")
    return value


def _refuse(constant: str) -> float:
    """Raise ValueError for NaN and Infinity, which Python would read although JSON has none."""
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
