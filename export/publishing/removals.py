"""Remove texts of the current version in S3 without a new bundle: the pointer lists their ids, and functions skip them.

The pointer has the rows of each removed id in the version that it names, so that a function needs no search for them.
They are looked up here whenever the pointer is written: from the ids in that version's passages.safetensors, of which
only the ids are read. Removed ids stay in the pointer until they are restored, so neither an old file of texts nor a
rollback brings a text back.
"""

import json
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from export.publishing.bucket import Bucket
from export.publishing.client import PublishError
from function.engine.arrays import Array
from function.engine.bundle import MANIFEST, PASSAGES, parse_manifest
from function.engine.metadata.ids import IdColumn
from function.engine.published import BUNDLES

MOST_REMOVED = 10_000  # ids: with their rows some 300 KB, which every function reads whenever the pointer changes
SHOWN = 5  # maximum ids that a message names

Removed = Mapping[str, tuple[int, ...]]


def find_rows(bucket: Bucket, version: str, ids: Collection[str]) -> Removed:
    """Return the rows of each id in a version: none for an id that the version lacks. Raises PublishError.

    Without ids, nothing is read. A version whose texts are in S3 Vectors has no rows.
    """
    if not ids:
        return {}
    content, offsets = _read_ids(bucket, version)
    wanted = [id.encode("utf-8", "surrogatepass") for id in ids]
    rows_of: dict[bytes, list[int]] = {id: [] for id in wanted}
    for row in np.flatnonzero(IdColumn(content, offsets).equals_any(wanted)).tolist():
        rows_of[content[int(offsets[row]) : int(offsets[row + 1])].tobytes()].append(row)
    return {id: tuple(rows_of[encoded]) for id, encoded in zip(ids, wanted, strict=True)}


def add_ids(removed: Removed, ids: Sequence[str], where: str) -> list[str]:
    """Return the removed ids together with these, without repetitions. Raises PublishError if they are too many."""
    found = list(dict.fromkeys([*removed, *ids]))
    if len(found) > MOST_REMOVED:
        raise PublishError(
            f"{where}: {len(found):,} ids would be removed, expected at most {MOST_REMOVED:,}; publish a bundle "
            "without their texts, then restore these ids"
        )
    return found


def drop_ids(removed: Removed, ids: Sequence[str], where: str) -> list[str]:
    """Return the removed ids without these. Raises PublishError if one of them is not removed."""
    if missing := [id for id in ids if id not in removed]:
        raise PublishError(f"{where}: {name_ids(missing)} not removed, expected removed ids; `history` lists them")
    return [id for id in removed if id not in set(ids)]


def require_rows(removed: Removed, ids: Sequence[str], where: str) -> None:
    """Raise PublishError unless each of the ids has a row."""
    if unknown := [id for id in ids if not removed[id]]:
        raise PublishError(
            f"{where}: {name_ids(unknown)} not in the current version, expected ids of its texts; nothing was removed"
        )


def name_ids(ids: Sequence[str]) -> str:
    """Return the first of some ids for a message, and a verb: "'a' and 3 more are"."""
    shown = ", ".join(repr(id) for id in ids[:SHOWN])
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return f"{shown}{more} {'is' if len(ids) == 1 else 'are'}"


def _read_ids(bucket: Bucket, version: str) -> tuple[Array[np.uint8], Array[np.uint64]]:
    """Return the ids of a version as UTF-8 (n,) and offsets (rows + 1,). function/engine/tensors.py has the format."""
    folder = f"{BUNDLES}/{version}"
    where, advice = f"{bucket.url}/{folder}", "publish its bundle again"
    found = bucket.read(f"{folder}/{MANIFEST}")
    if found is None:
        raise PublishError(f"{where}/{MANIFEST}: is missing; {advice}")
    info = parse_manifest(found[0], f"{where}/{MANIFEST}").index
    if info is None or info.vectors is not None:
        return np.empty(0, np.uint8), np.zeros(1, np.uint64)
    name = f"{folder}/{PASSAGES}"
    try:
        begin = 8 + int.from_bytes(bucket.read_part(name, 0, 8), "little")
        header = json.loads(bucket.read_part(name, 8, begin - 8))
        parts = []
        for column in ("ids", "ids.offsets"):
            first, last = header[column]["data_offsets"]
            parts.append(bucket.read_part(name, begin + first, last - first))
        return np.frombuffer(parts[0], np.uint8), np.frombuffer(parts[1], np.uint64)
    except (ValueError, KeyError, TypeError) as error:
        raise PublishError(f"{where}/{PASSAGES}: cannot be read ({error}); {advice}") from error
