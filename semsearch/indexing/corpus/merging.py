"""What becomes of the texts of an index that gets others: they are replaced, kept, or updated by their ids."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from semsearch.engine.bundle import PASSAGES, SOURCE, BundleError, CorpusInfo, find_corpus, read_manifest
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.corpus.corpus import Corpus, PassageRow, PassageRows
from semsearch.indexing.corpus.passages import stored_columns, stored_rows
from semsearch.indexing.corpus.reading import ROW_NUMBER
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.digests import digest_texts
from semsearch.indexing.progress import OnProgress

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


def count_left_out(bundle: Path, corpus: Corpus) -> int:
    """Return how many texts of a bundle, if it has any, have neither their id nor their text in a corpus.

    Row numbers are no ids here: another row can have the same one.
    """
    if texts_of(bundle) is None:
        return 0
    try:
        texts, ids, _ = stored_columns(bundle / PASSAGES)
    except TensorsError:  # `index` warns of a damaged index
        return 0
    new_ids, new_texts = set[str](), set(digest_texts(corpus.texts).tolist())
    if corpus.has_ids:
        new_ids = set(corpus.ids)
    pairs = zip(ids, digest_texts(texts).tolist(), strict=True)
    return sum(id not in new_ids and text not in new_texts for id, text in pairs)


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

    def __init__(self, older: Path, corpus: Corpus, new: Path, mode: Mode) -> None:
        """Take the index, and the corpus, whose passages are in the file `new`.

        Raises BundleError if these texts cannot be merged.
        """
        info = texts_of(older)
        if corpus.heading_prefix or (info is not None and info.heading_prefix):
            raise BundleError(
                f"{older}: mode {mode} is for tables, and these are documents, whose ids are their paths in one "
                "folder; index one folder that has all of them"
            )
        if mode == "upsert" and not corpus.has_ids:
            raise BundleError(
                f"{older}: mode upsert finds texts by their ids, and these have none; name a column of ids"
            )
        self._older, self._corpus, self._new, self._mode = older, corpus, new, mode

    def passages(self, on_progress: OnProgress) -> PassageRows:
        """Yield the passages. Raises BundleError for an id that exists, if none may."""
        before, added = stored_rows(self._older / PASSAGES), stored_rows(self._new)
        if self._mode == "upsert":
            yield from _upserted(before, list(added))
            return
        yield from before
        known = set(stored_columns(self._older / PASSAGES)[1])
        for passage in added if self._corpus.has_ids else _numbered(added, known):
            if passage.id in known:
                found = f"the id {passage.id!r}, which it has already"
                raise BundleError(f"{self._older}: mode add found {found}, expected new ids; use the mode upsert")
            yield passage

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written."""
        corpus = self._corpus
        texts, ids, metadata, facts = written.texts, written.ids, written.metadata, written.facts
        return replace(corpus, texts=texts, ids=ids, metadata=metadata, facts=facts), ReadReport()


class Kept:
    """The texts of an index without those that have some ids, as the texts of the next index."""

    def __init__(self, bundle: Path, removed: Collection[str]) -> None:
        """Take the index and the ids."""
        self.bundle: Path = bundle
        self._removed = frozenset(removed)

    def passages(self, on_progress: OnProgress) -> PassageRows:
        """Yield the passages. Raises BundleError, which names them, if the index lacks some of the ids."""
        if texts_of(self.bundle) is None:
            raise BundleError(f"{self.bundle}: holds no texts to remove; name another bundle")
        if unknown := sorted(self._removed - set(stored_columns(self.bundle / PASSAGES)[1])):
            shown = ", ".join(map(repr, unknown[:5]))
            raise BundleError(f"{self.bundle}: found no text with the id {shown}, {len(unknown):,} in all; check them")
        for passage in stored_rows(self.bundle / PASSAGES):
            if passage.id not in self._removed:
                yield passage

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written. Raises BundleError if none are left."""
        if not len(written.texts):
            raise BundleError(f"{self.bundle}: would have no text left; delete the folder instead")
        return replace(written, heading_prefix=read_manifest(self.bundle).corpus.heading_prefix), ReadReport()


def _upserted(before: Iterator[PassageRow], added: list[PassageRow]) -> Iterator[PassageRow]:
    """Yield the older rows, or those with the same ids in their place, and then the new ones."""
    by_id: dict[str, list[PassageRow]] = {}
    for row in added:
        by_id.setdefault(row.id, []).append(row)
    replaced = set[str]()
    for row in before:
        if row.id not in by_id:
            yield row
        elif row.id not in replaced:
            replaced.add(row.id)
            yield from by_id[row.id]
    for row in added:
        if row.id not in replaced:
            yield row


def _numbered(added: Iterator[PassageRow], known: set[str]) -> Iterator[PassageRow]:
    """Yield rows whose ids are row numbers with numbers after the largest known one; passages of a row share it."""
    numbers = [int(id.partition(":")[0]) for id in known if ROW_NUMBER.fullmatch(id.partition(":")[0])]
    first = max(numbers, default=-1) + 1
    for row in added:
        number, separator, passage = row.id.partition(":")
        yield row._replace(id=f"{first + int(number)}{separator}{passage}")
