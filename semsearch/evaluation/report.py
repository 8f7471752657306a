"""The result of an evaluation: dataclasses that become JSON, and tables and sentences for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from semsearch.engine.bundle import BY_MODEL
from semsearch.evaluation.advice import FEWEST, Advice
from semsearch.evaluation.measures import MEASURES, TITLES
from semsearch.evaluation.statistics import Figure

FEW_QUESTIONS = 30  # fewer than these have wide intervals
SIGNIFICANT = 0.05  # p below it: chance alone hardly explains a difference
WIDTH = 60  # maximum characters of a text that are printed


@dataclass(frozen=True, slots=True)
class Subset:
    """The figures of each mode by measure. filter is None for all questions and texts."""

    filter: dict[str, Any] | None
    questions: int
    modes: dict[str, dict[str, Figure]]


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A judged or returned text.

    place counts the hits from 1, None if the text is no hit. text is None if the bundle lacks it.
    """

    id: str
    place: int | None
    grade: int
    text: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A question that was answered badly: its relevant texts, and the first hits."""

    id: str
    query: str
    ndcg: float
    relevant: list[JudgedText]
    returned: list[JudgedText]


@dataclass(frozen=True, slots=True)
class BundleComparison:
    """How the bundle differs from the other one in one mode and measure; better and worse count questions."""

    mode: str
    measure: str
    other: float
    difference: Figure
    better: int
    worse: int
    p: float


@dataclass(frozen=True, slots=True)
class Report:
    """All that an evaluation prints. failures_of is the mode of the failures."""

    bundle: str
    texts: int
    questions: str
    notes: list[str]
    subsets: list[Subset]
    failures_of: str
    failures: list[Failure]
    advice: Advice | None
    rerank_advice: Advice | None
    other: str | None
    comparisons: list[BundleComparison]
    below_floor: list[str]


def print_report(console: Console, report: Report, command: str) -> None:
    """Print tables and sentences. Advice appends a weight's option to `command`, which updates the bundle."""
    for note in report.notes:
        console.print(f"note: {note}", markup=False)
    for subset in report.subsets:
        among = f"all {report.texts:,} texts"
        if subset.filter is not None:
            among = f"texts within {subset.filter}"
        title = f"{subset.questions:,} questions of {report.questions}, {among} of {report.bundle}"
        console.print(f"{title}; 95 % intervals in brackets", markup=False)
        table = Table("", *(_column(mode, subset.modes) for mode in subset.modes), box=None, pad_edge=False)
        for name in MEASURES:
            table.add_row(TITLES.get(name, name), *(_with_interval(own[name]) for own in subset.modes.values()))
        console.print(table)
        if subset.questions < FEW_QUESTIONS:
            console.print(f"note: intervals of fewer than {FEW_QUESTIONS} questions are wide and rough")
        console.print()
    _print_comparisons(console, report)
    _print_failures(console, report)
    if "hybrid" in report.subsets[0].modes:
        _print_advice(console, "fusion", report.advice, command)
    if any(mode.endswith("+rerank") for mode in report.subsets[0].modes):
        _print_advice(console, "rerank", report.rerank_advice, command)


def _column(mode: str, modes: Mapping[str, object]) -> str:
    """Return the title of a mode's column. With a query table, a mode has two columns, one of them by the model."""
    if f"{mode}+{BY_MODEL}" in modes:
        return f"{mode} by the table"
    return mode.replace("+model", " by the model")


def _with_interval(figure: Figure) -> str:
    return f"{figure.value:.3f} ({figure.low:.3f}-{figure.high:.3f})"


def _print_comparisons(console: Console, report: Report) -> None:
    if report.other is None:
        return
    console.print(f"{report.bundle} compared with {report.other}, question by question", markup=False)
    table = Table("", "other", "difference", "won/lost", "p", "", box=None, pad_edge=False)
    for each in report.comparisons:
        change = f"{each.difference.value:+.3f} ({each.difference.low:+.3f} to {each.difference.high:+.3f})"
        title = f"{each.mode} {TITLES.get(each.measure, each.measure)}"
        won = f"{each.better}/{each.worse}"
        table.add_row(title, f"{each.other:.3f}", change, won, f"{each.p:.4f}", _verdict(each))
    console.print(table)
    console.print()


def _verdict(comparison: BundleComparison) -> str:
    if comparison.p >= SIGNIFICANT:
        return "noise"
    if comparison.difference.value > 0:
        return "better"
    return "worse"


def _print_failures(console: Console, report: Report) -> None:
    if report.failures:
        console.print(f"the questions that fail most ({report.failures_of})")
    for failure in report.failures:
        console.print(f"{failure.ndcg:.3f}  {failure.query}", markup=False)
        _print_texts(console, "expected", failure.relevant)
        _print_texts(console, "returned", failure.returned)
    if report.failures:
        console.print()


def _print_texts(console: Console, title: str, texts: Sequence[JudgedText]) -> None:
    for text in texts:
        place = "not found"
        if text.place is not None:
            place = f"hit {text.place}"
        line = "the bundle lacks it"
        if text.text is not None:
            line = " ".join(text.text.split())
        if len(line) > WIDTH:
            line = line[: WIDTH - 1] + "…"
        console.print(f"       {title}  {place:9}  {text.id}  {line}", markup=False)
    if not texts:
        console.print(f"       {title}  nothing")


def _print_advice(console: Console, kind: str, advice: Advice | None, command: str) -> None:
    if advice is None:
        console.print(f"{kind} weight: no advice with fewer than {FEWEST} questions")
        return
    table = Table(f"{kind} weight", "nDCG@10", "", box=None, pad_edge=False)
    for weight, value in advice.ndcg.items():
        marks = {"now": weight == advice.current, "best": weight == advice.best}
        table.add_row(f"{weight:g}", f"{value:.3f}", ", ".join(name for name, is_set in marks.items() if is_set))
    console.print(table)
    now = f"{advice.current:g}"
    if advice.best == advice.current:
        console.print(f"{kind} weight: keep {now}; no other is better for these questions")
        return
    gain = f"{advice.gain.value:+.3f} nDCG@10 ({advice.gain.low:+.3f} to {advice.gain.high:+.3f})"
    console.print(f"{kind} weight: {advice.best:g} instead of {now}: {gain} on questions that it was not chosen with")
    if advice.is_noise:
        console.print(f"That is within noise: keep {now}.")
    else:
        console.print(f"To set it: {escape(command)} --{kind}-weight {advice.best:g}")
