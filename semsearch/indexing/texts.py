"""The texts of an index: where they are, and `write_corpus`, through which all of them pass on their way into it."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from semsearch.engine.bundle import SOURCE, TOKENIZER, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.errors import OptionError
from semsearch.engine.tensors import AnyArray
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.column_choice import ColumnOptions, choose_columns
from semsearch.indexing.columns import store_numbers
from semsearch.indexing.corpus import Corpus, Table, corpus_place, fetching_corpus
from semsearch.indexing.corpus.columns import TableOptions
from semsearch.indexing.corpus.corpus import READ, PassageRows, corpus_error
from semsearch.indexing.corpus.formats import parquet_reader
from semsearch.indexing.corpus.merging import (
    Kept,
    Merged,
    Mode,
    has_texts_of,
    read_place,
    resolve_place,
    texts_of,
)
from semsearch.indexing.corpus.passages import stored_columns, stored_sources, writing_passages
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.corpus.rows import TableReader, read_rows
from semsearch.indexing.documents import DocumentOptions, Documents, Reading, Splitter, is_documents
from semsearch.indexing.models.placing import PlacedModels
from semsearch.indexing.progress import OnProgress, no_progress
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
    table: TableOptions
    documents: DocumentOptions
    columns: ColumnOptions


class TextSource(Protocol):
    """What passages are read from: a table, documents, rows in memory, or an older index."""

    def passages(self, on_progress: OnProgress) -> PassageRows:
        """Yield the passages."""

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the written passages with what the source knows of them, and a report of what was counted."""


def write_corpus(
    source: TextSource, passages: Path, on_progress: OnProgress = no_progress
) -> tuple[Corpus, ReadReport]:
    """Write the texts of a source into `passages`, and return them, with what was counted.

    All texts of an index pass here: those of tables, documents, rows in memory and older indexes. They are written
    while they are read, and the returned corpus reads them from the file.
    Raises what the source raises.
    """
    with writing_passages(passages) as append, closing(source.passages(on_progress)) as rows:
        for passage in rows:
            append(*passage)
    texts, ids, metadata = stored_columns(passages)
    return source.describe(Corpus(texts, ids, metadata, sources=stored_sources(passages)))


@dataclass(frozen=True, slots=True)
class Texts:
    """Where the texts are: a path on this machine, rows in memory or an older index; and their name."""

    path: Path
    name: str
    place: str = ""  # path or address of the texts; "" for rows in memory
    rows: TableReader | None = None  # rows in memory, or a table of which a column is left out
    kept: Kept | None = None  # texts of the older index
    are_documents: bool = False
    embeddings: AnyArray | None = None  # those that the caller has of a table

    def need_splitter(self, options: TextOptions) -> bool:
        """Return whether the texts become passages, which the tokenizer of the model measures."""
        return self.are_documents or options.split

    def given_rows(self, corpus: Corpus, report: ReadReport, embedder: Embedder) -> KnownRows | None:
        """Return the rows of the texts whose embeddings the caller has; embedder has the model of the index."""
        if self.embeddings is None:
            return None
        return known_embeddings(self.embeddings, corpus, report.empty_texts, embedder)

    def source(self, options: TextOptions, splitter: Splitter | None, older: Path | None) -> TextSource:
        """Return what the texts are read from.

        splitter divides documents, and long texts of a table if there is one. Documents that cannot be read keep their
        passages of the index `older`, if that was made of the same folder.
        """
        if self.kept is not None:
            return self.kept
        if not self.are_documents:
            return Table(self.path, options.table, rows=self.rows, split=None if splitter is None else splitter.split)
        assert splitter is not None  # see `need_splitter`
        if older is not None and not has_texts_of(older, self.place, self.name):
            older = None
        return Documents(self.path, Reading(splitter, options.documents), older)


@contextmanager
def opening_texts(data: Any, options: TextOptions) -> Iterator[Texts]:
    """Yield the place of the texts that `index` takes as its first argument. Copies are deleted at the end.

    Raises CorpusError if an address in S3 cannot be read, or if documents have the options of a table, and OptionError
    for embeddings of documents.
    """
    if isinstance(data, Kept):
        info = read_manifest(data.bundle).corpus
        texts = Texts(Path(info.source), info.source, read_place(data.bundle) or "", kept=data)
        yield _with_embeddings(texts, options.embeddings)
    elif isinstance(data, str | Path):
        path = corpus_place(str(data))
        with fetching_corpus(path) as here:
            texts = Texts(here, as_text(path.name), resolve_place(data), are_documents=_are_documents(here, options))
            yield _with_embeddings(texts, options.embeddings)
    else:
        texts = Texts(Path(ROWS_IN_MEMORY), ROWS_IN_MEMORY, rows=read_rows(data))
        yield _with_embeddings(texts, options.embeddings)


def _are_documents(path: Path, options: TextOptions) -> bool:
    """Return whether the path is a document or has one.

    Raises CorpusError if there is also a text column or an id column, which documents do not have.
    """
    table = options.table
    are_documents = is_documents(path, ignore=table.ignore, follow_symlinks=table.follow_symlinks)
    if are_documents and (table.text_column is not None or table.id_column is not None):
        found = "documents, and the option text_column or id_column, which the updated index can have recorded"
        remedy = "choose another folder with --out, or leave the columns out: --text-column '' --id-column ''"
        raise corpus_error(path, None, found, "tables with these columns", remedy)
    return are_documents


def _with_embeddings(texts: Texts, embeddings: Any) -> Texts:
    """Return the texts with their embeddings, if there are any, and without the column that has them.

    Raises OptionError if the texts are no table, or if the embeddings cannot be read.
    """
    if embeddings is None:
        return texts
    if texts.are_documents or texts.kept is not None:
        raise OptionError("embeddings", "is for the rows of a table; these texts are documents")
    texts = replace(texts, embeddings=read_embeddings(embeddings))
    if texts.rows is None and isinstance(embeddings, str | Path) and Path(embeddings) == texts.path:
        texts = replace(texts, rows=parquet_reader(texts.path, [embedding_column(texts.path)]))
    return texts


def make_splitter(models: PlacedModels, options: TextOptions) -> Splitter:
    """Return what divides texts into passages, measured by the tokenizer of the model that embeds them."""
    tokenizer = read_tokenizer(models.documents_folder / TOKENIZER)
    return Splitter(tokenizer, models.documents.model, options.passage_tokens, options.overlap)


def read_texts(
    texts: Texts,
    *,
    passages: Path,
    options: TextOptions,
    splitter: Splitter | None,
    older: Path | None,
    on_progress: OnProgress,
) -> tuple[Corpus, ReadReport]:
    """Write the texts into `passages` with the types of their columns, and return them, with what was counted."""
    on_progress(READ, 0)
    corpus, report = write_corpus(texts.source(options, splitter, older), passages, on_progress)
    corpus = choose_columns(corpus, texts.path, options.columns)
    if corpus.is_csv:
        store_numbers(corpus, passages)
    on_progress(READ, 1)
    return corpus, report


def merge_older(
    corpus: Corpus, *, texts: Texts, passages: Path, options: TextOptions, older: Path | None, mode: Mode | None
) -> Corpus:
    """Return the corpus with the texts of the older index that the mode keeps, and note where all of them are from.

    Raises BundleError if they cannot be merged.
    """
    place = texts.place
    if mode in ("add", "upsert") and older is not None and texts_of(older) is not None:
        new, new_texts = passages.with_name(NEW), len(corpus.texts)
        passages.rename(new)
        corpus, _ = write_corpus(Merged(older, corpus, new, mode), passages)
        new.unlink()
        corpus = choose_columns(corpus, texts.path, options.columns)
        if len(corpus.texts) > new_texts:
            place = ""  # no file has all texts, so a later run with one of them needs a mode
    (passages.parent / SOURCE).write_text(place, encoding="utf-8", errors="surrogateescape")
    return corpus
