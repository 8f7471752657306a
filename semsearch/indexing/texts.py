"""The texts of an index: where they are, and `write_corpus`, through which all of them pass on their way into it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from semsearch.engine.bundle import PASSAGES, SOURCE, TOKENIZER, Manifest, ModelInfo
from semsearch.engine.embedder import Embedder
from semsearch.engine.errors import OptionError
from semsearch.engine.tensors import AnyArray
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.column_choice import NO_TYPES, ColumnOptions, choose_columns
from semsearch.indexing.columns import require_same_types, store_numbers
from semsearch.indexing.corpus import Corpus, Table, corpus_place, fetching_corpus
from semsearch.indexing.corpus.columns import TableOptions
from semsearch.indexing.corpus.corpus import READ, ChangedRows, corpus_error
from semsearch.indexing.corpus.formats import parquet_reader
from semsearch.indexing.corpus.passages import stored_columns, stored_sources, writing_passages
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.corpus.rows import TableReader, read_rows
from semsearch.indexing.digests import Positions
from semsearch.indexing.documents.folder import Documents, is_documents
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import DocumentOptions, Reading
from semsearch.indexing.documents.recipe import key_of_readings
from semsearch.indexing.documents.several import SeveralDocuments, paths_in
from semsearch.indexing.facts import read_facts
from semsearch.indexing.folder_names import name_folders
from semsearch.indexing.modes import Mode, has_texts_of, read_place, resolve_place
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.row_changes import RowChanges, facts_of, find_changes
from semsearch.indexing.row_plan import RowPlan
from semsearch.indexing.update_file import kept_records, records_tensors
from semsearch.indexing.vectors.given import embedding_column, known_embeddings, read_embeddings
from semsearch.indexing.vectors.shards import KnownRows
from semsearch.indexing.walking import as_text

ROWS_IN_MEMORY = "rows"  # what rows in memory are called
NEW = "new.safetensors"  # the new passages, while those of both indexes are written


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How texts are read. The options of `index` of these names explain the fields."""

    split: bool
    passage_tokens: int
    overlap: int
    embeddings: Any
    embedded_by: str | None
    table: TableOptions
    documents: DocumentOptions
    columns: ColumnOptions


class TextSource(Protocol):
    """What passages are read from: a table, documents, rows in memory, or an older index."""

    def passages(self, on_progress: OnProgress) -> ChangedRows:
        """Yield the passages: new ones, and rows of the older index that stay."""

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the written passages with what the source knows of them, and a report of what was counted."""


@dataclass(frozen=True, slots=True)
class ReadTexts:
    """The texts of an index in a file, with the types of their columns; what was counted, and what has changed."""

    corpus: Corpus
    report: ReadReport
    changes: RowChanges
    kept: Mapping[str, AnyArray]  # what an update needs of the source: see update_file.py


def write_corpus(
    source: TextSource, passages: Path, on_progress: OnProgress = no_progress, *, older: Path | None = None
) -> tuple[Corpus, ReadReport]:
    """Write the texts of a source into `passages`, and return them, with what was counted.

    All texts of an index pass here: those of tables, documents, rows in memory and older indexes. They are written
    while they are read, and the returned corpus reads them from the file. older is the index whose rows the source can
    take.
    Raises what the source raises.
    """
    before = None if older is None else older / PASSAGES
    with writing_passages(passages, before) as written, closing(source.passages(on_progress)) as rows:
        for passage in rows:
            written.append(passage)
    return source.describe(in_file(Corpus((), (), (), older_rows=written.older_rows()), passages))


def in_file(corpus: Corpus, passages: Path) -> Corpus:
    """Return a corpus whose passages are in this file."""
    texts, ids, metadata = stored_columns(passages)
    return replace(corpus, texts=texts, ids=ids, metadata=metadata, sources=stored_sources(passages))


@dataclass(frozen=True, slots=True)
class Texts:
    """Where the texts are: a path on this machine, rows in memory or the plan of an update; and their name."""

    path: Path
    name: str
    place: str = ""  # path or address of the texts; "" for rows in memory
    rows: TableReader | None = None  # rows in memory, or a table of which a column is left out
    plan: RowPlan | None = None  # rows of the older index and new ones
    are_documents: bool = False
    folders: Mapping[str, Path] = field(default_factory=dict)  # several folders of documents, by their names
    embeddings: AnyArray | None = None  # those that the caller has of a table
    given: Sequence[KnownRows] = ()  # those that the caller has of the rows that a plan adds

    def need_splitter(self, options: TextOptions) -> bool:
        """Return whether the texts become passages, which the tokenizer of the model measures."""
        return self.are_documents or options.split

    def given_rows(
        self, corpus: Corpus, report: ReadReport, model: ModelInfo, embedder: Embedder | None
    ) -> Sequence[KnownRows]:
        """Return the rows of the texts whose embeddings the caller has.

        embedder has the model of the index, None if it is elsewhere.
        """
        if self.embeddings is None:
            return self.given
        return [known_embeddings(self.embeddings, corpus, report.empty_texts, model, embedder)]

    def source(self, options: TextOptions, splitter: Splitter | None, older: OlderIndex | None) -> TextSource:
        """Return what the texts are read from.

        splitter divides documents, and long texts of a table if there is one. Documents of which the index `older` has
        the passages are not read again, and those that cannot be read keep theirs, if it was made of the same folder.
        """
        if self.plan is not None:
            return self.plan
        if not self.are_documents:
            return Table(self.path, options.table, rows=self.rows, split=None if splitter is None else splitter.split)
        assert splitter is not None  # see `need_splitter`
        reading, describe = Reading(splitter, options.documents), options.documents.describe
        readings = [
            (path, replace(reading, folder=name, about=describe.get(as_text(name), "")))
            for name, path in self.folders.items()
        ]
        readings = readings or [(self.path, reading)]
        kept_in, records = None, None
        is_older = older is not None and older.manifest.corpus.heading_prefix
        if older is not None and is_older and has_texts_of(older.folder, self.place, self.name):
            kept_in, records = older.folder, kept_records(older.kept, key_of_readings(readings))
        if self.folders:
            return SeveralDocuments(readings, kept_in, records)
        return Documents(self.path, reading, kept_in, records)


def texts_of_plan(plan: RowPlan, given: Sequence[KnownRows]) -> Texts:
    """Return the rows of the next index as its texts, with the name and the place of those of the older one.

    given are the embeddings of the rows that were added, in an index without a model.
    The place is "" if texts from elsewhere were added: a later run must then state a mode.
    """
    name, place = plan.older.manifest.corpus.source, read_place(plan.older.folder) or ""
    return Texts(Path(name), name, "" if plan.has_added else place, plan=plan, given=given)


@contextmanager
def opening_texts(data: Any, options: TextOptions) -> Iterator[Texts]:
    """Yield the place of the texts that `index` takes as its first argument. Copies are deleted at the end.

    Raises CorpusError if an address in S3 cannot be read, or if documents have the options of a table, and OptionError
    for embeddings of documents.
    """
    paths = paths_in(data)
    if len(paths) > 1:
        folders = name_folders(paths)
        name = as_text(", ".join(folders))
        texts = Texts(Path(name), name, resolve_place(paths), are_documents=True, folders=folders)
        _refuse_for_documents(texts, options)
        yield texts
    elif paths:
        path = corpus_place(str(paths[0]))
        with fetching_corpus(path) as here:
            texts = Texts(here, as_text(path.name), resolve_place(paths), are_documents=_are_documents(here, options))
            _refuse_for_documents(texts, options)
            yield _with_embeddings(texts, options.embeddings)
    else:
        rows = read_rows(data, options.table.id_column)
        texts = Texts(Path(ROWS_IN_MEMORY), ROWS_IN_MEMORY, rows=rows)
        yield _with_embeddings(texts, options.embeddings)


def _are_documents(path: Path, options: TextOptions) -> bool:
    """Return whether the path is a document or has one."""
    table = options.table
    return is_documents(
        path, ignore=table.ignore, follow_symlinks=table.follow_symlinks, include=options.documents.include
    )


def _refuse_for_documents(texts: Texts, options: TextOptions) -> None:
    """Raise CorpusError or OptionError for documents with an option of tables, and for what one folder has not."""
    table, describe = options.table, options.documents.describe
    names = [*map(as_text, texts.folders)]
    if unknown := describe.keys() - names:
        found = f"found {min(unknown)}, which the updated index can have recorded"
        expected = f"one of {', '.join(names)}" if names else "several folders"
        remedy = "state what each has again, or --describe '' for none"
        raise OptionError("describe", f"{found}, expected {expected}; {remedy}")
    if not texts.are_documents:
        return
    if table.text_column is not None or table.id_column is not None:
        found = "documents, and the option text_column or id_column, which the updated index can have recorded"
        remedy = "choose another folder with --out, or leave the columns out: --text-column '' --id-column ''"
        raise corpus_error(texts.path, None, found, "tables with these columns", remedy)
    for name, value in (("embedded_by", options.embedded_by), ("embeddings", options.embeddings)):
        if value is not None:
            raise OptionError(name, "is for the rows of a table; these texts are documents")


def _with_embeddings(texts: Texts, embeddings: Any) -> Texts:
    """Return the texts with their embeddings, if there are any, and without the column that has them.

    Raises OptionError if the embeddings cannot be read.
    """
    if embeddings is None:
        return texts
    texts = replace(texts, embeddings=read_embeddings(embeddings))
    if texts.rows is None and isinstance(embeddings, str | Path) and Path(embeddings) == texts.path:
        texts = replace(texts, rows=parquet_reader(texts.path, [embedding_column(texts.path)]))
    return texts


def make_splitter(folder: Path, manifest: Manifest, options: TextOptions) -> Splitter:
    """Return what divides texts into passages; the model in the folder embeds them, and its tokenizer measures them."""
    tokenizer, name = read_tokenizer(folder / TOKENIZER), manifest.files[TOKENIZER].sha256
    return Splitter(tokenizer, manifest.model, options.passage_tokens, options.overlap, name)


def read_texts(
    texts: Texts,
    *,
    passages: Path,
    options: TextOptions,
    splitter: Splitter | None,
    older: OlderIndex | None,
    on_progress: OnProgress,
    merged_into: OlderIndex | None = None,
) -> ReadTexts:
    """Write the texts into `passages` with the types of their columns.

    merged_into is the index into which the texts are merged, if there is one. Columns that options name can be missing
    then, and strings of a CSV stay strings in a column that has no numbers there.
    """
    on_progress(READ, 0)
    source = texts.source(options, splitter, older)
    corpus, report = write_corpus(source, passages, on_progress, older=None if older is None else older.folder)
    columns, kinds, numeric = options.columns, NO_TYPES, None
    if corpus.is_csv or merged_into is not None:
        corpus = replace(corpus, facts=read_facts(corpus.metadata))
    if merged_into is not None:
        columns, kinds = columns.of_those_in(corpus), merged_into.stored_kinds()
    if corpus.is_csv:
        corpus = choose_columns(corpus, texts.path, columns)
        store_numbers(corpus, passages, kinds)
        numeric = corpus.numeric_strings
    corpus, changes = _with_columns(corpus, texts, columns, older, keep_types=texts.plan is not None)
    if numeric is not None:  # they were strings in the file
        corpus = replace(corpus, numeric_strings=numeric)
    if columns.strict and isinstance(source, Table):
        into = None if merged_into is None else merged_into.manifest.corpus
        require_same_types(corpus, into, columns.column, texts.path)
    kept: dict[str, AnyArray] = {}
    if isinstance(source, Documents | SeveralDocuments):
        kept = records_tensors(source.records, key_of_readings(source.readings))
    on_progress(READ, 1)
    return ReadTexts(corpus, report, changes, kept)


def _with_columns(
    corpus: Corpus, texts: Texts, columns: ColumnOptions, older: OlderIndex | None, *, keep_types: bool
) -> tuple[Corpus, RowChanges]:
    """Return a corpus with the types of its columns, and what differs between it and the older index.

    keep_types: whether columns of numbers of the older index stay columns of numbers, if their values allow it.
    """
    changes = find_changes(corpus, older)
    corpus = replace(corpus, facts=facts_of(corpus, changes))
    before = NO_TYPES
    if older is not None and keep_types:
        before = older.manifest.corpus.columns
    return choose_columns(corpus, texts.path, columns, before, changes.new), changes


def merge_older(
    corpus: Corpus, *, texts: Texts, passages: Path, options: TextOptions, older: OlderIndex, mode: Mode
) -> tuple[Corpus, RowChanges, Positions]:
    """Return the corpus with the texts of the older index that the mode keeps, what has changed, and `RowPlan.places`.

    Raises BundleError if they cannot be merged.
    """
    plan, new = RowPlan(older, is_split=options.split), passages.with_name(NEW)
    passages.rename(new)
    plan.merge(in_file(corpus, new), mode)
    merged, _ = write_corpus(plan, passages, older=older.folder)
    new.unlink()
    merged = replace(merged, has_ids=corpus.has_ids)
    merged, changes = _with_columns(merged, texts, options.columns, older, keep_types=True)
    return merged, changes, plan.places


def write_place(folder: Path, place: str) -> None:
    """Note where the texts of an index are from; "" if no place has all of them: a later run then needs a mode."""
    (folder / SOURCE).write_text(place, encoding="utf-8", errors="surrogateescape")
