"""The measured floor: questions that two indexes answer, and questions about something else, which should find nothing.

The indexes are of this documentation and of Python's. floor.tsv has 50 questions for each of them, and 50 that neither
answers. They were written before any search was run.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from bench.report import PROJECT, make_provenance, report
from semsearch import Search, index
from semsearch.engine.bundle import FloorInfo

QUESTIONS_OF = Path(__file__).with_suffix(".tsv")  # the index that answers the question, or NEITHER, and the question
NEITHER = "neither"
SOURCES = {"docs": str(PROJECT / "docs"), "python": "python"}
SEARCHED: tuple[Literal["hybrid", "semantic", "keyword"], ...] = ("hybrid", "semantic", "keyword")
ALLOWED = 0.9  # share of the other questions that should find nothing
COLUMNS = ("index", "mode", "floor", "kept spans", "own lost", "others without result", "lost if 90 % had none")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the texts are part of this project and of Python."""


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    questions = read_floor_questions(QUESTIONS_OF)
    rows = []
    for name, source in SOURCES.items():
        made = index(source, out=options.work / f"floor-{name}", mode="replace")
        search = Search(made.out)
        for mode in SEARCHED:
            own, others = (best_of_each(search, questions[kind], mode) for kind in (name, NEITHER))
            rows.append((name, mode, *separation(made.manifest.corpus.floor[mode], own, others)))
    count = len(questions[NEITHER])
    report("floor", COLUMNS, rows, {"results": rows}, make_provenance(f"{count} questions of each kind"))
    return 0


def read_floor_questions(path: Path) -> dict[str, list[str]]:
    """Return the questions of a file by what answers them."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, question = line.split("\t")
        found.setdefault(kind, []).append(question)
    return found


def best_of_each(
    search: Search, questions: Sequence[str], mode: Literal["hybrid", "semantic", "keyword"]
) -> list[float]:
    """Return the score of the best hit of each question, 0 without a hit."""
    replies = search.search_many(questions, mode=mode, top_k=1)
    return [max((hit.score or 0.0 for hit in hits), default=0.0) for hits in replies]


def separation(measured: FloorInfo, own: Sequence[float], others: Sequence[float]) -> tuple[str, ...]:
    """Return the cells of a row: the floor, what it keeps and loses, and what the best floor for these others loses."""
    best = sorted(others)[round(ALLOWED * len(others)) - 1]
    lost = f"{sum(score <= best for score in own)} of {len(own)}"
    kept = f"{measured.kept:.0%}"
    if measured.score is None:
        return ("none", kept, "", "", lost)
    own_lost = sum(score < measured.score for score in own)
    without = sum(score < measured.score for score in others)
    return (f"{measured.score:.2f}", kept, f"{own_lost} of {len(own)}", f"{without} of {len(others)}", lost)
