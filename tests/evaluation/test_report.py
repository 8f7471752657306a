"""What an evaluation prints."""

from io import StringIO

from rich.console import Console

from semsearch.evaluation.advice import Advice
from semsearch.evaluation.measures import MEASURES
from semsearch.evaluation.report import Report, Subset, print_report
from semsearch.evaluation.statistics import Figure


def printed(advice: Advice, notes: list[str]) -> list[str]:
    """Return the lines about 50 questions that were answered by hybrid search."""
    measured = {name: Figure(0.5, 0.4, 0.6) for name in MEASURES}
    report = Report(
        bundle="bundle",
        texts=100,
        questions="questions.jsonl",
        notes=notes,
        subsets=[Subset(filter=None, questions=50, modes={"hybrid": measured})],
        failures_of="hybrid",
        failures=[],
        advice=advice,
        rerank_advice=None,
        other=None,
        comparisons=[],
        below_floor=[],
    )
    file = StringIO()
    print_report(Console(file=file, width=200), report, "semsearch index PATH --out bundle")
    return file.getvalue().splitlines()


def test_a_weight_whose_gain_can_be_chance_is_not_advised() -> None:
    advice = Advice(current=0.6, best=0.3, gain=Figure(0.01, 0.0, 0.02), ndcg={0.6: 0.5, 0.3: 0.51})
    assert printed(advice, [])[-1] == "That is within noise: keep 0.6."
    surer = Advice(current=0.6, best=0.3, gain=Figure(0.01, 0.001, 0.02), ndcg={0.6: 0.5, 0.3: 0.51})
    assert printed(surer, [])[-1] == "To set it: semsearch index PATH --out bundle --fusion-weight 0.3"


def test_notes_are_above_the_figures() -> None:
    advice = Advice(current=0.6, best=0.6, gain=Figure(0, 0, 0), ndcg={0.6: 0.5})
    assert printed(advice, ["[2] questions were left out"])[0] == "note: [2] questions were left out"
