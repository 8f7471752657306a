"""The steps from texts to a bundle: `make_index` is what a call of `index` does."""

import html
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from semsearch.engine.bundle import PASSAGES, BundleError, Manifest, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.argument_names import Names, as_arguments
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.language import warn_of_language
from semsearch.indexing.corpus.passages import stored_rows
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.digests import Positions
from semsearch.indexing.embedding import EmbeddedTexts, EmbedderChoice, embed, find_places, take_rows
from semsearch.indexing.errors import require_packages
from semsearch.indexing.keyword_choice import KeywordChoice
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.models.placing import ModelChoice, PlacedModels, RerankerChoice, place_models
from semsearch.indexing.modes import Mode, count_left_out, require_mode, texts_of
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.options import recorded_options
from semsearch.indexing.progress import OnProgress, chosen_progress
from semsearch.indexing.replacing import FINISHED, BusyError, replacing
from semsearch.indexing.row_changes import RowChanges
from semsearch.indexing.texts import (
    ReadTexts,
    TextOptions,
    Texts,
    make_splitter,
    merge_older,
    opening_texts,
    read_texts,
    write_place,
)
from semsearch.indexing.update_file import RowDigests, recipe_of, write_update
from semsearch.indexing.vectors.embed import EmbeddedCorpus, embed_texts
from semsearch.indexing.vectors.floor import measure_floor
from semsearch.indexing.vectors.indexer import WrittenIndex, write_index, write_truncated
from semsearch.indexing.vectors.query_table import QueryOptions, learn_queries
from semsearch.indexing.vectors.recall import sample_spans
from semsearch.indexing.verification import (
    LEAST_VERIFIED,
    VERIFIED_PASSAGES,
    VERIFIED_SHARE,
    Check,
    verify_given,
    verify_new,
)


class FailedChecksError(BundleError):
    """A new bundle failed some of its checks; `checks` has all of them."""

    def __init__(self, message: str, checks: Sequence[Check]) -> None:
        super().__init__(message)
        self.checks = checks


@dataclass(frozen=True, slots=True, repr=False)
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
    # What embedded the new texts, if it was not this machine's processor with the index's model. Without a model, it is
    # the word of the option `embedded_by`.
    embedded_by: str = ""
    model_from: Path | None = None  # the folder of the cache, or of a package, that the model was copied from
    warnings: tuple[str, ...] = ()

    def _shown(self) -> dict[str, str]:
        """Return what a notebook displays."""
        index, name = self.manifest.corpus, self.manifest.model.name
        columns = ", ".join(f"{column} ({kind})" for column, kind in index.columns.items())
        embedded = {"embedded": f"{self.rows.embedded:,}", "model": name}
        if not self.manifest.has_model:
            embedded = {"embedded_by": name}
        return {
            "out": str(self.out),
            "texts": f"{index.rows:,}",
            **embedded,
            "columns": columns,
            "seconds": f"{self.seconds:.1f}",
            "warnings": "; ".join(self.warnings),
        }

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._shown().items() if value)
        return f"IndexSummary({shown})"

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        cells = ((html.escape(name), html.escape(value)) for name, value in self._shown().items() if value)
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in cells)
        return f"<table><tbody>{rows}</tbody></table>"


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
    recorded_before: Mapping[str, Any] | None  # those that the index in `out` records, None without an index
    argument_names: Names  # what messages for Python have in place of the command's options

    def require_unchanged(self) -> None:
        """Raise BusyError if another command has changed the index in `out` since the options were read."""
        if recorded_options(self.out) != self.recorded_before:
            raise BusyError(f"{self.out}: was changed by another command at the same time; run the command again")


def make_index(data: Any, options: IndexOptions) -> IndexSummary:
    """Read the texts, place the model, merge, embed, write, learn, measure and verify; return what was made."""
    started = perf_counter()
    options.embedder.require_packages()
    with (
        chosen_progress(options.progress) as on_progress,
        replacing(options.out) as fresh,
        opening_texts(data, options.texts) as texts,
    ):
        options.require_unchanged()
        older, damage = open_older(options, on_progress)
        try:
            made = make_bundle(texts, fresh=fresh, older=older, options=options, on_progress=on_progress)
        except Exception:  # if another process has replaced the older index meanwhile, that is the error to show
            if older is not None:
                older.require_unchanged()
            raise
    warnings = (*filter(None, [damage]), *made.warnings)
    return replace(made, warnings=warnings, seconds=perf_counter() - started)


def make_bundle(
    texts: Texts, *, fresh: Path, older: OlderIndex | None, options: IndexOptions, on_progress: OnProgress
) -> IndexSummary:
    """Make the bundle of texts in the unfinished folder `fresh`, and return what was made."""
    started = perf_counter()
    models, read = place_and_read(texts, fresh=fresh, options=options, older=older, on_progress=on_progress)
    corpus, report, changes = read.corpus, read.report, read.changes
    embedder = models.open_embedder()
    given = texts.given_rows(corpus, report, models.manifest.model, embedder)
    merged = None if texts.plan is None else texts.plan.places
    mode, place = options.mode, texts.place
    if older is not None and mode in ("add", "upsert"):
        new_texts = len(corpus.texts)
        corpus, changes, merged = merge_older(
            corpus, texts=texts, passages=fresh / PASSAGES, options=options.texts, older=older, mode=mode
        )
        if len(corpus.texts) > new_texts:
            place = ""  # no place has all texts
    write_place(fresh, place)
    if embedder is None:
        places = find_places(changes, corpus, given, merged)
        changes = with_given(changes, places)
    left_out = count_losses(changes, has_ids=corpus.has_ids, texts=texts, options=options)
    is_measured = changes.need_measurement(models.manifest)
    warning = None
    if is_measured:
        warning = warn_of_language(
            corpus.texts,
            texts.name,
            is_default_model=models.is_default,
            has_default_stems=options.keywords.has_default_stems(corpus, report),
            stated=report.of_site.get("language", ()),
        )
    if embedder is None:
        embedding = take_rows(places, changes, given=given, fresh=fresh, manifest=models.manifest)
    else:
        embedding = embed(
            corpus,
            changes,
            fresh=fresh,
            out=options.out,
            models=models,
            embedder=embedder,
            choice=options.embedder,
            given=given,
            on_progress=on_progress,
        )
    recorded = with_title_column(options, corpus)
    written = write_parts(
        corpus,
        changes,
        is_measured=is_measured,
        fresh=fresh,
        models=models,
        embedder=embedder,
        rows=embedding.rows,
        name=texts.name,
        keywords=options.keywords.options_of(corpus, report),
        recorded=recorded,
        on_progress=on_progress,
    )
    if older is not None:
        older.require_unchanged()
    manifest = learn_queries(
        fresh,
        written.manifest,
        options.queries,
        older=options.update,
        new_rows=len(corpus.texts) - embedding.rows.updated,
        on_progress=on_progress,
    )
    if is_measured and embedder is not None:
        manifest = measure_floor(fresh, manifest, on_progress)
    write_update(
        fresh,
        manifest,
        recipe_of(recorded),
        {**written.kept, **read.kept},
        changed_rows=0 if is_measured else changes.count_since_measured(),
    )
    checks = require_checks(
        fresh,
        embedder=embedder,
        embedding=embedding,
        is_measured=is_measured,
        out=options.out,
        on_progress=on_progress,
    )
    repeated_ids = changes.repeated_ids
    warnings = (
        *embedding.warnings,
        *filter(None, [warning]),
        *warn_of_texts(corpus, report, repeated_ids, left_out if options.mode is None else 0),
    )
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
        warnings=tuple(as_arguments(each, options.argument_names) for each in warnings),
    )


def open_older(options: IndexOptions, on_progress: OnProgress) -> tuple[OlderIndex | None, str | None]:
    """Return the index that is updated, None if there is none with texts, and a warning if it is damaged.

    Raises BundleError or TensorsError if it is damaged and its texts are needed, or if it is not the one in `out`.
    """
    update = options.update
    if update is None or read_manifest(update).corpus_or_none is None:
        return None, None
    on_progress("read the older bundle", 0)
    try:
        older = OlderIndex.open(update, recipe_of(options.recorded))
    except (BundleError, TensorsError) as error:
        if update != options.out or options.mode in ("add", "upsert"):
            raise
        made = "all texts were embedded again"
        if options.texts.embedded_by is not None:
            made = "nothing of it was taken over"
        return None, f"the older index is damaged, so {made}: {str(error).partition(';')[0]}"
    on_progress("read the older bundle", 1)
    return older, None


def place_and_read(
    texts: Texts, *, fresh: Path, options: IndexOptions, older: OlderIndex | None, on_progress: OnProgress
) -> tuple[PlacedModels, ReadTexts]:
    """Place the model into the unfinished folder, and write the texts there.

    The texts come first, so that a wrong table is an error before a model is converted, unless the tokenizer of the
    model measures passages.
    """
    models, splitter = None, None
    if texts.need_splitter(options.texts):
        require_packages(texts.name, "documents")
        models = place_models(fresh, options.update, options.models, options.reranker, on_progress)
        splitter = make_splitter(models.documents_folder, models.documents, options.texts)
    merged_into = None
    if options.mode in ("add", "upsert"):
        merged_into, older = older, None
    read = read_texts(
        texts,
        passages=fresh / PASSAGES,
        options=options.texts,
        splitter=splitter,
        older=older,
        on_progress=on_progress,
        merged_into=merged_into,
    )
    if options.texts.embedded_by is not None:
        models = PlacedModels.none(fresh, options.texts.embedded_by, _dim_of(texts, options))
    elif models is None:
        models = place_models(fresh, options.update, options.models, options.reranker, on_progress)
    return models, read


def _dim_of(texts: Texts, options: IndexOptions) -> int:
    """Return the number of values of an embedding in an index without a model."""
    if options.update is not None:
        return read_manifest(options.update).model.dim
    assert texts.embeddings is not None  # a new index has them: see `Option.needs`
    return int(texts.embeddings.shape[1])


def with_given(changes: RowChanges, places: Positions) -> RowChanges:
    """Return the changes of an index without a model, which also count the rows that only got another embedding.

    places (rows,) say where the embedding of each row is, as `find_places` returns them.
    """
    is_given = (places >= changes.older_count) & (changes.older_rows >= 0)
    return replace(changes, given_again=int(np.count_nonzero(is_given)))


def count_losses(changes: RowChanges, *, has_ids: bool, texts: Texts, options: IndexOptions) -> int:
    """Return how many texts of the index in `out` are not in the new one. Raises BundleError if nobody said so."""
    older, out = changes.older, options.out
    if older is not None and older.folder == out:
        before = older.digests.at(changes.gone)
    elif texts_of(out) is not None:
        try:
            before = RowDigests.of(stored_rows(out / PASSAGES), has_prefixes=False)
        except TensorsError:  # `open_older` warns of a damaged index
            return 0
    else:
        return 0
    left_out = count_left_out(before, changes.digests, has_ids=has_ids)
    if options.mode is None:
        require_mode(out, left_out, texts.place, texts.name)
    elif options.mode != "replace" and left_out and options.update != out:
        raise BundleError(
            f"{out}: has {left_out:,} texts that mode {options.mode} would leave out, because it keeps those of "
            f"{options.update}; choose another folder, or leave out --update"
        )
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
    changes: RowChanges,
    *,
    is_measured: bool,
    fresh: Path,
    models: PlacedModels,
    embedder: Embedder | None,
    rows: EmbeddedCorpus,
    name: str,
    keywords: KeywordOptions | None,
    recorded: Mapping[str, Any],
    on_progress: OnProgress,
) -> WrittenIndex:
    """Write the index, the columns and the keywords into the unfinished folder."""
    on_progress("write the index", 0)
    write_truncated(fresh, corpus.ids, rows.is_truncated)
    spans = None
    if is_measured and embedder is not None:
        if models.documents_folder != fresh:  # another model embeds queries
            embedder = Embedder.open(fresh, models.manifest.model)
        spans = embed_texts(embedder, sample_spans(corpus.texts), role="query")
    written = write_index(
        fresh,
        models.manifest,
        corpus,
        rows=(rows.codes, rows.scales),
        spans=spans,
        name=name,
        keywords=keywords,
        embedded_by=rows.embedded_by,
        options=recorded,
        changes=changes,
        is_measured=is_measured,
    )
    on_progress("write the index", 1)
    return written


def require_checks(
    fresh: Path,
    *,
    embedder: Embedder | None,
    embedding: EmbeddedTexts,
    is_measured: bool,
    out: Path,
    on_progress: OnProgress,
) -> tuple[Check, ...]:
    """Verify the unfinished bundle, and return its checks. Raises FailedChecksError if one failed."""
    rows = embedding.rows
    new = np.flatnonzero(rows.older_rows < 0)
    if embedding.given is not None:
        checks = tuple(verify_given(fresh, embedding.given, new, is_measured, on_progress))
    else:
        assert embedder is not None  # it has embedded the rows
        most = max(LEAST_VERIFIED, rows.embedded // VERIFIED_SHARE)
        checks = tuple(verify_new(fresh, embedder, new, min(most, VERIFIED_PASSAGES), is_measured, on_progress))
    if not all(check.passed for check in checks):
        shutil.rmtree(fresh / FINISHED, ignore_errors=True)  # a piece may be wrong: the next call makes all again
        raise FailedChecksError(f"{out}: the new bundle failed a check; what was there before stays as it was", checks)
    return checks


def warn_of_texts(corpus: Corpus, report: ReadReport, repeated_ids: int, left_out: int) -> Iterator[str]:
    """Yield a warning for each thing in the texts that a search treats otherwise than their owner can expect.

    left_out is how many texts of the older index are left out although no mode was stated.
    """
    for name in report.unkept:
        yield f"{name} is left out, because JSON cannot hold the values of such a column"
    yield from report.warnings
    yield from corpus.mixed.values()
    if repeated_ids:
        texts = f"{repeated_ids:,} texts have the id of an earlier one"
        yield f"{texts}: `get` finds the first, and a removal or an upsert changes all"
    if left_out:
        yield f"{left_out:,} texts of the older index are left out, because they are not among the new ones"
