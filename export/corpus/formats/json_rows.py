"""The rows of a file of JSON lines.

This is stricter than Python's json module, which accepts NaN and takes the last of equal keys.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from export.corpus.columns import require_names
from export.corpus.corpus import CorpusError, corpus_error
from export.corpus.formats.lines import is_gzipped, read_lines
from export.progress import OnProgress

ONE_OBJECT_A_LINE = "one whole JSON object on each line"
SHOWN = 40  # maximum characters of the file in a message


class _RefusedError(ValueError):
    """A value that the decoder refuses: what was found, what was expected, and the remedy; json_rows adds the line."""


def json_rows(path: Path, on_progress: OnProgress) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the line, from 1, and the object of each line that is not blank.

    Raises CorpusError at the first line that is not one JSON object with each key once and no key blank.
    """
    known: set[str] = set()  # keys that earlier rows have too
    for line, text in enumerate(read_lines(path, on_progress), 1):
        start = text.strip()[:SHOWN]
        if not start:
            continue
        if not start.startswith("{"):
            raise _not_an_object(path, line, start, is_first=not known)
        try:
            row = _decode(text.rstrip())
        except _RefusedError as refusal:
            raise corpus_error(path, f"line {line}", *refusal.args) from refusal
        if not row.keys() <= known:
            require_names(path, f"line {line}", row, "name it, or leave it out")
            known |= row.keys()
        yield line, row


def _not_an_object(path: Path, line: int, start: str, is_first: bool) -> CorpusError:
    """Return the error for a line that does not begin with a brace."""
    if not start.startswith("["):
        found, remedy = f"a line that starts with {start!r}", "correct that line"
    elif is_first:  # the file is one array, in one line or over many
        command = "gunzip -c FILE | jq -c '.[]'" if is_gzipped(path) else "jq -c '.[]' FILE"
        found, remedy = "a JSON array", f"convert it: {command}"
    else:
        found, remedy = "a JSON array", "write an object with a name for each value"
    return corpus_error(path, f"line {line}", found, ONE_OBJECT_A_LINE, remedy)


def _decode(row: str) -> dict[str, object]:
    """Return the object that a line holds; raises _RefusedError if it holds anything else."""
    try:
        decoded = cast(dict[str, object], _DECODER.decode(row))
        if "\\u" in row:
            compact_json(decoded).encode()  # raises UnicodeEncodeError for half of a surrogate pair
        return decoded
    except _RefusedError:
        raise
    except json.JSONDecodeError as error:
        if error.msg != "Extra data" and (error.pos >= len(row) or not row.endswith("}")):
            found = "an object that does not end on its line"
            remedy = "if it goes on in the next line, join them (jq -c . does); if not, fetch or write the file again"
            raise _RefusedError(found, ONE_OBJECT_A_LINE, remedy) from error
        found = f"broken JSON ({error.msg} at column {error.colno})"
        raise _RefusedError(found, ONE_OBJECT_A_LINE, "correct that line") from error
    except UnicodeEncodeError as error:
        found = f"\\u{ord(error.object[error.start]):04x}, half of a surrogate pair"
        raise _RefusedError(found, "both halves of the character", "correct that line") from error
    except RecursionError as error:
        found, expected = "arrays or objects nested too deeply", "some hundred levels at most"
        raise _RefusedError(found, expected, "store such a value as a string") from error
    except ValueError as error:  # raised by int(): see sys.set_int_max_str_digits for the limit
        found, expected = "a whole number of thousands of digits", "at most 4,300"
        raise _RefusedError(found, expected, "write it as a string, in quotes") from error


def _object(members: list[tuple[str, object]]) -> dict[str, object]:
    """Return the members of an object as a dict; raises _RefusedError if a key repeats, since a value would be lost."""
    decoded = dict(members)
    if len(decoded) < len(members):
        keys = [key for key, _ in members]
        repeated = next(key for key in keys if keys.count(key) > 1)
        found = f"the key {repeated!r} {keys.count(repeated)} times in one object"
        raise _RefusedError(found, "each key once", "remove or rename all but one of them")
    return decoded


def _finite(number: str) -> float:
    """Return a JSON number with a point or exponent; raises _RefusedError if it is too large for a float."""
    value = float(number)
    if math.isinf(value):
        shown = number if len(number) <= SHOWN else f"{number[:SHOWN]}..."
        raise _RefusedError(f"the number {shown}", "one below 1.8e308", "write it as a string, in quotes")
    return value


def _refuse_constant(constant: str) -> float:
    """Raise _RefusedError for NaN and Infinity, which Python would read although JSON does not have them."""
    raise _RefusedError(constant, "a number that JSON has", "write null, or leave the value out")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant)
compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
