"""Make and update an index: `index`, whose signature and docstring define its options, and its steps.

The command `semsearch index` and docs/options.md are derived from this signature, and so are the options that a
manifest records. An option is added to the signature, and where it is used.
"""

import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from semsearch.engine.bundle import (
    BY_TABLE,
    NO_STEMS,
    PASSAGES,
    SOURCE,
    TOKENIZER,
    BundleError,
    Manifest,
    read_manifest,
)
from semsearch.engine.embedder import Embedder
from semsearch.engine.errors import OptionError
from semsearch.engine.tensors import TensorsError
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.engine.values import Id, id_text
from semsearch.indexing.cluster import Cluster
from semsearch.indexing.columns import choose_types, describe_mixed, numeric_strings, store_numbers
from semsearch.indexing.corpus import Corpus, corpus_place, fetching_corpus, read_corpus
from semsearch.indexing.corpus.columns import TableOptions, require_column
from semsearch.indexing.corpus.corpus import READ, corpus_error
from semsearch.indexing.corpus.folder import as_text
from semsearch.indexing.corpus.formats import parquet_reader
from semsearch.indexing.corpus.language import warn_of_language
from semsearch.indexing.corpus.merging import (
    Kept,
    Mode,
    count_left_out,
    has_texts_of,
    merge,
    read_place,
    require_mode,
    resolve_place,
)
from semsearch.indexing.corpus.rows import TableReader, plain_value, read_rows
from semsearch.indexing.documents import Reading, Splitter, is_documents, read_documents
from semsearch.indexing.documents.addresses import DOCUSAURUS, GITHUB
from semsearch.indexing.documents.passages import PASSAGE_TOKENS
from semsearch.indexing.errors import require_packages
from semsearch.indexing.keywords import FUSION_WEIGHT, STEMMING, KeywordOptions, is_language, row_languages
from semsearch.indexing.models.placing import (
    ModelChoice,
    PlacedModels,
    RerankerChoice,
    find_float_model,
    place_models,
)
from semsearch.indexing.options import content_options, recalling_options
from semsearch.indexing.progress import OnProgress, chosen_progress
from semsearch.indexing.questions import read_questions
from semsearch.indexing.replacing import FINISHED, replacing
from semsearch.indexing.vectors.device import Device
from semsearch.indexing.vectors.embed import (
    Cores,
    EmbeddedCorpus,
    PassageEmbedder,
    embed_corpus,
    embed_texts,
    open_older_rows,
)
from semsearch.indexing.vectors.floor import measure_floor
from semsearch.indexing.vectors.given import embedding_column, known_embeddings, read_embeddings
from semsearch.indexing.vectors.indexer import write_index, write_truncated
from semsearch.indexing.vectors.query_table import keep_table, write_table
from semsearch.indexing.vectors.recall import sample_spans
from semsearch.indexing.vectors.shards import KnownRows, name_model
from semsearch.indexing.verification import LEAST_VERIFIED, VERIFIED_PASSAGES, VERIFIED_SHARE, Check, verify
from semsearch.indexing.walking import DOCUSAURUS_CONFIG, find_above

ROWS_IN_MEMORY = "rows"  # what rows in memory are called


class FailedChecksError(BundleError):
    """A new bundle failed some of its checks; `checks` has all of them."""

    def __init__(self, message: str, checks: Sequence[Check]) -> None:
        super().__init__(message)
        self.checks = checks


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """What `index` has made: the bundle, and what was counted on the way."""

    out: Path
    manifest: Manifest
    corpus: Corpus  # without its texts, ids and metadata, which the bundle has
    repeated_ids: int  # passages with the id of an earlier one
    left_out: int  # texts that the index in `out` had before, and that are not in the new one
    rows: EmbeddedCorpus
    prompts: Mapping[str, str]  # text before each query and before each passage, by role
    checks: tuple[Check, ...]
    embedding_seconds: float
    seconds: float  # the whole run, with embedding_seconds
    embedded_by: str = ""  # what embedded the new texts, if it was not this machine's processor with the index's model
    model_from: Path | None = None  # the folder of the cache, or of a package, that the model was copied from
    warnings: tuple[str, ...] = ()


@recalling_options
def index(
    data: Any,
    /,
    out: str | Path = "bundle",
    *,
    # Texts
    title: str = "",
    description: str = "",
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    column: Mapping[str, str] | None = None,
    separator: str | None = None,
    decimal_comma: bool = False,
    # Documents and long texts
    base_url: str = "",
    anchors: Literal["auto", "github", "mkdocs", "sphinx", "docusaurus"] = "auto",
    exclude: Sequence[str] = (),
    ignore: bool = True,
    follow_symlinks: bool = False,
    drafts: bool = False,
    strict: bool = False,
    split: bool = False,
    passage_tokens: int = PASSAGE_TOKENS,
    overlap: int = 0,
    # Keywords and ranking
    keywords: bool = True,
    stem: str | None = None,
    title_column: str | None = None,
    language_column: str | None = None,
    synonyms: str | Path | Sequence[Sequence[str]] | None = None,
    fusion_weight: float = FUSION_WEIGHT,
    boost: Mapping[str, Any] | None = None,
    # Model
    model: str | Path | None = None,
    revision: str | None = None,
    pooling: Literal["mean", "cls", "max"] | None = None,
    dimensions: int | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    similarity: Literal["cosine"] | None = None,
    calibration: Path | None = None,
    calibration_column: str | None = None,
    cache: bool = True,
    # Reranker and query table
    rerank: str | Path | None = None,
    rerank_revision: str | None = None,
    rerank_weight: float | None = None,
    queries: Literal["model", "table"] = "model",
    questions: Path | None = None,
    learn: bool = False,
    # How it runs
    update: str | Path | None = None,
    mode: Mode | None = None,
    ray: str | None = None,
    device: str = "cpu",
    dtype: Literal["int8", "float16", "float32"] | None = None,
    embeddings: Any = None,
    progress: bool | OnProgress = True,
) -> IndexSummary:
    """Make an index of texts, or update it, and return a summary.

    If `out` is a bundle already, its model, its options and the embeddings of texts that it has are used again; an
    option that is stated here replaces the recorded one.

    Example:
        >>> from semsearch import index
        >>> coats = [
        ...     {"sku": "c-1", "name": "A warm coat", "brand": "North", "price": 90},
        ...     {"sku": "c-2", "name": "A light coat", "brand": "North", "price": 140},
        ... ]
        >>> summary = index(coats, out="bundle", text_column="name", id_column="sku")
        >>> summary.manifest.corpus.rows
        2

    Args:
        data: the texts: a folder of documents (Markdown, MDX, reStructuredText, notebook, HTML, PDF, DOCX, plain text),
            or a table (CSV, TSV, JSON lines, Parquet, plain or .gz), either as s3://BUCKET/KEY. From Python also a
            pandas or polars DataFrame, an Arrow table or a sequence of mappings.
        out: folder of the index.
        title: what the texts are called; names the tool for agents.
        description: what the texts are about, in a sentence or two, for agents that choose a tool.
        text_column: column of the texts, or several, whose texts are joined by a line break, such as name,description;
            the first of several is the title column too. Without it, the column `text` or the only one.
        id_column: column of the ids. Without it, the column `id` or the row number.
        column: type of another column for filters, such as year=number: string, number, boolean, date, list (strings),
            numbers (a list of them) or none, which leaves the column out. Without it, the type that all values have.
        separator: character that separates the fields of a CSV. Without it, a comma.
        decimal_comma: read numbers of a CSV such as 3,50 or 1.234,50.
        base_url: address at which the folder of documents is published.
        anchors: whose addresses of pages and headings Markdown has. auto is docusaurus if a docusaurus.config is in the
            folder or above it, and otherwise github.
        exclude: leave out documents whose path ends in this form, such as 404.html or drafts/*.
        ignore: leave out what .gitignore and .ignore files name, and installed packages and build output. A folder with
            an index.html is read whole.
        follow_symlinks: follow symbolic links that lead out of the folder. Otherwise they are left out and counted.
        drafts: read pages too that ask not to be published or found, such as those with draft: true or noindex.
        strict: stop at a document that cannot be read.
        split: divide long texts of a table instead of truncating them.
        passage_tokens: maximum tokens of a passage of a document or of a divided text.
        overlap: tokens of a passage that repeat the end of the one before.
        keywords: write what keyword and hybrid search need.
        stem: language whose word endings keyword search ignores, such as german, or none. Without it, english.
        title_column: column with the titles of the texts; keyword search finds its words too and counts them more.
        language_column: column with the language of each text (german, de or de-AT), whose endings keyword search
            ignores; `stem` is for texts without a language. Pages of a site in several languages have one, unless it is
            none.
        synonyms: file with words that mean the same, a line such as "sofa, couch" for each; keyword search finds both.
        fusion_weight: share of the meaning in the sum of both scores, from 0 (words alone) to 1.
        boost: what columns add to the scores of the best texts, as in a request; docs/api.md has the fields.
        model: a sentence-transformer's folder, or its name on the hub. Without it, the model of the index, or
            all-MiniLM-L6-v2, which is for English.
        revision: branch, tag or commit of a model on the hub.
        pooling: pooling instead of the one that the model was trained with.
        dimensions: keep only the first values of an embedding, for a Matryoshka model.
        query_prompt: text before each query. Without it, the one that the model's files state.
        document_prompt: text before each passage. Without it, the one that the model's files state.
        similarity: search by cosine, although the model was trained for the dot product or for a distance. Without it,
            such a model is refused.
        calibration: file of typical texts, which choose the 8-bit steps. Without it, texts of Python's documentation.
        calibration_column: column of these texts. Without it, the column `text` or the only one.
        cache: take a converted model from the package semsearch-model or the cache, and keep others in the cache.
        rerank: a cross-encoder, a folder or a name on the hub; a search with `rerank` scores its best texts with it.
        rerank_revision: branch, tag or commit of this model on the hub.
        rerank_weight: share of the reranker's score in the order of results, from 0 to 1. Without it, the one of the
            index, or 0.5.
        queries: what embeds queries: the model, or a table with a vector for each token, which is learned from the
            texts: smaller and faster, and less accurate for long questions.
        questions: file of your questions, in the form of `semsearch evaluate`, which the query table is fitted to too.
        learn: learn the query table again. Otherwise an update does so if a tenth of the passages are newer.
        update: bundle whose embeddings and options are used again, if it is not the one in `out`; s3://BUCKET/PREFIX is
            the one that was published there.
        mode: what becomes of the texts of the older index: `replace` leaves out those that are not among the new ones,
            `add` keeps them, with new texts at the end, whose ids must be new, and `upsert` keeps those whose ids are
            not among the new ones. Without it, an index that would lose texts is refused, unless the texts come from
            the path or address that it was made from.
        ray: embed on the Ray cluster at this address; auto takes the one that Ray finds, or starts one on this machine.
        device: what embeds the texts: the processor (cpu) with the 8-bit model of the index, or with the float model
            all GPUs (cuda), one of them (cuda:1) or Apple's (mps). auto takes a GPU if there is one.
        dtype: numbers that the model embeds the texts with. Without it, int8 on the processor and float16 on a GPU;
            float32 works on both.
        embeddings: embeddings of the texts by this model, which you have already: a row for each row of the table, also
            for blank texts. A file (.npy, .safetensors, or .parquet with one column of lists), or from Python an array.
        progress: display bars on a terminal and in a notebook; or a function that is called with the step, its share
            and the number of embedded texts.

    Raises:
        OptionError: an option has a wrong value, or has no effect without another one.
        CorpusError: the texts are not what the options say, or have no form that can be read.
        OSError: a file is missing or cannot be read.
        ModelError: the model cannot be converted.
        BundleError: the older bundle cannot be used, or the new one failed a check; the older one stays as it was.
        PackagesError: a package is missing; the message has the command that installs it.
    """
    arguments = locals()
    started = perf_counter()
    if ray is not None:
        require_packages("--ray", "cluster", "ray")
    if device not in ("cpu", "auto") or dtype == "float32":
        require_packages("--device", "export", "torch", "transformers")
    out = Path(out)
    older = None if update is None else Path(update)
    choice = ModelChoice(
        *(model, revision, pooling, dimensions, query_prompt, document_prompt, similarity),
        *(calibration, calibration_column, cache),
    )
    reranker = RerankerChoice(rerank, rerank_revision, rerank_weight)
    assert not isinstance(synonyms, str | Path)  # `recalling_options` has read the file
    texts_column = None if text_column is None else str(text_column)
    table = TableOptions(
        *(texts_column, id_column, column or {}, separator, decimal_comma),
        *(title_column, language_column, ignore, follow_symlinks),
    )
    with chosen_progress(progress) as on_progress, replacing(out) as fresh, opening_texts(data) as texts:
        are_documents = texts.are_documents(table)
        given_rows = None
        if embeddings is not None:
            if are_documents or texts.kept is not None:
                raise OptionError("embeddings", "is for the rows of a table; these texts are documents")
            given_rows, texts = read_embeddings(embeddings), without_embeddings(texts, embeddings)
        if are_documents or split:  # the tokenizer measures passages, so the model comes first
            require_packages(texts.name, "documents")
            models = place_models(fresh, older, choice, reranker, on_progress)
            splitter = make_splitter(models, passage_tokens, overlap)
            if are_documents:
                reading = Reading(
                    *(splitter, base_url, anchors_of(texts.path, anchors), tuple(exclude), strict),
                    *(ignore, drafts, follow_symlinks),
                )
                corpus = read_folder(texts, fresh, reading, table, older, on_progress)
            else:
                corpus = read_table(texts, fresh, table, splitter, on_progress)
        else:
            corpus = read_table(texts, fresh, table, None, on_progress)
            models = place_models(fresh, older, choice, reranker, on_progress)
        embedder = Embedder.open(models.documents_folder, models.documents.model)
        given = None
        if given_rows is not None:
            given = known_embeddings(given_rows, corpus, embedder)
        place = texts.place
        if mode in ("add", "upsert") and older is not None:
            new_texts = len(corpus.texts)
            corpus = choose_columns(merge(older, corpus, fresh / PASSAGES, mode), texts.path, table)
            if len(corpus.texts) > new_texts:
                place = ""  # no file has all texts, so a later run with one of them needs a mode
        left_out = count_left_out(out, corpus)
        if mode is None:
            require_mode(out, left_out, texts.place, texts.name)
        (fresh / SOURCE).write_text(place, encoding="utf-8", errors="surrogateescape")
        title_column = title_column or first_of_several(table, corpus)
        corpus = replace(corpus, options=content_options(index, {**arguments, "title_column": title_column}))
        if language_column == NO_STEMS:
            language_column = None
        elif language_column is None and has_languages(corpus):
            language_column = "language"
        keyword_options = None
        if keywords:
            stemming = stem_language(stem)
            keyword_options = KeywordOptions(stemming, fusion_weight, title_column, language_column, synonyms or ())
        has_default_stems = keywords and stem is None and language_column is None
        warning = warn_of_language(corpus.texts, texts.name, models.is_default, has_default_stems)

        passage_embedder: PassageEmbedder = Cores(embedder)
        find_source = partial(find_float_model, models, model)
        if ray is not None:
            passage_embedder = Cluster(
                *(ray.removeprefix("auto"), models.documents_folder, embedder.model), device, dtype, find_source
            )
        elif device != "cpu" or dtype == "float32":
            passage_embedder = Device(device, dtype, find_source, embedder)
        embedding = perf_counter()
        known, damage = older_rows(older, out, models, on_progress)
        rows = embed_corpus(
            *(passage_embedder, corpus.embedded_texts, fresh, name_model(models.manifest), embedder.model.dim),
            *(known, given, on_progress),
        )
        embedding_seconds = perf_counter() - embedding
        manifest = write_texts(fresh, models, embedder, corpus, rows, texts.name, keyword_options, on_progress)
        if queries == BY_TABLE:
            kept = None
            if older is not None and questions is None and not learn:
                kept = keep_table(older, fresh, manifest, len(corpus.texts) - rows.updated)
            asked = []
            if questions is not None:
                asked = [question.text for question in read_questions(questions)[0]]
            manifest = kept or write_table(fresh, manifest, Embedder.open(fresh, manifest.model), asked, on_progress)
        manifest = measure_floor(fresh, manifest, on_progress)
        checks = check(fresh, embedder, rows, out, on_progress)
        repeated_ids = corpus.repeated_ids
    return IndexSummary(
        out=out,
        manifest=manifest,
        corpus=replace(corpus, texts=(), ids=(), metadata=()),
        repeated_ids=repeated_ids,
        left_out=left_out,
        rows=rows,
        prompts=models.prompts,
        checks=checks,
        embedding_seconds=embedding_seconds,
        seconds=perf_counter() - started,
        embedded_by=passage_embedder.describe(),
        model_from=models.from_cache,
        warnings=(
            *filter(None, (damage, warning, warn_of_mixture(known, rows))),
            *warn_of_texts(corpus, repeated_ids, left_out if mode is None else 0),
        ),
    )


def remove(
    ids: Id | Iterable[Id], bundle: str | Path = "bundle", *, progress: bool | OnProgress = True
) -> IndexSummary:
    """Remove texts from an index by their ids, or by one id. The others keep their embeddings, ids and metadata.

    Example:
        >>> from semsearch import remove
        >>> remove(["c-2"], "bundle").manifest.corpus.rows
        1

    Raises OptionError for what is no id, and BundleError if the index lacks one of the ids, or if it cannot be used.
    Then nothing is changed.
    """
    removed = set[str]()
    for number, value in enumerate(_several(ids)):
        id = id_text(plain_value(value, number, "id"))
        if id is None:
            raise OptionError("ids", f"found {value!r:.60}, expected text or a number for each")
        removed.add(id)
    return index(Kept(Path(bundle), frozenset(removed)), out=bundle, mode="replace", progress=progress)


def _several(ids: Id | Iterable[Id]) -> Iterable[object]:
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        return [ids]
    return ids


@dataclass(frozen=True, slots=True)
class Texts:
    """Where the texts are: a path on this machine or rows in memory; and their name."""

    path: Path
    name: str
    place: str = ""  # path or address of the texts; "" for rows in memory
    reader: TableReader | None = None  # reads rows in memory
    kept: Kept | None = None  # texts of the older index

    def are_documents(self, table: TableOptions) -> bool:
        """Return whether the path is a document or has one.

        Raises CorpusError if there is also a text column or an id column, which documents do not have.
        """
        if self.reader is not None or self.kept is not None:
            return False
        are_documents = is_documents(self.path, ignore=table.ignore, follow_symlinks=table.follow_symlinks)
        if are_documents and (table.text_column is not None or table.id_column is not None):
            found = "documents, and the option text_column or id_column, which the updated index can have recorded"
            remedy = "choose another folder with --out, or leave the columns out: --text-column '' --id-column ''"
            raise corpus_error(self.path, None, found, "tables with these columns", remedy)
        return are_documents


@contextmanager
def opening_texts(data: Any) -> Iterator[Texts]:
    """Yield the place of the texts that `index` takes as its first argument. Copies are deleted at the end.

    Raises CorpusError if an address in S3 cannot be read.
    """
    if isinstance(data, Kept):
        info = read_manifest(data.bundle).corpus
        yield Texts(Path(info.source), info.source, read_place(data.bundle) or "", kept=data)
    elif isinstance(data, str | Path):
        path = corpus_place(str(data))
        with fetching_corpus(path) as here:
            yield Texts(here, as_text(path.name), resolve_place(data))
    else:
        yield Texts(Path(ROWS_IN_MEMORY), ROWS_IN_MEMORY, reader=read_rows(data))


def without_embeddings(texts: Texts, embeddings: Any) -> Texts:
    """Return the texts without the column of their embeddings, if both come from one Parquet file."""
    if not isinstance(embeddings, str | Path) or texts.reader is not None or Path(embeddings) != texts.path:
        return texts
    return replace(texts, reader=parquet_reader(texts.path, [embedding_column(texts.path)]))


def anchors_of(path: Path, anchors: str) -> str:
    """Return the style of anchors for a path: the chosen one, or the one of its site."""
    if anchors != "auto":
        return anchors
    folder = path if path.is_dir() else path.parent
    if find_above(folder, DOCUSAURUS_CONFIG) is not None:
        return DOCUSAURUS
    return GITHUB


def make_splitter(models: PlacedModels, passage_tokens: int, overlap: int) -> Splitter:
    """Return what divides texts into passages, measured by the tokenizer of the model that embeds them."""
    tokenizer = read_tokenizer(models.documents_folder / TOKENIZER)
    return Splitter(tokenizer, models.documents.model, passage_tokens, overlap)


def read_folder(
    texts: Texts, fresh: Path, reading: Reading, table: TableOptions, older: Path | None, on_progress: OnProgress
) -> Corpus:
    """Write the passages of documents into the unfinished folder, and return them.

    Documents that cannot be read keep their passages of the older index, if that was made of the same folder.
    """
    on_progress(READ, 0)
    if older is not None and not has_texts_of(older, texts.place, texts.name):
        older = None
    corpus = read_documents(texts.path, fresh / PASSAGES, reading, on_progress, older)
    corpus = choose_columns(corpus, texts.path, table)
    on_progress(READ, 1)
    return corpus


def read_table(
    texts: Texts, fresh: Path, table: TableOptions, splitter: Splitter | None, on_progress: OnProgress
) -> Corpus:
    """Write the texts of a table into the unfinished folder, and return them.

    With a splitter, long texts become several passages.
    """
    on_progress(READ, 0)
    passages = fresh / PASSAGES
    if texts.kept is not None:
        corpus = texts.kept.write(passages)
    else:
        split = None if splitter is None else splitter.split
        corpus = read_corpus(texts.path, passages, table, on_progress, split, texts.reader)
    corpus = choose_columns(corpus, texts.path, table)
    if corpus.is_csv:
        store_numbers(corpus, passages)
    on_progress(READ, 1)
    return corpus


def choose_columns(corpus: Corpus, path: Path, table: TableOptions) -> Corpus:
    """Return the corpus with the types of its columns; path is for messages.

    Raises CorpusError if an option names a column that is not there, or one with other values.
    """
    columns = choose_types(corpus, table.types, path)
    others = {column: kind for column, kind in columns.items() if column not in table.types}
    numeric = tuple(numeric_strings(corpus, others))
    if corpus.is_csv:
        columns |= dict.fromkeys(numeric, "number")
    if table.title_column is not None:
        require_column(path, columns, table.title_column, "--title-column")
    if table.language_column not in (None, NO_STEMS):
        require_column(path, columns, table.language_column, "--language-column")
        deque(row_languages(corpus, table.language_column, None, path), maxlen=0)  # a wrong language is an error now
    mixed = describe_mixed(corpus, others)
    return replace(corpus, numeric_strings=numeric, columns=columns, mixed=mixed)


def first_of_several(table: TableOptions, corpus: Corpus) -> str | None:
    """Return the first of several text columns, which has the titles, None if there is one text column."""
    first, *others = (table.text_column or "").split(",")
    if others and first in corpus.columns:
        return first
    return None


def has_languages(corpus: Corpus) -> bool:
    """Return whether the pages of a site are in several languages."""
    languages = corpus.of_site.get("language", ())
    return len(languages) > 1 and corpus.columns.get("language") == "string" and all(map(is_language, languages))


def stem_language(stem: str | None) -> str | None:
    """Return the language of the stems for the option of `index`, None for no stems."""
    if stem == NO_STEMS:
        return None
    return stem or STEMMING


def older_rows(
    older: Path | None, out: Path, models: PlacedModels, on_progress: OnProgress
) -> tuple[KnownRows | None, str | None]:
    """Return the rows of the older bundle, None if all texts have to be embedded, and a warning if they are damaged.

    If the older bundle is the one in `out`, it can be damaged or have another model.
    Raises BundleError or TensorsError if it is another one that cannot be used.
    """
    if older is None or read_manifest(older).index is None:
        return None, None
    if older == out and name_model(read_manifest(out)) != name_model(models.manifest):
        return None, None
    on_progress("read the older bundle", 0)
    try:
        known = open_older_rows(older, models.manifest)
    except (BundleError, TensorsError) as error:
        if older != out:
            raise
        return None, f"the older index is damaged, so all texts were embedded again: {str(error).partition(';')[0]}"
    on_progress("read the older bundle", 1)
    return known, None


def warn_of_mixture(known: KnownRows | None, rows: EmbeddedCorpus) -> str | None:
    """Return a warning if the rows of the older index were embedded by something else than the new ones."""
    if known is None or not rows.updated or not set(rows.embedded_by) - set(known.embedded_by):
        return None
    return (
        f"the texts were embedded by {' and '.join(rows.embedded_by)}, which agree within the accuracy of the model; "
        "the options device and dtype choose one of them"
    )


def warn_of_texts(corpus: Corpus, repeated_ids: int, left_out: int) -> Iterator[str]:
    """Yield a warning for each thing in the texts that a search treats otherwise than their owner can expect.

    left_out is how many texts of the older index are left out although no mode was stated.
    """
    for name in corpus.left_out:
        yield f"{name} is left out, because JSON cannot hold the values of such a column"
    yield from corpus.mixed.values()
    if repeated_ids:
        texts = f"{repeated_ids:,} texts have the id of an earlier one"
        yield f"{texts}: `get` finds the first, and a removal or an upsert changes all"
    if left_out:
        yield f"{left_out:,} texts of the older index are left out, because they are not among the new ones"


def write_texts(
    fresh: Path,
    models: PlacedModels,
    embedder: Embedder,
    corpus: Corpus,
    rows: EmbeddedCorpus,
    name: str,
    keywords: KeywordOptions | None,
    on_progress: OnProgress,
) -> Manifest:
    """Write the index, the columns and the keywords into the unfinished folder, and return its manifest."""
    on_progress("write the index", 0)
    write_truncated(fresh, corpus.ids, rows.is_truncated)
    if models.documents_folder != fresh:  # another model embeds queries
        embedder = Embedder.open(fresh, models.manifest.model)
    spans = embed_texts(embedder, sample_spans(corpus.texts), role="query")
    both = rows.codes, rows.scales
    manifest = write_index(fresh, models.manifest, corpus, both, spans, name, keywords, rows.embedded_by)
    on_progress("write the index", 1)
    return manifest


def check(
    fresh: Path, embedder: Embedder, rows: EmbeddedCorpus, out: Path, on_progress: OnProgress
) -> tuple[Check, ...]:
    """Verify the unfinished bundle, and return its checks. Raises FailedChecksError if one failed."""
    verified = max(LEAST_VERIFIED, rows.embedded // VERIFIED_SHARE)
    checks = tuple(verify(fresh, on_progress, embedder, min(verified, VERIFIED_PASSAGES)))
    if not all(check.passed for check in checks):
        shutil.rmtree(fresh / FINISHED, ignore_errors=True)  # a piece may be wrong: the next call makes all again
        raise FailedChecksError(f"{out}: the new bundle failed a check; what was there before stays as it was", checks)
    return checks
