"""The rows of the next index, planned from those of the older one and of corpora that are added: `RowPlan`."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from semsearch.engine.bundle import COLUMNS, PASSAGES, BundleError
from semsearch.engine.metadata.columns import Columns
from semsearch.engine.tensors import Array
from semsearch.indexing.corpus.corpus import ChangedRows, Corpus, OlderRows, PassageRow
from semsearch.indexing.corpus.passages import passages_at, stored_columns
from semsearch.indexing.corpus.reading import ROW_NUMBER, SPLIT_COLUMNS
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.digests import Digests, Positions, digest_texts, find_digests
from semsearch.indexing.modes import Mode
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.progress import OnProgress


class RowPlan:
    """The rows of the next index: rows of the older one, at their places, and rows of corpora that were added.

    Nothing is written: `passages` yields them.
    """

    def __init__(self, older: OlderIndex, *, is_split: bool) -> None:
        """Take the older index, all of whose rows stay until one is replaced or removed.

        is_split: whether long texts are divided. The passages of a text are then replaced and removed together.
        """
        self.older: OlderIndex = older
        self._is_split = is_split or bool(older.manifest.corpus.options.get("split"))
        self._added: list[Corpus] = []
        # the rows of the next index: those of the older one, and after their numbers those of all corpora, joined
        self._places: Positions = np.arange(older.rows)
        self._ids: Digests = older.digests.ids
        self._text_ids = self._digest_text_ids(older.corpus(), self._ids)

    @property
    def places(self) -> Positions:
        """Return the row of the older index that each row is, (rows,).

        The numbers of the rows of all corpora that were added, joined, follow those of the older index.
        """
        return self._places

    @property
    def has_added(self) -> bool:
        """Whether rows of other corpora were added."""
        return bool(self._added)

    def merge(self, corpus: Corpus, mode: Mode) -> None:
        """Add the rows of a corpus, whose passages are in a file that stays.

        `add` numbers texts without an id column on, and refuses ids that exist. `upsert` puts a text in the place of
        the older one with its id, and new ones at the end. Raises BundleError if these texts cannot be merged.
        """
        folder = self.older.folder
        self.require_tables(mode, are_documents=corpus.heading_prefix)
        if mode == "upsert" and not corpus.has_ids:
            raise BundleError(
                f"{folder}: mode upsert finds texts by their ids, and these have none; name a column of ids, or if the "
                "ids are labels of a DataFrame, also those of an older index, state id_column='index' or name its index"
            )
        if not corpus.has_ids:
            corpus = replace(corpus, ids=_numbered(corpus.ids, self._all_ids()))
        ids = digest_texts(corpus.ids)
        text_ids = self._digest_text_ids(corpus, ids)
        first = find_digests(text_ids, self._text_ids)
        if mode == "add" and (first >= 0).any():
            found = f"the id {corpus.ids[int((first >= 0).argmax())]!r}, which it has already"
            raise BundleError(f"{folder}: mode add found {found}, expected new ids; use the mode upsert")
        stays = ~np.isin(self._text_ids, text_ids)
        number = self.older.rows + sum(len(each.texts) for each in self._added)
        # a row replaces the first older row with its id, at its place; rows with new ids come at the end
        order = np.concatenate([np.flatnonzero(stays), np.where(first < 0, len(self._ids), first)])
        order = np.argsort(order, kind="stable")
        self._places = np.concatenate([self._places[stays], number + np.arange(len(ids))])[order]
        self._ids = np.concatenate([self._ids[stays], ids])[order]
        self._text_ids = np.concatenate([self._text_ids[stays], text_ids])[order]
        self._added.append(corpus)

    def require_tables(self, mode: Mode, *, are_documents: bool) -> None:
        """Raise BundleError if texts of the index, or the ones that are merged into it, are documents."""
        if are_documents or self.older.manifest.corpus.heading_prefix:
            raise BundleError(
                f"{self.older.folder}: mode {mode} is for tables, and these are documents, whose ids are their paths "
                "in one folder; index one folder that has all of them"
            )

    def remove(self, ids: Iterable[str], older: Array[np.bool_] | None = None) -> None:
        """Remove the rows with these ids, which are those of passages or of texts, and some of the older index.

        older says for each row of the older index whether it is removed.

        Raises BundleError, which names them, if some are unknown.
        """
        listed = sorted(set(ids))
        wanted = digest_texts(listed)
        is_known = np.isin(wanted, self._ids) | np.isin(wanted, self._text_ids)
        if not is_known.all():
            unknown = [id for id, known in zip(listed, is_known, strict=True) if not known]
            shown = ", ".join(map(repr, unknown[:5]))
            raise BundleError(
                f"{self.older.folder}: found no text with the id {shown}, {len(unknown):,} in all; check them"
            )
        stays = ~(np.isin(self._ids, wanted) | np.isin(self._text_ids, wanted))
        if older is not None:
            stays &= ~np.append(older, False)[np.minimum(self._places, self.older.rows)]
        self._places, self._ids, self._text_ids = self._places[stays], self._ids[stays], self._text_ids[stays]

    def _digest_text_ids(self, corpus: Corpus, ids: Digests) -> Digests:
        """Return the digest of the id of each row's text: a passage of a divided text has it in its metadata."""
        if not self._is_split:
            return ids
        metadata = map(json.loads, corpus.metadata)
        return digest_texts(values.get(SPLIT_COLUMNS[0], id) for values, id in zip(metadata, corpus.ids, strict=True))

    def passages(self, on_progress: OnProgress) -> ChangedRows:
        """Yield the passages of the next index."""
        is_older = self._places < self.older.rows
        # a run ends where the next row is not the next one of the same corpus
        ends = np.flatnonzero((np.diff(self._places) != 1) | np.diff(is_older)) + 1
        for run in np.split(self._places, ends):
            if not len(run):
                continue
            if run[0] < self.older.rows:
                yield OlderRows(int(run[0]), int(run[-1]) + 1)
            else:
                yield from self._added_rows(run - self.older.rows)

    def _added_rows(self, rows: Positions) -> Iterator[PassageRow]:
        for corpus in self._added:
            here = rows[(rows >= 0) & (rows < len(corpus.texts))]
            yield from passages_at(corpus, here)
            rows = rows - len(corpus.texts)

    def _all_ids(self) -> Iterator[str]:
        yield from stored_columns(self.older.folder / PASSAGES)[1]
        for corpus in self._added:
            yield from corpus.ids

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written. Raises BundleError if none are left."""
        if not len(written.texts):
            raise BundleError(f"{self.older.folder}: would have no text left; delete the folder instead")
        before = self.older.manifest.corpus
        has_prefixes = before.heading_prefix
        report = ReadReport(of_site={"language": self._languages()} if has_prefixes else {})
        return replace(written, heading_prefix=has_prefixes, other_suffixes=before.other_suffixes), report

    def _languages(self) -> tuple[str, ...]:
        """Return the languages of the documents that are left."""
        info = self.older.manifest.corpus
        if info.columns.get("language") != "string":
            return ()
        column = Columns(self.older.folder / COLUMNS, info.columns, info.rows)["language"]
        assert column.codes is not None  # strings have a dictionary
        codes = np.unique(column.codes[self._places[column.exists()[self._places]]])
        return tuple(map(column.string, codes.tolist()))


def _numbered(ids: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return row numbers with numbers after the largest known one; the passages of a row share its number."""
    numbers = [int(id.partition(":")[0]) for id in known if ROW_NUMBER.fullmatch(id.partition(":")[0])]
    first = max(numbers, default=-1) + 1
    split = (id.partition(":") for id in ids)
    return [f"{first + int(number)}{separator}{passage}" for number, separator, passage in split]
