"""The searches of a bundle for all questions, as requests to /similar make them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from export.corpus.ids import id_of_number
from export.evaluation.fusion_weight import weights_with
from export.evaluation.measures import DEPTH, HYBRID, KEYWORD, MODES, RERANKED, SEARCHES, SEMANTIC, measure, rank
from export.evaluation.questions import Question
from export.progress import OnProgress
from function.engine.arrays import Array
from function.engine.bundle import CONVEX, BundleError, KeywordsInfo
from function.engine.hybrid import fuse
from function.engine.loading import LoadedBundle, load_bundle
from function.engine.metadata.columns import Mask
from function.engine.metadata.filters import FilterError, allowed_rows
from function.engine.rerank.blend import blended
from function.engine.rerank.reranker import Logits
from function.engine.semantic.index import MOST_HITS, Hit

CANDIDATES = 20  # texts that the reranker scores if a request does not say how many
SHOWN = 3  # missing ids that a message lists
ROWS_BETWEEN = 1_000  # two reports of how many ids are read

Ranking = dict[str, Hit]  # the best DEPTH names, best first, each with its best hit
Find = Callable[[int], list[Hit]]  # takes a number of hits, and returns at most as many, best first


@dataclass(frozen=True, slots=True)
class OpenBundle:
    """An open bundle and what its rows are compared by: their ids, or their values in the column of --group-by."""

    folder: Path
    loaded: LoadedBundle
    names: Sequence[str]  # name of each row
    rows: Mapping[str, int]  # the first row of each name

    @property
    def fusion_weight(self) -> float | None:
        """Return the weight of the meaning, None if the bundle fuses ranks or has no keywords."""
        info = None if self.loaded.keywords is None else self.loaded.keywords.info
        return info.fusion_weight if info is not None and info.fusion == CONVEX else None

    @property
    def reranked(self) -> str | None:
        """Return the mode with rerank whose weights are compared: hybrid if there is one; None without a reranker."""
        if self.loaded.manifest.rerank is None:
            return None
        return RERANKED[SEMANTIC if self.loaded.keywords is None else HYBRID]


@dataclass(frozen=True, slots=True)
class Results:
    """What the searches found for n questions.

    measures has (n, 5) float64 for each mode, in the order of MEASURES. by_weight is (n, weights) float64: nDCG@10 of
    hybrid search with each of the weights; None without the mode hybrid or with a filter. by_rerank_weight is the same
    for the weights of the reranker, with `OpenBundle.reranked`.
    """

    questions: Sequence[Question]
    rankings: dict[str, list[Ranking]]
    measures: dict[str, Array[np.float64]]
    by_weight: Array[np.float64] | None
    weights: Sequence[float]
    by_rerank_weight: Array[np.float64] | None
    rerank_weights: Sequence[float]


def open_named(folder: Path, group_by: str | None, on_progress: OnProgress) -> OpenBundle:
    """Open a bundle and read the names of its rows. A row without a value in the column has its id as its name.

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
        if group_by is not None and (value := passages.metadata(row).get(group_by)) is not None:
            if not isinstance(value, str | int | float):
                found = f"a list or an object in the column {group_by!r} of {name!r}"
                raise BundleError(f"{folder}: found {found}, expected one value; name another column with --group-by")
            name, has_column = value if isinstance(value, str) else id_of_number(value), True
        names.append(name)
        rows.setdefault(name, row)
    on_progress(step, 1)
    if not has_column:
        known = ", ".join(bundle.columns.kinds) or "none"
        expected = f"one that texts have, such as one that filters compare ({known})"
        raise BundleError(f"{folder}: found no column {group_by!r}, expected {expected}; correct --group-by")
    return OpenBundle(folder, bundle, names, rows)


def choose_modes(opened: OpenBundle, named: Sequence[str]) -> list[str]:
    """Return the modes that were named, or else all that the bundle has. Raises BundleError if it lacks a named one."""
    has: tuple[str, ...] = SEARCHES if opened.loaded.keywords is not None else (SEMANTIC,)
    if opened.reranked is not None:
        has += tuple(RERANKED[mode] for mode in has)
    for mode in named:
        if mode not in has:
            if mode in RERANKED.values() and opened.reranked is None:
                remedy = "name another --mode, or export the bundle again with --rerank MODEL"
                raise BundleError(f"{opened.folder}: found no reranker, expected one for the mode {mode!r}; {remedy}")
            remedy = "name another --mode, or export the texts again without --no-keywords"
            raise BundleError(f"{opened.folder}: found no keywords, expected them for the mode {mode!r}; {remedy}")
    return [mode for mode in MODES if mode in (named or has)]


def check_ids(opened: OpenBundle, questions: Sequence[Question], where: Path) -> None:
    """Raise BundleError if the bundle lacks ids that answer questions."""
    expected = {name: question for question in questions for name, grade in question.relevant.items() if grade}
    if missing := [name for name in expected if name not in opened.rows]:
        first = ", ".join(f"{name!r} (question {expected[name].id})" for name in missing[:SHOWN])
        more = ", ..." if len(missing) > SHOWN else ""
        remedy = "correct them, name their column with --group-by, or count them as not found with --allow-missing"
        raise BundleError(
            f"{where}: found {len(missing):,} of {len(expected):,} relevant ids that {opened.folder} does not have: "
            f"{first}{more}; expected such as {next(iter(opened.rows))!r}; {remedy}"
        )


def filter_questions(
    opened: OpenBundle, questions: Sequence[Question], condition: dict[str, Any]
) -> tuple[list[Question], Mask]:
    """Return the questions that texts within a filter answer, without their other texts, and the filter's rows.

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
    allowed: Mask | None = None,
    candidates: int = CANDIDATES,
    *,
    correct: bool = True,
) -> Results:
    """Search for each question in each mode, among the rows that `allowed` (rows,) bool keeps, and measure.

    candidates is how many texts the reranker scores. correct replaces misspelled words.
    """
    weights = weights_with(opened.fusion_weight)
    info = opened.loaded.manifest.rerank
    rerank_weights = weights_with(None if info is None else info.weight)
    by_rerank_weight = np.zeros((len(questions), len(rerank_weights)))
    rankings: dict[str, list[Ranking]] = {mode: [] for mode in modes}
    by_weight = np.zeros((len(questions), len(weights)))
    step = f"search {opened.folder}" + ("" if allowed is None else f", {allowed.sum():,} texts")
    for place, question in enumerate(questions):
        on_progress(step, place / len(questions))
        finders = _finders(opened, question.text, allowed, weights, correct=correct)
        by_weight_of_rerank = _add_reranked(opened, question.text, modes, finders, rerank_weights, candidates)
        for mode in modes:
            rankings[mode].append(_rank(opened, finders[mode]))
        if HYBRID in modes and allowed is None:
            for column, weight in enumerate(weights):
                found = _rank(opened, finders[weight])
                by_weight[place, column] = measure(list(found), question.relevant)[0]
        for column, find in enumerate(by_weight_of_rerank):
            by_rerank_weight[place, column] = measure(list(_rank(opened, find)), question.relevant)[0]
    on_progress(step, 1)
    measures = {
        mode: np.array([measure(list(own), each.relevant) for own, each in zip(found, questions, strict=True)])
        for mode, found in rankings.items()
    }
    return Results(
        questions,
        rankings,
        measures,
        by_weight if HYBRID in modes and allowed is None else None,
        weights,
        by_rerank_weight if opened.reranked in modes and allowed is None else None,
        rerank_weights,
    )


def _finders(
    opened: OpenBundle, text: str, allowed: Mask | None, weights: Sequence[float], *, correct: bool
) -> dict[str | float, Find]:
    """Return the searches for one question: that of each mode, and hybrid search with each of these weights."""
    bundle = opened.loaded
    (embedding,) = bundle.embedder.embed(bundle.embedder.tokenize([text], role="query"))
    finders: dict[str | float, Find] = {SEMANTIC: lambda count: bundle.index.search(embedding, count, allowed)}
    if (keywords := bundle.keywords) is None:
        return finders
    matches = keywords.match(text, allowed, correct=correct)

    def fusing(info: KeywordsInfo) -> Find:
        return lambda count: fuse(bundle.index, embedding, matches, info, count)

    finders |= {KEYWORD: matches.best, HYBRID: fusing(keywords.info)}
    weighted = {weight: replace(keywords.info, fusion=CONVEX, fusion_weight=weight) for weight in weights}
    return finders | {weight: fusing(info) for weight, info in weighted.items()}


def _add_reranked(
    opened: OpenBundle,
    text: str,
    modes: Sequence[str],
    finders: dict[str | float, Find],
    weights: Sequence[float],
    candidates: int,
) -> list[Find]:
    """Add the searches of the modes with rerank; return that of `opened.reranked` with each of these weights."""
    by_weight: list[Find] = []
    for mode in [mode for mode in SEARCHES if RERANKED[mode] in modes]:
        reranker = opened.loaded.reranker
        assert reranker is not None  # choose_modes checked it
        find = finders[mode]
        hits = find(candidates)
        if not hits:
            finders[RERANKED[mode]] = find
            by_weight = [find] * len(weights) if RERANKED[mode] == opened.reranked else by_weight
            continue
        pairs = reranker.tokenize_pairs(text, [opened.loaded.passages.text(hit.row) for hit in hits])
        blend = partial(_blend, find, hits, reranker.score(pairs), mode)
        finders[RERANKED[mode]] = blend(reranker.info.weight)
        if RERANKED[mode] == opened.reranked:
            by_weight = [blend(weight) for weight in weights]
    return by_weight


def _blend(find: Find, hits: list[Hit], logits: Logits, mode: str, weight: float) -> Find:
    both = blended(lambda count, mask: find(count), hits, logits, weight, mode)
    return lambda count: both(count, None)


def _rank(opened: OpenBundle, find: Find) -> Ranking:
    """Return the best DEPTH names. Hits beyond those of a request are searched until DEPTH names are found."""
    count = MOST_HITS
    while True:
        hits = find(count)
        best: Ranking = {}
        for hit in hits:
            best.setdefault(opened.names[hit.row], hit)
        if len(hits) < count or len(best) >= DEPTH:
            break
        count *= 4
    scores = {name: hit.score for name, hit in list(best.items())[:DEPTH]}
    return {name: best[name] for name in rank(scores)}
