"""Measure how well an index answers questions whose answers are known: `evaluate`, and the result that it returns.

The command `semsearch evaluate` has the options of this function, and prints its result.
"""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.engine.errors import OptionError
from semsearch.engine.metadata.boosts import read_boosts
from semsearch.evaluation.advice import Advice
from semsearch.evaluation.measures import HYBRID, MEASURES, TITLES, MeasuredMode
from semsearch.evaluation.report import BundleComparison, Failure, JudgedText, Subset
from semsearch.evaluation.search import (
    RERANK_CANDIDATES,
    BestHits,
    ModeResults,
    OpenBundle,
    SearchSettings,
    check_ids,
    choose_modes,
    filter_questions,
    open_named,
    search_all,
)
from semsearch.evaluation.statistics import Figure, figure, randomization_test
from semsearch.indexing.argument_names import argument_names, naming_arguments
from semsearch.indexing.progress import OnProgress, chosen_progress
from semsearch.indexing.questions import IN_MEMORY, Question, questions_of
from semsearch.search.query import MOST_CANDIDATES

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars

FAILURES = 5  # questions that a result shows
SHOWN_TEXTS = 3  # expected texts and returned texts of each of them
FOUND_IDS = 10  # ids of the first hits in a row of a frame


class Differences(list[BundleComparison]):
    """How an evaluation differs from another one, a row for each mode and measure: see `Evaluation.compare`."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each mode and measure.

        `value` is the mean of this evaluation, `other` that of the other one, and `difference` their difference, whose
        95 % confidence interval is from `low` to `high`. `better` and `worse` count questions. `p` is that of the
        paired randomization test.
        """
        return [
            {
                "mode": each.mode,
                "measure": each.measure,
                "value": each.other + each.difference.value,
                "other": each.other,
                "difference": each.difference.value,
                "low": each.difference.low,
                "high": each.difference.high,
                "better": each.better,
                "worse": each.worse,
                "p": each.p,
            }
            for each in self
        ]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas.DataFrame with the rows of `to_dicts`."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def to_polars(self) -> "polars.DataFrame":
        """Return a polars.DataFrame with the rows of `to_dicts`."""
        import polars

        return polars.DataFrame(self.to_dicts())

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        rows = self.to_dicts()
        return _table([*rows[0]], [[_shown(value) for value in row.values()] for row in rows])


class Evaluation:
    """What `evaluate` has measured. The means are in `measures`, by mode and measure; a frame has a row per question.

    Example:
        >>> from semsearch import evaluate
        >>> evaluation = evaluate("bundle", [{"query": "a warm coat", "relevant": ["c-1"]}])
        >>> evaluation.measures["hybrid"]["mrr@10"].value
        1.0
    """

    def __init__(
        self, opened: OpenBundle, results: ModeResults, subsets: Sequence[Subset], notes: Sequence[str]
    ) -> None:
        """Take the hits, and their measures: first of all questions, then of those within each filter."""
        self._opened = opened
        self.results: ModeResults = results
        self.bundle: Path = opened.folder
        self.texts: int = len(opened.names)
        self.questions: Sequence[Question] = results.questions
        self.notes: list[str] = list(notes)  # what was left out of the questions
        self.subsets: list[Subset] = list(subsets)
        self.advice: Advice | None = results.advice.get("fusion")  # about fusion_weight
        self.rerank_advice: Advice | None = results.advice.get("rerank")

    @property
    def measures(self) -> dict[str, dict[str, Figure]]:
        """Return the mean of each mode and measure over all questions, with its 95 % confidence interval."""
        return self.subsets[0].modes

    @property
    def shown_mode(self) -> str:
        """Return the mode whose failures and scores are shown: hybrid, or else the first one that was measured."""
        if HYBRID in self.measures:
            return HYBRID
        return next(iter(self.measures))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each mode and question, whose measures have the means of `measures`.

        `relevant` has the ids with a grade above 0, and `found` those of the first 10 hits.

        Example:
            >>> from semsearch import evaluate
            >>> rows = evaluate("bundle", [{"query": "a light coat", "relevant": ["c-2"]}], mode="keyword").to_dicts()
            >>> rows[0]["id"], rows[0]["mode"], rows[0]["ndcg@10"], rows[0]["found"]
            ('1', 'keyword', 1.0, ['c-2', 'c-1'])
        """
        rows = []
        for mode, measured in self.results.measures.items():
            for question, ranking, values in zip(self.questions, self.results.rankings[mode], measured, strict=True):
                rows.append(
                    {
                        "id": question.id,
                        "query": question.text,
                        "mode": mode,
                        **dict(zip(MEASURES, values.tolist(), strict=True)),
                        "relevant": [name for name, grade in question.relevant.items() if grade],
                        "found": list(ranking)[:FOUND_IDS],
                    }
                )
        return rows

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas.DataFrame with the rows of `to_dicts`."""
        import pandas

        return pandas.DataFrame(self.to_dicts())

    def to_polars(self) -> "polars.DataFrame":
        """Return a polars.DataFrame with the rows of `to_dicts`."""
        import polars

        return polars.DataFrame(self.to_dicts(), schema_overrides={"found": polars.List(polars.String)})

    def compare(
        self, other: "Evaluation", *, mode: MeasuredMode | None = None, other_mode: MeasuredMode | None = None
    ) -> Differences:
        """Compare with an evaluation of the same questions: of another index, or with other settings.

        Both are compared in each mode that they have in common. With `mode`, that mode alone is compared, with the
        mode `other_mode` of the other evaluation, if that is stated.

        Example:
            >>> from semsearch import evaluate
            >>> questions = [{"query": "a coat against the cold", "relevant": ["c-1"]}]
            >>> by_words = evaluate("bundle", questions, fusion_weight=0.0)
            >>> evaluate("bundle", questions).compare(by_words, mode="hybrid")[0].measure
            'ndcg@10'

        Raises OptionError if the questions differ, or if a mode was not measured.
        """
        if list(self.questions) != list(other.questions):
            found = f"{len(other.questions)} questions that are not the {len(self.questions)} of this evaluation"
            raise OptionError("other", f"found {found}, expected the same questions; evaluate both with them")
        pairs: list[tuple[str, str]] = [(each, each) for each in self.measures if each in other.measures]
        if mode is not None:
            pairs = [(mode, other_mode or mode)]
        elif other_mode is not None:
            raise OptionError("other_mode", "has no effect without mode; add it")
        elif not pairs:
            expected = f"one of {', '.join(self.measures)}; compare two modes with mode and other_mode"
            raise OptionError("other", f"found the modes {', '.join(other.measures)}, expected {expected}")
        rows = Differences()
        for own_mode, their_mode in pairs:
            _require_mode("mode", own_mode, self)
            _require_mode("other_mode", their_mode, other)
            mine, theirs = self.results.measures[own_mode], other.results.measures[their_mode]
            title = own_mode if own_mode == their_mode else f"{own_mode} and {their_mode}"
            for place, name in enumerate(MEASURES):
                change = mine[:, place] - theirs[:, place]
                rows.append(
                    BundleComparison(
                        mode=title,
                        measure=name,
                        other=float(theirs[:, place].mean()),
                        difference=figure(change),
                        better=int((change > 0).sum()),
                        worse=int((change < 0).sum()),
                        p=randomization_test(change),
                    )
                )
        return rows

    def failures(self, mode: str | None = None) -> list[Failure]:
        """Return the 5 questions with the lowest nDCG@10 below 1, with the texts that were expected and returned.

        Of equal ones, those whose first relevant text comes last are first. Without a mode, it is hybrid, or the first.
        """
        return find_failures(self._opened, self.results, mode or self.shown_mode)

    def plot(self) -> "matplotlib.figure.Figure":
        """Return a figure: measures over fusion_weight, and the best scores of these and of other questions.

        A notebook displays it as the last expression of a cell, and `savefig` writes it to a file. The first panel is
        there if the mode hybrid was measured. The second one has the floor of the index, if there is one.
        It searches for 180 questions about other fields, as `index` does to measure the floor.
        Raises PackagesError if matplotlib is missing.
        """
        from semsearch.evaluation.plot import plot_evaluation  # only then

        return plot_evaluation(self._opened, self.results, self.shown_mode)

    def __repr__(self) -> str:
        ndcg = ", ".join(f"{mode} {own['ndcg@10'].value:.3f}" for mode, own in self.measures.items())
        return f"Evaluation(bundle={str(self.bundle)!r}, questions={len(self.questions)}, nDCG@10: {ndcg})"

    def _repr_html_(self) -> str:
        """Return the table that a notebook displays."""
        rows = [
            [TITLES.get(name, name), *(_with_interval(own[name]) for own in self.measures.values())]
            for name in MEASURES
        ]
        return _table(["", *self.measures], rows)


def _require_mode(argument: str, mode: str, evaluation: Evaluation) -> None:
    if mode not in evaluation.measures:
        measured = ", ".join(evaluation.measures)
        raise OptionError(argument, f"found {mode!r}, expected one that was measured: {measured}; choose one of them")


def _with_interval(figure: Figure) -> str:
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"


def _shown(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML."""
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def evaluate(
    bundle: str | Path,
    questions: Any,
    *,
    qrels: str | Path | None = None,
    mode: MeasuredMode | Sequence[MeasuredMode] = (),
    candidates: int = RERANK_CANDIDATES,
    correct: bool = True,
    fusion_weight: float | None = None,
    group_by: str | None = None,
    filter: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    boost: Mapping[str, Any] | None = None,
    allow_missing: bool = False,
    progress: bool | OnProgress = True,
) -> Evaluation:
    """Measure how well an index answers questions whose answers you know, in each mode of search.

    Example:
        >>> from semsearch import evaluate
        >>> questions = [
        ...     {"query": "a coat against the cold", "relevant": ["c-1"]},
        ...     {"query": "what to wear in summer", "relevant": {"c-2": 2, "c-1": 1}},
        ... ]
        >>> evaluation = evaluate("bundle", questions)
        >>> evaluation.measures["hybrid"]["recall@5"].value
        1.0

    Args:
        bundle: folder of the index.
        questions: questions and their relevant ids: JSON lines, BEIR or TREC. From Python also a list of dicts or a
            DataFrame with the columns query, relevant (ids, or grades by id) and perhaps id.
        qrels: judgements of TREC topics, or another split of a BEIR folder.
        mode: only this mode; can be repeated. Without it, all modes of the bundle.
        candidates: texts that the reranker scores in the modes with rerank, if the bundle has one.
        correct: replace misspelled words that no text has by similar ones.
        fusion_weight: share of the meaning in the mode hybrid, instead of the bundle's, from 0 (words alone) to 1.
        group_by: compare relevant ids with this column instead of passages' ids, such as path for documents; of
            passages with the same value, only the best counts.
        filter: measure requests with this filter too, with the relevant texts that pass it; can be repeated.
        boost: search with these boosts of columns instead of the bundle's; {} searches without any.
        allow_missing: count relevant ids that the bundle lacks as not found.
        progress: display it on a terminal and in a notebook; or a function, as `index` takes it.

    Raises:
        OptionError: an argument has a wrong value.
        CorpusError: the questions are not as they must be; the message says which one.
        BundleError: the bundle cannot be used, or lacks a relevant id, a mode or a column.
        FilterError: a boost cannot be used.
    """
    with naming_arguments(MESSAGE_NAMES), chosen_progress(progress) as on_progress:
        _check_numbers(candidates, fusion_weight)
        asked, notes = questions_of(questions, qrels)
        opened = open_named(Path(bundle), group_by, on_progress)
        modes = choose_modes(opened, (mode,) if isinstance(mode, str) else mode)
        if fusion_weight is not None and not any(each.startswith(HYBRID) for each in modes):
            raise OptionError("fusion_weight", "has no effect without the mode hybrid; leave it out")
        if not allow_missing:
            source = IN_MEMORY
            if isinstance(questions, str | Path):
                source = Path(qrels or questions)
            check_ids(opened, asked, source)
        conditions = [filter] if isinstance(filter, Mapping) else filter
        filtered = [(condition, *filter_questions(opened, asked, condition)) for condition in conditions]
        read_boosts(boost or {}, opened.loaded.columns.kinds)
        settings = SearchSettings(
            candidates=candidates,
            correct=correct,
            fusion_weight=fusion_weight,
            boost=None if boost is None else dict(boost),
        )
        results = search_all(opened, asked, modes, on_progress, settings)
        subsets = [_subset(None, results)]
        for condition, kept, allowed in filtered:
            subsets.append(_subset(condition, search_all(opened, kept, modes, on_progress, settings, allowed)))
    return Evaluation(opened, results, subsets, notes)


MESSAGE_NAMES = argument_names(evaluate) | {"out": "out="}  # a folder without an index is told how to make one


def _check_numbers(candidates: int, fusion_weight: float | None) -> None:
    """Raise OptionError for numbers that a search cannot have."""
    if not 1 <= candidates <= MOST_CANDIDATES:
        raise OptionError("candidates", f"found {candidates}, expected a number from 1 to {MOST_CANDIDATES}")
    if fusion_weight is not None and not 0 <= fusion_weight <= 1:
        raise OptionError("fusion_weight", f"found {fusion_weight}, expected a number from 0 to 1")


def _subset(condition: Mapping[str, Any] | None, results: ModeResults) -> Subset:
    figures = {
        mode: {name: figure(values[:, place]) for place, name in enumerate(MEASURES)}
        for mode, values in results.measures.items()
    }
    return Subset(None if condition is None else dict(condition), len(results.questions), figures)


def find_failures(opened: OpenBundle, results: ModeResults, mode: str) -> list[Failure]:
    """Return the questions with the lowest nDCG@10 below 1, those whose first relevant text comes last first."""
    rankings, keys = results.rankings[mode], []
    for number, (question, ranking) in enumerate(zip(results.questions, rankings, strict=True)):
        places = [place for place, name in enumerate(ranking) if question.relevant.get(name, 0)]
        keys.append((float(results.measures[mode][number, 0]), -min(places, default=len(ranking)), number))
    failures = []
    for ndcg, _, number in sorted(keys)[:FAILURES]:
        if ndcg < 1:
            question, ranking = results.questions[number], rankings[number]
            wanted = sorted((-grade, name) for name, grade in question.relevant.items() if grade)
            expected = [_text(opened, name, question, ranking) for _, name in wanted[:SHOWN_TEXTS]]
            returned = [_text(opened, name, question, ranking) for name in list(ranking)[:SHOWN_TEXTS]]
            failures.append(Failure(question.id, question.text, ndcg, expected, returned))
    return failures


def _text(opened: OpenBundle, name: str, question: Question, ranking: BestHits) -> JudgedText:
    """Return a text with its place; of several passages with this name the best hit, or else the first."""
    place = list(ranking).index(name) + 1 if name in ranking else None
    row = ranking[name].row if name in ranking else opened.rows.get(name)
    text = None if row is None else opened.loaded.passages.text(row)
    return JudgedText(name, place, question.relevant.get(name, 0), text)
