"""How published bundles are stored: each version in a folder of its own, and a pointer that names the current one.

    bundles/<SHA-256 of manifest.json>/manifest.json, model.ort, …
    current.json    {"version": that SHA-256, "previous": the one before, or null,
                     "removed": {an id that was removed: its rows in that version, …}}

The export writes this and the function reads it, so both must read a pointer alike.
"""

import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from function.engine.bundle import BundleError

POINTER = "current.json"
BUNDLES = "bundles"
# Seconds of a start in Lambda within which the files must arrive, from the first line of the handler on. Lambda stops a
# start after 10 seconds; the remaining two are for the app, and for Lambda's own work before that line.
START_SECONDS = 8.0
LARGEST_DOCUMENT = 16 * 1024 * 1024  # bytes of a pointer or a manifest

_VERSION = re.compile("[0-9a-f]{64}")
_EXPECTED = "64 hexadecimal digits in lower case"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The current version, the one that was current before, and the ids that were removed without a new bundle.

    removed has the rows of each id in the current version: none for an id that the version lacks.
    """

    version: str
    previous: str | None
    removed: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def removed_rows(self) -> tuple[int, ...]:
        """Return the rows of all removed ids, ascending."""
        return tuple(sorted(chain.from_iterable(self.removed.values())))


def is_version(text: object) -> bool:
    """Return whether this can be the name of a version: a SHA-256 as `publish` writes it."""
    return isinstance(text, str) and _VERSION.fullmatch(text) is not None


def parse_pointer(content: bytes, where: str) -> Pointer:
    """Return the pointer that an object holds. Unknown fields are ignored, and `previous` and `removed` may be missing.

    Raises BundleError, which begins with `where`, if it is no JSON object, names something that is no version, or if
    the removed ids are damaged.
    """
    try:
        fields = json.loads(content, object_pairs_hook=_without_repetitions)
    except (ValueError, RecursionError) as error:  # ValueError: also wrong UTF-8, and numbers of thousands of digits
        raise _refusal(where, f"cannot be read ({error})", "a JSON object") from error
    if not isinstance(fields, dict):
        raise _refusal(where, f"found {reprlib.repr(fields)}", "a JSON object")
    version, previous = fields.get("version"), fields.get("previous")
    if not isinstance(version, str) or not is_version(version):
        raise _refusal(where, f"version is {reprlib.repr(version)}", _EXPECTED)
    if previous is not None and not is_version(previous):
        raise _refusal(where, f"previous is {reprlib.repr(previous)}", f"null or {_EXPECTED}")
    removed = fields.get("removed", {})
    if not (isinstance(removed, dict) and all(map(_is_rows, removed.values()))):
        raise _refusal(where, f"removed is {reprlib.repr(removed)}", "the list of the rows of each id")
    return Pointer(version, previous, {id: tuple(rows) for id, rows in removed.items()})


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and all(type(row) is int and row >= 0 for row in value)


def _without_repetitions(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object. Raises ValueError if it has a name twice, of which each reader might take another one."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name occurs twice")
    return fields


def _refusal(where: str, found: str, expected: str) -> BundleError:
    return BundleError(f"{where}: {found}, expected {expected}; delete the object and publish again")
