"""How published bundles are stored: each version in a folder of its own, and a pointer that names the current one.

    bundles/<SHA-256 of manifest.json>/manifest.json, model.ort, …
    current.json    {"version": that SHA-256, "previous": the one before, or null}

The export writes this and the function reads it, so both must read a pointer alike.
"""

import json
import re
import reprlib
from dataclasses import dataclass

from function.engine.bundle import BundleError

POINTER = "current.json"
BUNDLES = "bundles"
# Seconds of a start in Lambda within which the files must arrive, from the first line of the handler on. Lambda stops a
# start after 10 seconds; the other two are for the app, and for what Lambda does before.
START_SECONDS = 8.0
LARGEST_DOCUMENT = 16 * 1024 * 1024  # bytes of a pointer or a manifest

_VERSION = re.compile("[0-9a-f]{64}")
_EXPECTED = "64 hexadecimal digits in lower case"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The current version, and the one that was current before."""

    version: str
    previous: str | None


def is_version(text: object) -> bool:
    """Return whether this can be the name of a version: a SHA-256 as `publish` writes it."""
    return isinstance(text, str) and _VERSION.fullmatch(text) is not None


def parse_pointer(content: bytes, where: str) -> Pointer:
    """Return the pointer that an object holds. Unknown fields are ignored, and `previous` may be missing.

    Raises BundleError, which begins with `where`, if it is no JSON object or names something that is no version.
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
    return Pointer(version, previous)


def _without_repetitions(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object. Raises ValueError if it has a name twice, of which each reader might take another one."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name occurs twice")
    return fields


def _refusal(where: str, found: str, expected: str) -> BundleError:
    return BundleError(f"{where}: {found}, expected {expected}; delete the object and publish again")
