"""The commands of `python -m export`, step by step. Arguments, progress and summaries are in other files."""

import argparse
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from rich.markup import escape

from semsearch.commands.console import TerminalConsole, python_module
from semsearch.commands.export_arguments import PUBLISHING, content_options, parse_arguments
from semsearch.commands.summary import SummaryRows, corpus_rows, print_checks, print_summary
from semsearch.engine.bundle import (
    BY_TABLE,
    CONVEX,
    NO_STEMS,
    PASSAGES,
    RERANK_TOKENIZER,
    TOKENIZER,
    BundleError,
    Manifest,
    read_manifest,
)
from semsearch.engine.metadata.filters import FilterError
from semsearch.engine.tensors import TensorsError
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus import Corpus, CorpusError, fetching_corpus, read_corpus, read_texts
from semsearch.indexing.corpus.passages import writing_passages
from semsearch.indexing.documents import Reading, Splitter, is_documents, read_documents
from semsearch.indexing.errors import ClusterError, PackagesError, require_packages
from semsearch.indexing.files import FINISHED, find_kept, replacing
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import DEFAULT_MODEL_SHA256, Source, find_model, read_cross_encoder, read_source
from semsearch.indexing.processes import in_own_process
from semsearch.indexing.progress import OnProgress, ProgressLines, showing_progress

if TYPE_CHECKING:
    from semsearch.conversion.calibration import CalibrationTexts
    from semsearch.engine.embedder import Embedder
    from semsearch.indexing.verification import Check

BROKEN = (ModelError, BundleError, TensorsError)  # errors of what a command reads
CHANGE_NO_BUNDLE = ("verify", "evaluate", "site", *PUBLISHING)

console = TerminalConsole()
errors = TerminalConsole(stderr=True)


def main(arguments: Sequence[str] | None = None, prog: str | None = None) -> int:
    """Run the command line; return the exit code.

    0: done, 1: bad input or a failed check, 2: unusable arguments, 130: interrupted. Raises SystemExit with 141 if the
    reader of standard output has ended, and with 143 after SIGTERM.
    """
    words = sys.argv[1:] if arguments is None else arguments
    options = parse_arguments(words, prog)
    try:
        if options.ray is not None:
            require_packages("--ray", "cluster", "ray")
        match options.command:
            case "verify":
                return _verify(options)
            case "evaluate":
                from semsearch.evaluation.command import run as evaluate

                return evaluate(options, console, errors)
            case "site":
                from semsearch.site.command import run as write_site

                return write_site(options, console)
            case command if command in PUBLISHING:
                from semsearch.publishing.commands import run

                return run(options, console)
            case _ if isinstance(options.update, str):
                with TemporaryDirectory() as folder:
                    _fetch_published(options.update, Path(folder))
                    return _export(parse_arguments(words, prog, Path(folder)))
            case _:
                return _export(options)
    except (ClusterError, CorpusError, FilterError, PackagesError, OSError, *BROKEN) as error:
        message = str(error).partition("\n")[0]
        if isinstance(error, OSError) and error.filename:
            message = f"{error.filename}: {error.strerror}"
        kept = _describe_kept(options)
        errors.print(f"[red]error:[/] {escape(message + (f' ({kept})' if kept else ''))}")
        return 1
    except (KeyboardInterrupt, SystemExit) as stop:  # SystemExit after SIGTERM, or if nobody reads standard output
        errors.print(f"[red]interrupted:[/] {escape(_describe_kept(options) or 'run the command again')}")
        if isinstance(stop, SystemExit):
            raise
        return 130


def _describe_kept(options: argparse.Namespace) -> str:
    kept = None if options.command in CHANGE_NO_BUNDLE else find_kept(options.out)
    return f"{kept} keeps what is finished for the next export" if kept else ""


def _fetch_published(url: str, folder: Path) -> None:
    require_packages("--update s3://…", "publish", "boto3")
    from semsearch.publishing.bucket import connect
    from semsearch.publishing.store import Store

    with closing(connect("s3")) as client, showing_progress(console) as on_progress:
        Store(client, url).fetch(folder, on_progress)


def _export(options: argparse.Namespace) -> int:
    """Export the model, unless that of another bundle is kept, and except for `model` a corpus; replace the bundle."""
    started = time.perf_counter()
    with_texts = options.command != "model"
    older: Path | None = options.update or (options.out if options.command == "corpus" else None)
    model_from = older if options.model is None else None  # the bundle whose model the new one has
    if model_from is not None and not model_from.is_dir():
        read_manifest(model_from)  # raises the error that says how to make a bundle

    from semsearch.indexing.models.cache import require_own_documents_model
    from semsearch.indexing.vectors.indexer import take_model

    reranker = None
    if options.rerank is not None:
        reranker = read_cross_encoder(*find_model(options.rerank, options.rerank_revision))
    with replacing(options.out) as fresh:
        if model_from is not None and with_texts:
            require_own_documents_model(model_from)
        if options.corpus is None and not options.remove_corpus:
            _refuse_to_remove_texts(options.out, brings_documentation=with_texts)
        with showing_progress(console) as on_progress:

            def model(corpus: Corpus | None = None) -> Manifest:
                manifest = None if model_from is None else take_model(model_from, fresh)
                if manifest is None or reranker is not None:
                    manifest = _make_models(options, fresh, corpus, manifest, reranker, on_progress)
                return _weigh_reranker(options, fresh, manifest)

            corpus, made = _read_corpus(options, fresh, on_progress, model) if with_texts else (None, None)
            manifest = made or model(corpus)
        rows = None
        if corpus is not None:
            manifest, rows = _write_corpus(fresh, manifest, corpus, options)
    print_summary(console, options.out, manifest, rows, time.perf_counter() - started)
    return 0


def _refuse_to_remove_texts(out: Path, brings_documentation: bool) -> None:
    """Raise BundleError if the folder holds the user's own texts: the file that they come from can be gone.

    If brings_documentation is true, the new bundle holds Python's own documentation, and can replace the same.
    """
    from semsearch.indexing.corpus.python_documentation import NAME

    try:
        index = read_manifest(out).index
    except BundleError:  # without a manifest, any texts count as the user's own
        index = None
    if (brings_documentation and index and index.corpus == NAME) or not (index or (out / PASSAGES).exists()):
        return
    found = f"{index.rows:,} texts from {index.corpus}" if index else PASSAGES
    name_them = "name your texts with --corpus FILE, " if brings_documentation else ""
    raise BundleError(
        f"{out}: holds {found}; this command would remove them, expected a folder without texts; {name_them}choose "
        "another folder with --out, or add --remove-corpus"
    )


def _make_models(
    options: argparse.Namespace,
    fresh: Path,
    corpus: Corpus | None,
    manifest: Manifest | None,
    reranker: Source | None,
    on_progress: OnProgress,
) -> Manifest:
    """Write model and reranker into the unfinished bundle and return the manifest; reuse what was converted before.

    manifest is that of a model which is there already, None to write the model too. An update keeps the reranker of its
    bundle, unless --rerank names another.
    """
    from semsearch.indexing.models import cache as model_cache
    from semsearch.indexing.vectors.indexer import take_reranker, write_model

    @cache
    def calibration() -> "CalibrationTexts":
        require_packages("MODEL", "export")
        documentation = corpus if corpus is not None and options.corpus is None else None
        return _read_calibration(options, on_progress, documentation)

    if manifest is None:
        source, folder = None, None
        is_own = options.no_cache or options.calibration is not None  # only this export uses the converted model
        if model_cache.can_convert():
            prompts = {"query": options.query_prompt, "document": options.document_prompt}
            found = find_model(options.model, options.revision)
            source = read_source(*found, options.pooling, options.dimensions, prompts)
            folder = model_cache.cached_folder(source, fresh, calibration() if is_own else None)
        elif not is_own:
            folder = model_cache.find_cached(options)
        manifest = model_cache.take_cached(folder, fresh)
        if manifest is None:
            texts = calibration()
            assert source is not None  # otherwise packages are missing
            assert folder is not None
            manifest = model_cache.make_model(source, texts, folder, fresh, on_progress)
        else:
            console.print(escape(f"The model comes from the cache: {folder}"))
    if reranker is not None:
        from semsearch.conversion.reranker import export_reranker  # imports torch

        info = export_reranker(reranker, calibration(), fresh, on_progress)
        if (fresh / RERANK_TOKENIZER).read_bytes() == (fresh / TOKENIZER).read_bytes():
            (fresh / RERANK_TOKENIZER).unlink()
        return write_model(fresh, manifest.model, info)
    return manifest if options.update is None else take_reranker(options.update, fresh, manifest)


def _weigh_reranker(options: argparse.Namespace, fresh: Path, manifest: Manifest) -> Manifest:
    from semsearch.indexing.vectors.indexer import write_model

    if options.rerank_weight is None:
        return manifest
    if manifest.rerank is None:
        raise BundleError(f"{options.out}: --rerank-weight found no reranker; add one with --rerank MODEL")
    return write_model(fresh, manifest.model, replace(manifest.rerank, weight=options.rerank_weight))


def _verify(options: argparse.Namespace) -> int:
    from semsearch.indexing.verification import verify

    def checks(on_progress: OnProgress) -> "Iterator[Check]":
        yield from verify(options.bundle, on_progress)
        if options.model is not None:
            from semsearch.conversion.convert import check_closeness

            on_progress("compare with float32", 0)
            yield check_closeness(options.bundle, options.model)
            on_progress("compare with float32", 1)

    if print_checks(console, checks):
        return 0
    again = python_module("export", "MODEL", "--corpus", "FILE", "--out", options.bundle)
    message = f"{options.bundle}: a check failed; export the model and the texts again: {again}"
    console.print(f"[red]{escape(message)}[/]")
    return 1


def _read_corpus(
    options: argparse.Namespace, fresh: Path, on_progress: OnProgress, model: Callable[[], Manifest]
) -> tuple[Corpus, Manifest | None]:
    """Return the texts that --corpus names, or else Python's own documentation.

    Without --calibration, that documentation also calibrates the model, whatever --corpus names (`_read_calibration`):
    a change of its texts changes the bytes of every model.
    They are written into the unfinished bundle, and the texts of a file are read from there again.
    Passages are measured with the model's tokenizer: in that case `model` writes the model first, and its manifest is
    returned too.
    """
    from semsearch.indexing.columns import choose_types, numeric_strings
    from semsearch.indexing.corpus.columns import require_column
    from semsearch.indexing.corpus.python_documentation import NAME, python_documentation
    from semsearch.indexing.keywords import row_languages
    from semsearch.indexing.models.cache import find_documents_model

    step = "read texts"
    on_progress(step, 0)
    manifest = None
    if options.corpus is None:
        corpus = in_own_process(python_documentation)  # its syntax trees take 200 MB
        with writing_passages(fresh / PASSAGES) as append:
            for row in zip(corpus.texts, corpus.ids, corpus.metadata, strict=True):
                append(*row)
    else:
        named = options.text_column, options.id_column
        with fetching_corpus(options.corpus) as path:
            has_documents = named == (None, None) and is_documents(path)
            if has_documents or options.split:
                require_packages("--corpus", "documents")
                manifest = model()
                folder, documents = find_documents_model(fresh, manifest)
                splitter = Splitter(
                    read_tokenizer(folder / TOKENIZER), documents.model, options.passage_tokens, options.overlap
                )
            if has_documents:
                exclude = tuple(options.exclude or ())
                reading = Reading(splitter, options.base_url, options.anchors, exclude, options.strict)
                corpus = read_documents(path, fresh / PASSAGES, reading, on_progress)
            else:
                split = splitter.split if options.split else None
                of_csv = options.separator, options.decimal_comma
                corpus = read_corpus(path, fresh / PASSAGES, *named, on_progress, split, *of_csv)
    name = options.corpus or Path(NAME)
    columns = choose_types(corpus, options.column, name)
    unasked = {column: kind for column, kind in columns.items() if column not in options.column}
    corpus = replace(corpus, numeric_strings=tuple(numeric_strings(corpus, unasked)))
    if corpus.is_csv:
        columns |= dict.fromkeys(corpus.numeric_strings, "number")
    title, *others = (options.text_column or "").split(",")
    if others and title in columns and options.title_column is None:
        options.title_column = title  # the first of several text columns
    if options.title_column is not None:
        require_column(name, columns, options.title_column, "--title-column")
    if options.language_column is not None:
        require_column(name, columns, options.language_column, "--language-column")
        deque(row_languages(corpus, options.language_column, None, name), maxlen=0)  # a wrong language is an error now
    corpus = replace(corpus, columns=columns, options=content_options(options))
    on_progress(step, 1)
    return corpus, manifest


def _read_calibration(
    options: argparse.Namespace, on_progress: OnProgress, documentation: Corpus | None
) -> "CalibrationTexts":
    from semsearch.conversion.calibration import split_documentation, split_texts
    from semsearch.indexing.corpus.python_documentation import python_documentation

    if options.calibration is None and documentation is not None:
        return split_documentation(documentation)
    on_progress("read calibration", 0)
    if options.calibration is None:
        texts = split_documentation(in_own_process(python_documentation))
    else:
        texts = split_texts(read_texts(options.calibration, options.calibration_column, "--calibration-column"))
    on_progress("read calibration", 1)
    return texts


def _write_corpus(
    fresh: Path, manifest: Manifest, corpus: Corpus, options: argparse.Namespace
) -> tuple[Manifest, SummaryRows]:
    """Embed the corpus into the unfinished bundle and verify it; return the manifest and the summary's rows.

    Raises BundleError if a check fails.
    """
    from semsearch.engine.embedder import Embedder
    from semsearch.indexing.cluster import Cluster
    from semsearch.indexing.corpus.folder import as_text
    from semsearch.indexing.corpus.language import warn_of_language
    from semsearch.indexing.corpus.python_documentation import NAME
    from semsearch.indexing.keywords import FUSION_WEIGHT, STEMMING, KeywordOptions
    from semsearch.indexing.models.cache import find_documents_model
    from semsearch.indexing.vectors.embed import embed_corpus, embed_here, embed_texts, open_older_rows
    from semsearch.indexing.vectors.indexer import write_index, write_truncated
    from semsearch.indexing.vectors.recall import sample_spans
    from semsearch.indexing.vectors.shards import name_model
    from semsearch.indexing.verification import LEAST_VERIFIED, VERIFIED_PASSAGES, VERIFIED_SHARE, verify

    name = NAME if options.corpus is None else as_text(options.corpus.name)
    stemming = None if options.stem == NO_STEMS else options.stem or STEMMING
    weight = FUSION_WEIGHT if options.fusion_weight is None else options.fusion_weight
    columns = options.title_column, options.language_column
    keywords = (
        KeywordOptions(stemming, options.fusion or CONVEX, weight, *columns, options.synonyms or ())
        if options.keywords
        else None
    )
    has_default_stems = keywords is not None and options.stem is None and options.language_column is None
    is_default_model = manifest.model.source_sha256 == DEFAULT_MODEL_SHA256
    if warning := warn_of_language(corpus.texts, name, is_default_model, has_default_stems):
        errors.print(f"[yellow]warning:[/] {escape(warning)}")
    folder, documents = find_documents_model(fresh, manifest)
    embedder = Embedder.open(folder, documents.model)
    cluster = None if options.ray is None else Cluster(options.ray, folder)
    # Ray displays its own bars, which would overwrite ours
    with showing_progress(console) if cluster is None else nullcontext(ProgressLines(console)) as on_progress:
        older = None
        if options.update is not None:
            on_progress("read the older bundle", 0)
            older = open_older_rows(options.update, manifest)
            on_progress("read the older bundle", 1)
        began = time.perf_counter()
        embed = embed_here if cluster is None else cluster.embed
        rows = embed_corpus(embedder, corpus.embedded_texts, fresh, name_model(manifest), older, on_progress, embed)
        seconds = time.perf_counter() - began
        on_progress("write the index", 0)
        write_truncated(fresh, corpus.ids, rows.is_truncated)
        own = embedder if folder == fresh else Embedder.open(fresh, manifest.model)
        spans = embed_texts(own, sample_spans(corpus.texts), role="query")
        manifest = write_index(fresh, manifest, corpus, (rows.codes, rows.scales), spans, name, keywords)
        on_progress("write the index", 1)
        if options.queries == BY_TABLE:
            manifest = _write_queries(options, fresh, manifest, own, len(corpus.texts) - rows.updated, on_progress)

    def checks(on_progress: OnProgress) -> "Iterator[Check]":
        verified = max(LEAST_VERIFIED, rows.embedded // VERIFIED_SHARE)
        return verify(fresh, on_progress, embedder, min(verified, VERIFIED_PASSAGES))

    if not print_checks(console, checks):
        shutil.rmtree(fresh / FINISHED, ignore_errors=True)  # a piece may be wrong: the next export makes all again
        raise BundleError(f"{options.out}: the new bundle failed a check above; what was there before stays as it was")
    on_cluster = [] if cluster is None else [("cluster", cluster.describe())]
    return manifest, [*corpus_rows(options.out, manifest, corpus, rows, seconds), *on_cluster]


def _write_queries(
    options: argparse.Namespace,
    fresh: Path,
    manifest: Manifest,
    embedder: "Embedder",
    new_rows: int,
    on_progress: OnProgress,
) -> Manifest:
    """Write the query table, or keep that of the bundle of --update, which lacks new_rows of the passages."""
    from semsearch.evaluation.questions import read_questions
    from semsearch.indexing.vectors.query_table import keep_table, write_table

    if options.update is not None and not options.learn and options.questions is None:
        kept = keep_table(options.update, fresh, manifest, new_rows)
        if kept is not None:
            return kept
    questions = [] if options.questions is None else [each.text for each in read_questions(options.questions)[0]]
    return write_table(fresh, manifest, embedder, questions, on_progress)
