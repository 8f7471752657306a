"""What becomes of the texts of an index that gets others: its modes, and whether texts would be lost."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import numpy as np

from semsearch.engine.bundle import PASSAGES, SOURCE, BundleError, CorpusInfo, find_corpus
from semsearch.indexing.digests import find_digests
from semsearch.indexing.update_file import RowDigests

Mode = Literal["replace", "add", "upsert"]
MODES: dict[str, str] = {  # what each mode does, in the help of the command
    "replace": "leave out the texts of the older index that are not among the new ones.",
    "add": "keep the texts of the older index, with the new ones at the end, whose ids must be new.",
    "upsert": "keep the texts of the older index whose ids are not among the new ones.",
}


def resolve_place(paths: Iterable[str | Path]) -> str:
    """Return the address of texts, or their paths from the root, with NUL between several, in any order the same."""
    return "\0".join(sorted(each if "://" in each else str(Path(each).resolve()) for each in map(str, paths)))


def is_same_place(out: Path, info: CorpusInfo, place: str, name: str) -> bool:
    """Return whether the index in `out` was made from this place; for rows in memory, "", never.

    An index of older code has only the name of its source.
    """
    recorded = read_place(out)
    if recorded is None:
        return place != "" and info.source == name
    return place != "" and recorded == place


def read_place(bundle: Path) -> str | None:
    """Return what an index was made from, "" for rows in memory; None for an index of older code."""
    source = bundle / SOURCE
    if source.exists():
        return source.read_text(encoding="utf-8", errors="surrogateescape")
    return None


def texts_of(bundle: Path) -> CorpusInfo | None:
    """Return what a bundle says of its texts, None if it has none here, or is none."""
    if (bundle / PASSAGES).exists():
        return find_corpus(bundle)
    return None


def require_index(bundle: Path) -> None:
    """Raise BundleError if a folder has no index with texts."""
    if texts_of(bundle) is None:
        raise BundleError(f"{bundle}: holds no texts to change; name another bundle")


def has_texts_of(bundle: Path, place: str, name: str) -> bool:
    """Return whether a bundle has texts, which it was given from this place."""
    info = texts_of(bundle)
    return info is not None and is_same_place(bundle, info, place, name)


def count_left_out(before: RowDigests, now: RowDigests, *, has_ids: bool) -> int:
    """Return how many texts of an index have neither their id nor their text among others.

    Without has_ids, the ids of the others are row numbers, which are no ids here: another row can have the same one.
    """
    is_found = find_digests(before.texts, now.texts) >= 0
    if has_ids:
        is_found |= find_digests(before.ids, now.ids) >= 0
    return int(np.count_nonzero(~is_found))


def require_mode(out: Path, left_out: int, place: str, name: str) -> None:
    """Raise BundleError if texts of the index in `out` would be left out, and nobody said so.

    The source that the index was made from may leave texts out: those were removed there.
    """
    info = texts_of(out)
    if info is None or not left_out or is_same_place(out, info, place, name):
        return
    raise BundleError(
        f"{out}: has {info.rows:,} texts, of which {left_out:,} are not among the new ones and would be left out; "
        "choose another folder, or what becomes of them: --replace leaves them out, --add keeps them beside the new "
        "ones, and --upsert keeps those whose ids are not among the new ones"
    )
