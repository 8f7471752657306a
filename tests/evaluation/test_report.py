"""What an evaluation prints."""

import re
from dataclasses import replace
from io import StringIO

from rich.console import Console

from semsearch.evaluation.advice import Advice
from semsearch.evaluation.measures import MEASURES
from semsearch.evaluation.report import BundleComparison, Failure, JudgedText, Report, Subset, print_report
from semsearch.evaluation.statistics import Figure

SHOWN_MEASURES = ("nDCG@10", "recall@5", "recall@10", "recall@100", "MRR@10")


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
    assert printed(advice, [])[-2:] == [
        "fusion weight: 0.3 instead of 0.6: +0.010 nDCG@10 (+0.000 to +0.020) on questions that it was not chosen with",
        "That is within noise: keep 0.6.",
    ]
    surer = Advice(current=0.6, best=0.3, gain=Figure(0.01, 0.001, 0.02), ndcg={0.6: 0.5, 0.3: 0.51})
    assert printed(surer, [])[-1] == "To set it: semsearch index PATH --out bundle --fusion-weight 0.3"


def test_notes_are_above_the_figures() -> None:
    advice = Advice(current=0.6, best=0.6, gain=Figure(0, 0, 0), ndcg={0.6: 0.5})
    assert printed(advice, ["[b] was left out"])[0] == "note: [b] was left out"


def test_all_that_an_evaluation_can_print() -> None:
    measured = {name: Figure(0.5, 0.4, 0.6) for name in MEASURES}
    texts = [
        JudgedText("a", 3, 2, "  one\n two  "),
        JudgedText("[b]", None, 1, None),
        JudgedText("c", 1, 0, "x" * 60),
        JudgedText("d", 2, 0, "x" * 61),
    ]
    worse = BundleComparison("semantic", "mrr@10", 0.5, Figure(-0.1, -0.2, -0.01), 1, 22, 0.0499)
    report = Report(
        bundle="[bundle]",
        texts=1_234,
        questions="questions.jsonl",
        notes=[],
        subsets=[
            Subset(None, 30, {"hybrid": measured, "hybrid+model": measured, "semantic+rerank": measured}),
            Subset({"year": 2}, 29, {"keyword": measured}),
        ],
        failures_of="hybrid",
        failures=[Failure("q", "[why]", 0.25, texts[:2], texts[2:]), Failure("r", "how", 0, [], [])],
        advice=None,
        rerank_advice=Advice(0.6, 0.6, Figure(0, 0, 0), {0.5: 0.4, 0.6: 0.5}),
        other="other",
        comparisons=[
            worse,
            replace(worse, measure="recall@5", difference=Figure(0.1, 0.01, 0.2)),
            replace(worse, p=0.05),
        ],
        below_floor=[],
    )
    file = StringIO()
    print_report(Console(file=file, width=200), report, "semsearch index")
    assert [re.sub(" +", " ", line.rstrip()) for line in file.getvalue().splitlines()] == [
        "30 questions of questions.jsonl, all 1,234 texts of [bundle]; 95 % intervals in brackets",
        " hybrid by the table hybrid by the model semantic+rerank",
        *(f"{name} 0.500 (0.400-0.600) 0.500 (0.400-0.600) 0.500 (0.400-0.600)" for name in SHOWN_MEASURES),
        "",
        "29 questions of questions.jsonl, texts within {'year': 2} of [bundle]; 95 % intervals in brackets",
        " keyword",
        *(f"{name} 0.500 (0.400-0.600)" for name in SHOWN_MEASURES),
        "note: intervals of fewer than 30 questions are wide and rough",
        "",
        "[bundle] compared with other, question by question",
        " other difference won/lost p",
        "semantic MRR@10 0.500 -0.100 (-0.200 to -0.010) 1/22 0.0499 worse",
        "semantic recall@5 0.500 +0.100 (+0.010 to +0.200) 1/22 0.0499 better",
        "semantic MRR@10 0.500 -0.100 (-0.200 to -0.010) 1/22 0.0500 noise",
        "",
        "the questions that fail most (hybrid)",
        "0.250 [why]",
        " expected hit 3 a one two",
        " expected not found [b] the bundle lacks it",
        f" returned hit 1 c {'x' * 60}",
        f" returned hit 2 d {'x' * 59}…",
        "0.000 how",
        " expected nothing",
        " returned nothing",
        "",
        "fusion weight: no advice with fewer than 10 questions",
        "rerank weight nDCG@10",
        "0.5 0.400",
        "0.6 0.500 now, best",
        "rerank weight: keep 0.6; no other is better for these questions",
    ]
