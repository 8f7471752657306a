"""The searches of a bundle for all questions, as requests to /similar make them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from semsearch.engine.bundle import BY_MODEL, BundleError
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.hits import MOST_HITS, Hit, Mask
from semsearch.engine.loading import LoadedBundle, load_bundle
from semsearch.engine.metadata.filters import FilterError, allowed_rows
from semsearch.engine.quantization import Embeddings
from semsearch.engine.rerank.reranker import Logits, Reranker
from semsearch.engine.tensors import Array
from semsearch.engine.values import id_of_number
from semsearch.evaluation.advice import Advice, advise, weights_with
from semsearch.evaluation.measures import (
    DEPTH,
    HYBRID,
    KEYWORD,
    MEASURED_MODES,
    MODELED,
    RERANKED,
    SEARCHES,
    SEMANTIC,
    measure,
    rank,
)
from semsearch.indexing.progress import OnProgress
from semsearch.indexing.questions import Question
from semsearch.search.executor import Executor, finish
from semsearch.search.making import make_search
from semsearch.search.query import Query, SearchFunction

RERANK_CANDIDATES = 20  # texts that the reranker scores if a request does not say how many
LISTED_IDS = 3  # maximum missing ids that a message lists
ROWS_BETWEEN = 1_000  # rows that are read between two reports of progress

BestHits = dict[str, Hit]  # the best DEPTH names, best first, each with its best hit


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """An open bundle, and the names by which its rows are judged: ids, or values of the column of --group-by."""

    folder: Path
    loaded: LoadedBundle
    names: Sequence[str]  # name of each row
    rows: Mapping[str, int]  # the first row of each name

    @property
    def default_mode(self) -> str:
        """Return the mode of a request that names none."""
        if self.loaded.keywords is None:
            return SEMANTIC
        return HYBRID

    @property
    def reranked(self) -> str | None:
        """Return the mode with rerank whose weights are compared, None without a reranker."""
        if self.loaded.manifest.rerank is None:
            return None
        return RERANKED[self.default_mode]


@dataclass(frozen=True, slots=True)
class ModeResults:
    """What the searches found for n questions.

    measures has (n, 5) float64 for each mode, in the order of MEASURES. advice has the keys "fusion", about the mode
    hybrid, and "rerank", about `OpenBundle.reranked`, if these modes were measured without a filter; sweeps has the
    measures that it comes from.
    """

    questions: Sequence[Question]
    rankings: dict[str, list[BestHits]]
    measures: dict[str, Array[np.float64]]
    advice: dict[str, Advice | None]
    sweeps: dict[str, "Sweep"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweep:
    """What n questions measure with each weight of two scores: measures is (n, weights, 5)."""

    weights: list[float]
    measures: Array[np.float64]


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How the questions are searched: arguments of `evaluate` with these names."""

    candidates: int = RERANK_CANDIDATES
    correct: bool = True
    fusion_weight: float | None = None
    boost: dict[str, Any] | None = None


def open_named(folder: Path, group_by: str | None, on_progress: OnProgress) -> OpenBundle:
    """Open a bundle and read the names of its rows. The name of a row without a value in the column is its id.

    Raises BundleError if the bundle cannot be used, or if no row has a single value in the column.
    """
    bundle = load_bundle(folder)
    passages, step = bundle.passages, f"read the ids of {folder}"
    names: list[str] = []
    rows: dict[str, int] = {}
    has_column = group_by is None
    for row in range(len(passages)):
        if row % ROWS_BETWEEN == 0:
            on_progress(step, row / len(passages))
        name = passages.id(row)
        if group_by is not None:
            value = passages.metadata(row).get(group_by)
            if value is not None:
                name = _group_name(value, f"the column {group_by!r} of {name!r}", folder)
                has_column = True
        names.append(name)
        rows.setdefault(name, row)
    on_progress(step, 1)
    if not has_column:
        known = ", ".join(bundle.columns.kinds) or "none"
        expected = f"one that texts have, such as one that filters compare ({known})"
        raise BundleError(f"{folder}: found no column {group_by!r}, expected {expected}; correct --group-by")
    return OpenBundle(folder, bundle, names, rows)


def _group_name(value: object, place: str, folder: Path) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return id_of_number(value)
    found = f"a list or an object in {place}"
    raise BundleError(f"{folder}: found {found}, expected one value; name another column with --group-by")


def choose_modes(opened: OpenBundle, named: Sequence[str]) -> list[str]:
    """Return the named modes, or all modes of the bundle if none is named. Raises BundleError if it lacks one."""
    plain: tuple[str, ...] = (SEMANTIC,)
    if opened.loaded.keywords is not None:
        plain = SEARCHES
    if opened.loaded.embedder is None:
        plain = _modes_without_model(opened, named)
    has = plain
    if opened.reranked is not None:
        has += tuple(RERANKED[mode] for mode in plain)
    if opened.loaded.table is not None:
        has += tuple(MODELED[mode] for mode in plain if mode in MODELED)
    for mode in named:
        if mode not in has:
            expected = f"one of its modes {', '.join(has)}; name one, or make the bundle with what {mode} needs"
            raise BundleError(f"{opened.folder}: found the mode {mode!r}, expected {expected}")
    return [mode for mode in MEASURED_MODES if mode in (named or has)]


def _modes_without_model(opened: OpenBundle, named: Sequence[str]) -> tuple[str, ...]:
    """Return the modes of a bundle without a model. Raises BundleError for a mode by meaning."""
    by_meaning = [mode for mode in named if not mode.startswith(KEYWORD)]
    if opened.loaded.keywords is None or by_meaning:
        found = f"the mode {by_meaning[0]!r}" if by_meaning else "no keywords"
        reason = "the bundle has no model to embed the questions"
        raise BundleError(f"{opened.folder}: found {found}, expected the mode {KEYWORD!r}, because {reason}")
    return (KEYWORD,)


def check_ids(opened: OpenBundle, questions: Sequence[Question], where: Path) -> None:
    """Raise BundleError if the bundle lacks relevant ids of questions."""
    expected = {name: question for question in questions for name, grade in question.relevant.items() if grade}
    if missing := [name for name in expected if name not in opened.rows]:
        first = ", ".join(f"{name!r} (question {expected[name].id})" for name in missing[:LISTED_IDS])
        more = ""
        if len(missing) > LISTED_IDS:
            more = ", ..."
        remedy = "correct them, name their column with --group-by, or count them as not found with --allow-missing"
        raise BundleError(
            f"{where}: found {len(missing):,} of {len(expected):,} relevant ids that {opened.folder} does not have: "
            f"{first}{more}; expected such as {next(iter(opened.rows))!r}; {remedy}"
        )


def filter_questions(
    opened: OpenBundle, questions: Sequence[Question], condition: Mapping[str, Any]
) -> tuple[list[Question], Mask]:
    """Return the questions with relevant texts within a filter, each with only those texts, and the filter's rows.

    Raises BundleError if the filter cannot be used, or if it leaves no question.
    """
    shown = json.dumps(condition, ensure_ascii=False)
    try:
        allowed = allowed_rows(condition, opened.loaded.columns)
    except FilterError as error:
        known = ", ".join(f"{name} ({kind})" for name, kind in opened.loaded.columns.kinds.items()) or "none"
        raise BundleError(f"--filter {shown}: {error}; correct it: the columns are {known}") from error
    inside = {opened.names[row] for row in np.flatnonzero(allowed).tolist()}
    limited = (
        replace(each, relevant={name: grade for name, grade in each.relevant.items() if name in inside})
        for each in questions
    )
    kept = [question for question in limited if any(question.relevant.values())]
    if not kept:
        found = f"no question whose relevant texts pass it, in {allowed.sum():,} texts that do"
        raise BundleError(f"--filter {shown}: found {found}, expected at least one; name another filter")
    return kept, allowed


def search_all(
    opened: OpenBundle,
    questions: Sequence[Question],
    modes: Sequence[str],
    on_progress: OnProgress,
    settings: SearchSettings,
    allowed: Mask | None = None,
) -> ModeResults:
    """Search for each question in each mode, among the allowed rows (rows,) bool, and return the measures."""
    bundle = opened.loaded
    step = f"search {opened.folder}"
    weighed: dict[str, tuple[str, float]] = {}
    if allowed is None:
        weighed = _current_weights(opened, modes)
    else:
        bundle = bundle.among(allowed)
        step += f", {allowed.sum():,} texts"
    weights = {kind: weights_with(current) for kind, (_, current) in weighed.items()}
    by_weight: dict[str, list[list[Array[np.float64]]]] = {kind: [] for kind in weighed}
    rankings: dict[str, list[BestHits]] = {mode: [] for mode in modes}
    candidates = settings.candidates
    for place, question in enumerate(questions):
        on_progress(step, place / len(questions))
        executor = _OnceExecutor(bundle.embedder)
        search = make_search(bundle, executor)
        plain = Query(question.text, include=(), correct=settings.correct, boost=settings.boost)
        for mode in modes:
            query = _in_mode(plain, mode, candidates)
            if query.mode == HYBRID:
                query = replace(query, fusion_weight=settings.fusion_weight)
            rankings[mode].append(_rank(opened, search, query))
        measured = partial(_measured, opened, question, search)
        if "fusion" in weighed:
            query = replace(plain, mode=HYBRID)
            by_weight["fusion"].append([measured(replace(query, fusion_weight=each)) for each in weights["fusion"]])
        if "rerank" in weighed:
            query = replace(plain, mode=opened.default_mode, rerank=candidates)
            if query.mode == HYBRID:
                query = replace(query, fusion_weight=settings.fusion_weight)
            by_weight["rerank"].append([measured(replace(query, rerank_weight=each)) for each in weights["rerank"]])
    on_progress(step, 1)
    measures = {
        mode: np.array([measure(list(own), each.relevant) for own, each in zip(found, questions, strict=True)])
        for mode, found in rankings.items()
    }
    sweeps = {kind: Sweep(weights[kind], np.array(by_weight[kind])) for kind in weighed}
    advice = {}
    for kind, (_, current) in weighed.items():
        ndcg = sweeps[kind].measures[:, :, 0]
        advice[kind] = advise(ndcg, weights[kind], ndcg[:, weights[kind].index(current)], current)
    return ModeResults(questions, rankings, measures, advice, sweeps)


def _current_weights(opened: OpenBundle, modes: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Return the weights to compare by their names: for each, the measured mode that uses it, and its value now."""
    found: dict[str, tuple[str, float]] = {}
    keywords, rerank = opened.loaded.keywords, opened.loaded.manifest.rerank
    if keywords is not None and HYBRID in modes:
        found["fusion"] = (HYBRID, keywords.info.fusion_weight)
    reranked = opened.reranked
    if rerank is not None and reranked is not None and reranked in modes:
        found["rerank"] = (reranked, rerank.weight)
    return found


def _in_mode(query: Query, measured: str, candidates: int) -> Query:
    """Return a query as one of MEASURED_MODES searches for it."""
    mode, _, addition = measured.partition("+")
    query = replace(query, mode=mode)
    if addition == "rerank":
        return replace(query, rerank=candidates)
    if addition == BY_MODEL:
        return replace(query, queries=BY_MODEL)
    return query


def _measured(opened: OpenBundle, question: Question, search: SearchFunction, query: Query) -> Array[np.float64]:
    return measure(list(_rank(opened, search, query)), question.relevant)


class _OnceExecutor(Executor):
    """Embeds the text of a question and scores its pairs once for all of its searches."""

    def __init__(self, embedder: Embedder | None) -> None:
        super().__init__(embedder)
        self._embeddings: dict[tuple[int, ...], Embeddings] = {}
        self._logits: dict[tuple[int, ...], float] = {}

    async def embed(self, tokens: Sequence[TokenIds], *, is_check: bool = False) -> Embeddings:
        (text,) = tokens
        if (key := tuple(text.ids)) not in self._embeddings:
            self._embeddings[key] = await super().embed(tokens)
        return self._embeddings[key]

    async def score(self, reranker: Reranker, pairs: Sequence[TokenIds]) -> Logits:
        keys = [tuple(pair.ids) for pair in pairs]
        missing = {key: pair for key, pair in zip(keys, pairs, strict=True) if key not in self._logits}
        self._logits.update(zip(missing, reranker.score(list(missing.values())).tolist(), strict=True))
        return np.array([self._logits[key] for key in keys], np.float32)


def _rank(opened: OpenBundle, search: SearchFunction, query: Query) -> BestHits:
    """Return the best DEPTH names. Hits beyond those of a request are searched until DEPTH names are found."""
    count = MOST_HITS
    while True:
        found = finish(search(replace(query, num_results=count), lambda phase: None))
        best: BestHits = {}
        for result, score in zip(found.results, found.scores, strict=True):
            best.setdefault(opened.names[result["index"]], Hit(result["index"], score))
        if len(found.results) < count or len(best) >= DEPTH:
            break
        count *= 4
    scores = {name: hit.score for name, hit in list(best.items())[:DEPTH]}
    return {name: best[name] for name in rank(scores)}
