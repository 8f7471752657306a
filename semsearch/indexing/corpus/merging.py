"""What becomes of the texts of an index that gets others: they are replaced, kept, or updated by their ids."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from semsearch.engine.bundle import PASSAGES, SOURCE, BundleError, CorpusInfo, find_corpus
from semsearch.indexing.corpus.corpus import ChangedRows, Corpus, OlderRows, PassageRow
from semsearch.indexing.corpus.passages import stored_columns, stored_rows
from semsearch.indexing.corpus.reading import ROW_NUMBER
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.digests import Positions, digest_texts
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.update_file import RowDigests

Mode = Literal["replace", "add", "upsert"]
MODES: dict[str, str] = {  # what each mode does, in the help of the command
    "replace": "leave out the texts of the older index that are not among the new ones.",
    "add": "keep the texts of the older index, with the new ones at the end, whose ids must be new.",
    "upsert": "keep the texts of the older index whose ids are not among the new ones.",
}


def resolve_place(data: object) -> str:
    """Return the address of texts, or their path from the root."""
    address = str(data)
    if "://" in address:
        return address
    return str(Path(address).resolve())


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


def has_texts_of(bundle: Path, place: str, name: str) -> bool:
    """Return whether a bundle has texts, which it was given from this place."""
    info = texts_of(bundle)
    return info is not None and is_same_place(bundle, info, place, name)


def count_left_out(before: RowDigests, now: RowDigests, *, has_ids: bool) -> int:
    """Return how many texts of an index have neither their id nor their text among others.

    Without has_ids, the ids of the others are row numbers, which are no ids here: another row can have the same one.
    """
    is_found = np.isin(before.texts, now.texts)
    if has_ids:
        is_found |= np.isin(before.ids, now.ids)
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
        "ones, and --upsert keeps those whose ids are not among the new ones (in Python: mode)"
    )


class Merged:
    """The texts of an index with those of a corpus.

    `add` numbers texts without an id column on, and refuses ids that exist. `upsert` puts a text in the place of the
    older one with its id, and new ones at the end.
    """

    def __init__(self, older: OlderIndex, corpus: Corpus, new: Path, mode: Mode) -> None:
        """Take the index, and the corpus, whose passages are in the file `new`.

        Raises BundleError if these texts cannot be merged.
        """
        if corpus.heading_prefix or older.manifest.corpus.heading_prefix:
            raise BundleError(
                f"{older.folder}: mode {mode} is for tables, and these are documents, whose ids are their paths in one "
                "folder; index one folder that has all of them"
            )
        if mode == "upsert" and not corpus.has_ids:
            raise BundleError(
                f"{older.folder}: mode upsert finds texts by their ids, and these have none; name a column of ids"
            )
        self._older, self._corpus, self._new, self._mode = older, corpus, new, mode

    def passages(self, on_progress: OnProgress) -> ChangedRows:
        """Yield the passages. Raises BundleError for an id that exists, if none may."""
        added, older = stored_rows(self._new), self._older
        if self._mode == "upsert":
            yield from self._upserted(list(added))
            return
        yield OlderRows(0, older.rows)
        if not self._corpus.has_ids:
            yield from _numbered(added, stored_columns(older.folder / PASSAGES)[1])
            return
        ids = stored_columns(self._new)[1]
        is_known = np.isin(digest_texts(ids), older.digests.ids)
        if is_known.any():
            found = f"the id {ids[int(is_known.argmax())]!r}, which it has already"
            raise BundleError(f"{older.folder}: mode add found {found}, expected new ids; use the mode upsert")
        yield from added

    def _upserted(self, added: list[PassageRow]) -> Iterator[PassageRow | OlderRows]:
        """Yield the older rows, or those with the same ids in their place, and then the new ones."""
        ids, older_ids = digest_texts(row.id for row in added), self._older.digests.ids
        by_id: dict[bytes, list[PassageRow]] = {}
        for id, row in zip(ids.tolist(), added, strict=True):
            by_id.setdefault(id, []).append(row)
        begin = 0
        for place in np.flatnonzero(np.isin(older_ids, ids)).tolist():
            yield OlderRows(begin, place)
            yield from by_id.pop(older_ids[place].item(), ())  # nothing for a second older row with this id
            begin = place + 1
        yield OlderRows(begin, self._older.rows)
        yield from (row for id, row in zip(ids.tolist(), added, strict=True) if id in by_id)

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written."""
        both = replace(
            self._corpus,
            texts=written.texts,
            ids=written.ids,
            metadata=written.metadata,
            older_rows=written.older_rows,
        )
        return both, ReadReport()


class Kept:
    """The texts of an index without those that have some ids, as the texts of the next index."""

    def __init__(self, bundle: Path, removed: Collection[str]) -> None:
        """Take the folder of the index, and the ids."""
        self.bundle: Path = bundle
        self._removed = frozenset(removed)

    def of(self, older: OlderIndex) -> "KeptTexts":
        """Return the texts, when the index is open. Raises BundleError if it lacks some of the ids, which it names."""
        ids, older_ids = sorted(self._removed), older.digests.ids
        is_known = np.isin(digest_texts(ids), older_ids)
        if not is_known.all():
            unknown = [id for id, known in zip(ids, is_known, strict=True) if not known]
            shown = ", ".join(map(repr, unknown[:5]))
            raise BundleError(f"{self.bundle}: found no text with the id {shown}, {len(unknown):,} in all; check them")
        return KeptTexts(older, np.flatnonzero(np.isin(older_ids, digest_texts(ids))))


@dataclass(frozen=True, slots=True)
class KeptTexts:
    """The texts of an index without some of its rows."""

    older: OlderIndex
    removed: Positions  # numbers of the rows, ascending

    def passages(self, on_progress: OnProgress) -> ChangedRows:
        """Yield the passages."""
        ends = [*self.removed.tolist(), self.older.rows]
        begins = [0, *(row + 1 for row in self.removed.tolist())]
        for begin, end in zip(begins, ends, strict=True):
            yield OlderRows(begin, end)

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written. Raises BundleError if none are left."""
        if not len(written.texts):
            raise BundleError(f"{self.older.folder}: would have no text left; delete the folder instead")
        return replace(written, heading_prefix=self.older.manifest.corpus.heading_prefix), ReadReport()


def _numbered(added: Iterator[PassageRow], known: Iterable[str]) -> Iterator[PassageRow]:
    """Yield rows whose ids are row numbers with numbers after the largest known one; passages of a row share it."""
    numbers = [int(id.partition(":")[0]) for id in known if ROW_NUMBER.fullmatch(id.partition(":")[0])]
    first = max(numbers, default=-1) + 1
    for row in added:
        number, separator, passage = row.id.partition(":")
        yield row._replace(id=f"{first + int(number)}{separator}{passage}")
