"""Make and update an index: the signature and the docstring of `index` define its options.

The command `semsearch index` and docs/options.md are derived from this signature, and so are the options that a
manifest records. semsearch/indexing/steps.py has the steps. An option is added to the signature, and to the options of
the step that uses it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from semsearch.engine.values import Id
from semsearch.indexing import option_values as values
from semsearch.indexing.argument_names import naming_arguments
from semsearch.indexing.changing import Changing, changing_index
from semsearch.indexing.documents.passages import PASSAGE_TOKENS
from semsearch.indexing.keywords import FUSION_WEIGHT
from semsearch.indexing.modes import MODES, Mode, require_index, texts_of
from semsearch.indexing.options import Option, Topic, calling, names_of_arguments, options_for
from semsearch.indexing.progress import OnProgress, WaitingProgress, chosen_progress
from semsearch.indexing.replacing import require_free, when_free
from semsearch.indexing.steps import FailedChecksError, IndexOptions, IndexSummary, make_index

__all__ = ["FailedChecksError", "IndexSummary", "changing", "index", "remove"]


@calling(make_index, IndexOptions)
def index(  # type: ignore[empty-body]  # `make_index` is its body
    data: Annotated[Any, Option(Topic.PLACES, recorded=False, form="PATH")],
    /,
    out: Annotated[str | Path, Option(Topic.PLACES, recorded=False), values.path] = "bundle",
    *,
    title: Annotated[str, Option(Topic.TEXTS, recorded=True), values.one_line] = "",
    description: Annotated[str, Option(Topic.TEXTS, recorded=True), values.one_line] = "",
    text_column: Annotated[
        str | Sequence[str] | None, Option(Topic.TEXTS, recorded=True, form="COLUMN"), values.column_names
    ] = None,
    id_column: Annotated[str | None, Option(Topic.TEXTS, recorded=True), values.name] = None,
    column: Annotated[
        Mapping[str, str] | None, Option(Topic.TEXTS, recorded=True, adds=True, form="NAME=TYPE"), values.column_types
    ] = None,
    separator: Annotated[str | None, Option(Topic.TEXTS, recorded=True), values.one_character] = None,
    decimal_comma: Annotated[bool, Option(Topic.TEXTS, recorded=True)] = False,
    strict: Annotated[bool, Option(Topic.TEXTS, recorded=False)] = False,
    describe: Annotated[
        Mapping[str, str] | None, Option(Topic.DOCUMENTS, recorded=True, form="NAME=TEXT"), values.lines_by_name
    ] = None,
    base_url: Annotated[str, Option(Topic.DOCUMENTS, recorded=True)] = "",
    anchors: Annotated[
        Literal["auto", "github", "mkdocs", "sphinx", "docusaurus"], Option(Topic.DOCUMENTS, recorded=True)
    ] = "auto",
    exclude: Annotated[Sequence[str], Option(Topic.DOCUMENTS, recorded=True), list] = (),
    include: Annotated[Sequence[str], Option(Topic.DOCUMENTS, recorded=True), list] = (),
    ignore: Annotated[bool, Option(Topic.DOCUMENTS, recorded=True)] = True,
    follow_symlinks: Annotated[bool, Option(Topic.DOCUMENTS, recorded=True)] = False,
    drafts: Annotated[bool, Option(Topic.DOCUMENTS, recorded=True)] = False,
    split: Annotated[bool, Option(Topic.DOCUMENTS, recorded=True, embeds=True)] = False,
    passage_tokens: Annotated[
        int, Option(Topic.DOCUMENTS, recorded=True, embeds=True), values.at_least(1)
    ] = PASSAGE_TOKENS,
    overlap: Annotated[int, Option(Topic.DOCUMENTS, recorded=True, embeds=True), values.at_least(0)] = 0,
    keywords: Annotated[bool, Option(Topic.KEYWORDS, recorded=True)] = True,
    stem: Annotated[str | None, Option(Topic.KEYWORDS, recorded=True, without="keywords"), values.stem_language] = None,
    title_column: Annotated[str | None, Option(Topic.KEYWORDS, recorded=True, without="keywords"), values.name] = None,
    language_column: Annotated[
        str | None, Option(Topic.KEYWORDS, recorded=True, without="keywords"), values.name
    ] = None,
    synonyms: Annotated[
        str | Path | Sequence[Sequence[str]] | None,
        Option(Topic.KEYWORDS, recorded=True, without="keywords", form="FILE"),
        values.synonyms,
    ] = None,
    fusion_weight: Annotated[
        float, Option(Topic.KEYWORDS, recorded=True, without="keywords"), values.share
    ] = FUSION_WEIGHT,
    boost: Annotated[
        Mapping[str, Any] | None, Option(Topic.KEYWORDS, recorded=True, form="JSON"), values.mapping
    ] = None,
    model: Annotated[str | Path | None, Option(Topic.MODEL, recorded=False)] = None,
    revision: Annotated[str | None, Option(Topic.MODEL, recorded=True, converts=("model",))] = None,
    pooling: Annotated[
        Literal["mean", "cls", "max"] | None, Option(Topic.MODEL, recorded=True, converts=("model",))
    ] = None,
    dimensions: Annotated[
        int | None, Option(Topic.MODEL, recorded=True, converts=("model",)), values.at_least(1)
    ] = None,
    query_prompt: Annotated[str | None, Option(Topic.MODEL, recorded=True, converts=("model",))] = None,
    document_prompt: Annotated[str | None, Option(Topic.MODEL, recorded=True, converts=("model",))] = None,
    similarity: Annotated[Literal["cosine"] | None, Option(Topic.MODEL, recorded=False, converts=("model",))] = None,
    calibration: Annotated[Path | None, Option(Topic.MODEL, recorded=False, converts=("model", "rerank"))] = None,
    calibration_column: Annotated[str | None, Option(Topic.MODEL, recorded=False, needs="calibration")] = None,
    cache: Annotated[bool, Option(Topic.MODEL, recorded=False)] = True,
    embedded_by: Annotated[
        str | None, Option(Topic.MODEL, recorded=False, needs="embeddings", can_be_older=True), values.one_name
    ] = None,
    rerank: Annotated[str | Path | None, Option(Topic.RERANKER, recorded=False)] = None,
    rerank_revision: Annotated[str | None, Option(Topic.RERANKER, recorded=False, needs="rerank")] = None,
    rerank_weight: Annotated[
        float | None, Option(Topic.RERANKER, recorded=False, needs="rerank", can_be_older=True), values.share
    ] = None,
    queries: Annotated[Literal["model", "table"], Option(Topic.RERANKER, recorded=True)] = "model",
    questions: Annotated[Path | None, Option(Topic.RERANKER, recorded=False)] = None,
    learn: Annotated[bool, Option(Topic.RERANKER, recorded=False)] = False,
    update: Annotated[str | Path | None, Option(Topic.RUN, recorded=False), values.path] = None,
    wait: Annotated[float, Option(Topic.RUN, recorded=False, form="SECONDS"), values.seconds] = 0,
    mode: Annotated[Mode | None, Option(Topic.RUN, recorded=False, in_python_alone=True, flags=MODES)] = None,
    ray: Annotated[str | None, Option(Topic.RUN, recorded=False, embeds=True)] = None,
    device: Annotated[str, Option(Topic.RUN, recorded=False, embeds=True), values.device] = "cpu",
    dtype: Annotated[
        Literal["int8", "float16", "float32"] | None, Option(Topic.RUN, recorded=False, embeds=True)
    ] = None,
    embeddings: Annotated[Any, Option(Topic.RUN, recorded=False, form="FILE")] = None,
    progress: Annotated[bool | OnProgress, Option(Topic.RUN, recorded=False, in_python_alone=True)] = True,
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
            or a table (CSV, TSV, JSON lines, Parquet, plain or .gz), either as s3://BUCKET/KEY. Several folders of
            documents make one index. From Python also a list of folders as Path objects, a pandas or polars DataFrame,
            an Arrow table or a sequence of mappings.
        out: folder of the index.
        title: what the texts are called; names the tool for agents.
        description: what the texts are about, in a sentence or two, for agents that choose a tool.
        text_column: column of the texts, or several, whose texts are joined by a line break, such as name,description;
            the first of several is the title column too. Without it, the column `text` or the only one.
        id_column: column of the ids. For a pandas DataFrame without a column of this name, index means the labels of an
            index without a name. Without it, the named index of a DataFrame, the column `id` or the row number.
        column: type of another column for filters, such as year=number: string, number, boolean, date, list (strings),
            numbers (a list of them) or none, which leaves the column out. Without it, the type that all values have.
        separator: character that separates the fields of a CSV. Without it, a comma.
        decimal_comma: read numbers of a CSV such as 3,50 or 1.234,50.
        strict: stop at a document that cannot be read, or a row whose value has another type than its column. Otherwise
            such a value is a warning, and filters cannot use the column.
        describe: what one of several folders has, such as notes="minutes of meetings"; its texts carry that too.
        base_url: address at which the folder of documents is published; that of each of several folders ends in its
            name. file: means the files on this machine.
        anchors: whose addresses of pages and headings Markdown has. auto is docusaurus if a docusaurus.config is in the
            folder or above it, mkdocs if a mkdocs.yml is, and otherwise github.
        exclude: leave out documents whose path ends in this form, such as 404.html or drafts/*.
        include: read files of other suffixes too, as plain text, whose path ends in this form, such as *.py or
            src/*.toml. What `exclude` and `ignore` leave out stays out.
        ignore: leave out what .gitignore and .ignore files name, and installed packages and build output. A folder with
            an index.html is read whole.
        follow_symlinks: follow symbolic links that lead out of the folder. Otherwise they are left out and counted.
        drafts: read pages too that ask not to be published or found, such as those with draft: true or noindex.
        split: divide long texts of a table instead of truncating them.
        passage_tokens: maximum tokens of a passage of a document or of a divided text.
        overlap: tokens of a passage that repeat the end of the one before.
        keywords: write what keyword and hybrid search need.
        stem: language whose word endings keyword search ignores, such as german, or none. Without it, english.
        title_column: column with the titles of the texts; keyword search finds its words too and counts them more.
        language_column: column with the language of each text (german, de or de-AT), whose endings keyword search
            ignores; `stem` is for texts without a language. Pages of a site that is not in English alone have one,
            unless it is none.
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
        embedded_by: what has made the embeddings, in your words, such as openai/text-embedding-3-small: the index has
            no model then. It is for tables, and needs `embeddings`, also for each row that an update adds or changes.
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
        wait: seconds to wait for another command that writes into the index. Without it, the index is refused at once.
        mode: what becomes of the texts of the older index: `replace` leaves out those that are not among the new ones,
            `add` keeps them, with new texts at the end, whose ids must be new, and `upsert` keeps those whose ids are
            not among the new ones. Without it, an index that would lose texts is refused, unless the texts come from
            the path or address that it was made from.
        ray: embed on the Ray cluster at this address; auto takes the one that Ray finds, or starts one on this machine.
        device: what embeds the texts: the processor (cpu) with the 8-bit model of the index, or with the float model
            all GPUs (cuda), one of them (cuda:1) or Apple's (mps). auto takes a GPU if there is one.
        dtype: numbers that the model embeds the texts with. Without it, int8 on the processor and float16 on a GPU;
            float32 works on both.
        embeddings: embeddings of the texts, which you have already, by this model or by what `embedded_by` says: a row
            for each row of the table, also for blank texts. A file (.npy, .safetensors, or .parquet with one column of
            lists), or from Python an array.
        progress: display it on a terminal and in a notebook; or a function that is called with the step, its share
            and the number of embedded texts.

    Raises:
        OptionError: an option has a wrong value, or has no effect without another one.
        CorpusError: the texts are not what the options say, or have no form that can be read.
        OSError: a file is missing or cannot be read.
        ModelError: the model cannot be converted.
        BundleError: the older bundle cannot be used, or the new one failed a check; the older one stays as it was.
        PackagesError: a package is missing; the message has the command that installs it.
    """


@contextmanager
def changing(
    bundle: str | Path = "bundle", *, wait: float = 0, progress: bool | OnProgress = True
) -> Iterator[Changing]:
    """Yield the texts of an index for several changes, of which one new bundle is made at the end of the block.

    The methods `add`, `upsert` and `remove` of the yielded object change the texts. In an index without a model, `add`
    and `upsert` also take `embeddings`, as `index` does. Until the end of the block, searches find the older texts, and
    no other command can change the index. If the block raises, nothing is changed. Afterwards `summary` says what was
    made, None if nothing was changed.

    Example:
        >>> from semsearch import changing
        >>> with changing("bundle") as texts:
        ...     texts.upsert([{"sku": "c-2", "name": "A very light coat", "brand": "North", "price": 120}])
        ...     texts.remove(where={"price": {"$lt": 100}})
        >>> texts.summary.manifest.corpus.rows
        1

    Raises BundleError if the folder has no index of texts, or if another command still changes it after `wait` seconds.
    """
    with (
        naming_arguments(names_of_arguments(index)),
        chosen_progress(progress) as on_progress,
        ExitStack() as block,
    ):
        waiting = WaitingProgress(on_progress)

        def begin() -> Changing:
            options = options_for(index, IndexOptions, out=bundle, wait=wait, mode="replace", progress=waiting)
            if texts_of(Path(bundle)) is None:
                require_free(Path(bundle))  # another process can be moving its files
                require_index(Path(bundle))
            return block.enter_context(changing_index(options))

        yield when_free(begin, wait, waiting.wait)


def remove(
    ids: Id | Iterable[Id] = (),
    bundle: str | Path = "bundle",
    *,
    where: Mapping[str, Any] | None = None,
    wait: float = 0,
    progress: bool | OnProgress = True,
) -> IndexSummary:
    """Remove texts from an index by their ids, or by one id, and those that a filter finds.

    The others keep their embeddings, ids and metadata. The filter is that of a search, such as {"year": {"$lt": 2020}}.
    `wait` is the number of seconds to wait for another command that writes into the index.

    Example:
        >>> from semsearch import remove
        >>> remove(["c-2"], "bundle").manifest.corpus.rows
        1

    Raises OptionError for what is no id, BundleError if the index lacks one of the ids, or if it cannot be used, and
    FilterError for a wrong filter. Then nothing is changed.
    """
    with changing(bundle, wait=wait, progress=progress) as texts:
        texts.remove(ids, where=where)
    assert texts.summary is not None  # a call of `remove` changes it
    return texts.summary
