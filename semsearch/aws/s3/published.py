"""How published bundles are stored: each version in a folder of its own, and a pointer that names the current one.

    bundles/<SHA-256 of manifest.json>/manifest.json, model.ort, …
    current.json    {"version": that SHA-256, "previous": the one before, or null,
                     "removed": {an id that was removed: its rows in that version, …}}
    removed.json    {"removed": [each id that the pointer has, …]}

`semsearch publish` writes this and the function reads it, so both must read a pointer alike. Only the commands read
removed.json: a pointer that gets lost would otherwise take the removed ids with it.
"""

import json
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from semsearch.engine.bundle import BundleError

S3 = "s3://"  # how the address of a published bundle begins
POINTER = "current.json"
REMOVED_IDS = "removed.json"
BUNDLES = "bundles"

_VERSION = re.compile("[0-9a-f]{64}")


def split_s3_url(url: str) -> tuple[str, str]:
    """Return bucket and prefix of s3://BUCKET/PREFIX; the prefix has no slash at its ends.

    Raises ValueError if there is no bucket, or if there is a query or a fragment.
    """
    bucket, _, prefix = url.removeprefix(S3).partition("/")
    if not url.startswith(S3) or not bucket or any(character in url for character in "?#"):
        raise ValueError(f"{url!r}, expected {S3}BUCKET/PREFIX")
    return bucket, prefix.strip("/")


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

    Raises BundleError, which begins with `where`, if it is something else.
    """
    remedy = (
        "expected an object with a version of 64 hexadecimal digits; delete the object, then run `semsearch history` "
        f"and `semsearch rollback`, which take the removed ids from {REMOVED_IDS}"
    )
    try:
        fields = json.loads(content)
        removed = {id: tuple(rows) for id, rows in fields.get("removed", {}).items()}
        pointer = Pointer(fields["version"], fields.get("previous"), removed)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BundleError(f"{where}: cannot be read ({error!r}), {remedy}") from error
    are_versions = is_version(pointer.version) and (pointer.previous is None or is_version(pointer.previous))
    if not are_versions or not all(type(row) is int and row >= 0 for rows in removed.values() for row in rows):
        raise BundleError(f"{where}: found {reprlib.repr(fields)}, {remedy}")
    return pointer
