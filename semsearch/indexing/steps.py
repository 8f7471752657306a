"""The steps from texts to a bundle: `make_index` is what a call of `index` does."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from semsearch.engine.bundle import PASSAGES, BundleError, Manifest
from semsearch.engine.embedder import Embedder
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.language import warn_of_language
from semsearch.indexing.corpus.merging import Mode, count_left_out, require_mode
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.embedding import EmbedderChoice, embed
from semsearch.indexing.errors import require_packages
from semsearch.indexing.keyword_choice import KeywordChoice
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.models.placing import ModelChoice, PlacedModels, RerankerChoice, place_models
from semsearch.indexing.progress import OnProgress, chosen_progress
from semsearch.indexing.replacing import FINISHED, replacing
from semsearch.indexing.texts import TextOptions, Texts, make_splitter, merge_older, opening_texts, read_texts
from semsearch.indexing.vectors.embed import EmbeddedCorpus, embed_texts
from semsearch.indexing.vectors.floor import measure_floor
from semsearch.indexing.vectors.indexer import write_index, write_truncated
from semsearch.indexing.vectors.query_table import QueryOptions, learn_queries
from semsearch.indexing.vectors.recall import sample_spans
from semsearch.indexing.verification import LEAST_VERIFIED, VERIFIED_PASSAGES, VERIFIED_SHARE, Check, verify


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
    report: ReadReport
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


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """The options of a call of `index`, checked, with those of the index that it updates: see `all_options`.

    Each step has a dataclass with the options that it needs, whose fields have the names of options.
    """

    out: Path
    update: Path | None
    mode: Mode | None
    progress: bool | OnProgress
    texts: TextOptions
    models: ModelChoice
    reranker: RerankerChoice
    keywords: KeywordChoice
    embedder: EmbedderChoice
    queries: QueryOptions
    recorded: Mapping[str, Any]  # those that the manifest records


def make_index(data: Any, options: IndexOptions) -> IndexSummary:
    """Read the texts, place the model, merge, embed, write, learn, measure and verify; return what was made."""
    started = perf_counter()
    options.embedder.require_packages()
    with (
        chosen_progress(options.progress) as on_progress,
        replacing(options.out) as fresh,
        opening_texts(data, options.texts) as texts,
    ):
        models, corpus, report = place_and_read(texts, fresh=fresh, options=options, on_progress=on_progress)
        embedder = models.open_embedder()
        given = texts.given_rows(corpus, report, embedder)
        corpus = merge_older(
            corpus,
            texts=texts,
            passages=fresh / PASSAGES,
            options=options.texts,
            older=options.update,
            mode=options.mode,
        )
        left_out = count_losses(corpus, texts=texts, out=options.out, mode=options.mode)
        warning = warn_of_language(
            corpus.texts,
            texts.name,
            is_default_model=models.is_default,
            has_default_stems=options.keywords.has_default_stems(corpus, report),
        )
        embedding = embed(
            corpus,
            fresh=fresh,
            out=options.out,
            older=options.update,
            models=models,
            embedder=embedder,
            choice=options.embedder,
            given=given,
            on_progress=on_progress,
        )
        manifest = write_parts(
            corpus,
            fresh=fresh,
            models=models,
            embedder=embedder,
            rows=embedding.rows,
            name=texts.name,
            keywords=options.keywords.options_of(corpus, report),
            recorded=with_title_column(options, corpus),
            on_progress=on_progress,
        )
        manifest = learn_queries(
            fresh,
            manifest,
            options.queries,
            older=options.update,
            new_rows=len(corpus.texts) - embedding.rows.updated,
            on_progress=on_progress,
        )
        manifest = measure_floor(fresh, manifest, on_progress)
        checks = require_checks(fresh, embedder=embedder, rows=embedding.rows, out=options.out, on_progress=on_progress)
        repeated_ids = corpus.repeated_ids
    return IndexSummary(
        out=options.out,
        manifest=manifest,
        corpus=replace(corpus, texts=(), ids=(), metadata=()),
        report=report,
        repeated_ids=repeated_ids,
        left_out=left_out,
        rows=embedding.rows,
        prompts=models.prompts,
        checks=checks,
        embedding_seconds=embedding.seconds,
        seconds=perf_counter() - started,
        embedded_by=embedding.embedded_by,
        model_from=models.from_cache,
        warnings=(
            *embedding.warnings,
            *filter(None, [warning]),
            *warn_of_texts(corpus, report, repeated_ids, left_out if options.mode is None else 0),
        ),
    )


def place_and_read(
    texts: Texts, *, fresh: Path, options: IndexOptions, on_progress: OnProgress
) -> tuple[PlacedModels, Corpus, ReadReport]:
    """Place the model into the unfinished folder, and write the texts there.

    The texts come first, so that a wrong table is an error before a model is converted, unless the tokenizer of the
    model measures passages.
    """
    models, splitter = None, None
    if texts.need_splitter(options.texts):
        require_packages(texts.name, "documents")
        models = place_models(fresh, options.update, options.models, options.reranker, on_progress)
        splitter = make_splitter(models, options.texts)
    corpus, report = read_texts(
        texts,
        passages=fresh / PASSAGES,
        options=options.texts,
        splitter=splitter,
        older=options.update,
        on_progress=on_progress,
    )
    if models is None:
        models = place_models(fresh, options.update, options.models, options.reranker, on_progress)
    return models, corpus, report


def count_losses(corpus: Corpus, *, texts: Texts, out: Path, mode: Mode | None) -> int:
    """Return how many texts of the index in `out` are not in the new one. Raises BundleError if nobody said so."""
    left_out = count_left_out(out, corpus)
    if mode is None:
        require_mode(out, left_out, texts.place, texts.name)
    return left_out


def with_title_column(options: IndexOptions, corpus: Corpus) -> dict[str, Any]:
    """Return the options that the manifest records, with the column of the titles also if nobody has chosen one."""
    title_column = options.keywords.title_column_of(corpus)
    found = dict(options.recorded)
    if title_column is not None:
        found["title_column"] = title_column
    return dict(sorted(found.items()))


def write_parts(
    corpus: Corpus,
    *,
    fresh: Path,
    models: PlacedModels,
    embedder: Embedder,
    rows: EmbeddedCorpus,
    name: str,
    keywords: KeywordOptions | None,
    recorded: Mapping[str, Any],
    on_progress: OnProgress,
) -> Manifest:
    """Write the index, the columns and the keywords into the unfinished folder, and return its manifest."""
    on_progress("write the index", 0)
    write_truncated(fresh, corpus.ids, rows.is_truncated)
    if models.documents_folder != fresh:  # another model embeds queries
        embedder = Embedder.open(fresh, models.manifest.model)
    manifest = write_index(
        fresh,
        models.manifest,
        corpus,
        rows=(rows.codes, rows.scales),
        spans=embed_texts(embedder, sample_spans(corpus.texts), role="query"),
        name=name,
        keywords=keywords,
        embedded_by=rows.embedded_by,
        options=recorded,
    )
    on_progress("write the index", 1)
    return manifest


def require_checks(
    fresh: Path, *, embedder: Embedder, rows: EmbeddedCorpus, out: Path, on_progress: OnProgress
) -> tuple[Check, ...]:
    """Verify the unfinished bundle, and return its checks. Raises FailedChecksError if one failed."""
    verified = max(LEAST_VERIFIED, rows.embedded // VERIFIED_SHARE)
    checks = tuple(verify(fresh, on_progress, embedder, min(verified, VERIFIED_PASSAGES)))
    if not all(check.passed for check in checks):
        shutil.rmtree(fresh / FINISHED, ignore_errors=True)  # a piece may be wrong: the next call makes all again
        raise FailedChecksError(f"{out}: the new bundle failed a check; what was there before stays as it was", checks)
    return checks


def warn_of_texts(corpus: Corpus, report: ReadReport, repeated_ids: int, left_out: int) -> Iterator[str]:
    """Yield a warning for each thing in the texts that a search treats otherwise than their owner can expect.

    left_out is how many texts of the older index are left out although no mode was stated.
    """
    for name in report.left_out:
        yield f"{name} is left out, because JSON cannot hold the values of such a column"
    yield from corpus.mixed.values()
    if repeated_ids:
        texts = f"{repeated_ids:,} texts have the id of an earlier one"
        yield f"{texts}: `get` finds the first, and a removal or an upsert changes all"
    if left_out:
        yield f"{left_out:,} texts of the older index are left out, because they are not among the new ones"
