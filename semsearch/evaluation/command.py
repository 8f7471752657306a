"""The command `evaluate` of `python -m export`."""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

from semsearch.commands.console import python_module
from semsearch.engine.bundle import BundleError
from semsearch.engine.metadata.boosts import read_boosts
from semsearch.evaluation.measures import HYBRID, MEASURES, SEED, TITLES, figure, randomization_test
from semsearch.evaluation.questions import Question, read_log, read_questions
from semsearch.evaluation.report import BundleComparison, Failure, JudgedText, Report, Subset, print_report
from semsearch.evaluation.search import (
    BestHits,
    ModeResults,
    OpenBundle,
    check_ids,
    choose_modes,
    filter_questions,
    open_named,
    search_all,
)
from semsearch.indexing.progress import OnProgress, showing_progress

FAILURES = 5  # questions that are printed
SHOWN_TEXTS = 3  # expected texts and returned texts of each of them
DRAWN_TEXT = 500  # characters of a passage that is printed for a question


def run(options: argparse.Namespace, console: Console, errors: Console) -> int:
    """Run the command and return the exit code: 1 if a measure is below its floor. Progress goes to `errors`.

    Raises CorpusError if the questions cannot be used, BundleError or TensorsError if the bundle cannot.
    """
    if options.make_questions is not None:
        _make_questions(options, console, errors)
        return 0
    questions, notes = read_questions(options.questions, options.qrels)
    with showing_progress(errors) as on_progress:
        opened = open_named(options.bundle, options.group_by, on_progress)
        modes = choose_modes(opened, options.mode or ())
        if not options.allow_missing:
            check_ids(opened, questions, options.qrels or options.questions)
        filtered = [(condition, *filter_questions(opened, questions, condition)) for condition in options.filter]
        read_boosts(options.boost or {}, opened.loaded.columns.kinds)
        search = partial(search_all, candidates=options.candidates, correct=not options.no_correct, boost=options.boost)
        results = search(opened, questions, modes, on_progress)
        subsets = [_subset(None, results)]
        for condition, kept, allowed in filtered:
            among = search(opened, kept, modes, on_progress, allowed)
            subsets.append(_subset(condition, among))
        comparisons = [] if options.compare is None else _compare(options, search, results, on_progress)
    if options.run is not None:
        _write_run(options.run, results, modes[0])
    shown = HYBRID if HYBRID in modes else modes[0]
    below = [
        f"{mode} {TITLES.get(name, name)} is {own[name].value:.4f}, expected at least {least:g}"
        for name, least in options.floor
        for mode, own in subsets[0].modes.items()
        if own[name].value < least
    ]
    report = Report(
        bundle=str(options.bundle),
        texts=len(opened.names),
        questions=str(options.questions),
        notes=notes,
        subsets=subsets,
        failures_of=shown,
        failures=_failures(opened, results, shown),
        advice=results.advice.get("fusion"),
        rerank_advice=results.advice.get("rerank"),
        other=None if options.compare is None else str(options.compare),
        comparisons=comparisons,
        below_floor=below,
    )
    if options.json:
        console.print(_line(asdict(report), console), markup=False)
    else:
        bundle = options.bundle
        print_report(console, report, python_module("export", "--update", bundle, "--out", bundle, "--corpus", "FILE"))
    for line in below:
        remedy = "look at the questions that fail, or lower --floor"
        errors.print(f"error: {options.bundle}: {line}; {remedy}", markup=False)
    return 1 if below else 0


def _subset(condition: dict[str, object] | None, results: ModeResults) -> Subset:
    figures = {
        mode: {name: figure(values[:, place]) for place, name in enumerate(MEASURES)}
        for mode, values in results.measures.items()
    }
    return Subset(condition, len(results.questions), figures)


def _compare(
    options: argparse.Namespace, search: Callable[..., ModeResults], results: ModeResults, on_progress: OnProgress
) -> list[BundleComparison]:
    other = open_named(options.compare, options.group_by, on_progress)
    has = choose_modes(other, options.mode or ())
    if not options.allow_missing:
        check_ids(other, results.questions, options.qrels or options.questions)
    both = [mode for mode in results.measures if mode in has]
    found = search(other, results.questions, both, on_progress)
    comparisons = []
    for mode, theirs in found.measures.items():
        for place, name in enumerate(MEASURES):
            change = results.measures[mode][:, place] - theirs[:, place]
            counts = int((change > 0).sum()), int((change < 0).sum())
            mean = float(theirs[:, place].mean())
            comparisons.append(BundleComparison(mode, name, mean, figure(change), *counts, randomization_test(change)))
    return comparisons


def _failures(opened: OpenBundle, results: ModeResults, mode: str) -> list[Failure]:
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


def _write_run(path: Path, results: ModeResults, mode: str) -> None:
    lines = []
    for question, ranking in zip(results.questions, results.rankings[mode], strict=True):
        for place, (name, hit) in enumerate(ranking.items(), 1):
            for id in (question.id, name):
                if not id or id.split() != [id]:
                    remedy = "name a column without white space with --group-by, or rename it"
                    raise BundleError(f"{path}: found the id {id!r}, expected no white space in a TREC run; {remedy}")
            lines.append(f"{question.id} Q0 {name} {place} {hit.score!r} {mode}\n")
    path.write_text("".join(lines), encoding="utf-8")


def _make_questions(options: argparse.Namespace, console: Console, errors: Console) -> None:
    with showing_progress(errors) as on_progress:
        opened = open_named(options.bundle, options.group_by, on_progress)
    if options.from_log is not None:
        asked = sorted(read_log(options.from_log))
        order = np.random.default_rng(SEED).permutation(len(asked))[: options.make_questions]
        for place in order.tolist():
            console.print(_line({"query": asked[place], "relevant": []}, console), markup=False)
        errors.print('Write the ids of the texts that answer each question into "relevant".')
        return
    names = list(opened.rows)
    if options.make_questions > len(names):
        expected = f"{options.make_questions:,} or more; draw fewer with --make-questions"
        raise BundleError(f"{options.bundle}: found {len(names):,} texts, expected {expected}")
    for place in sorted(np.random.default_rng(SEED).choice(len(names), options.make_questions, replace=False)):
        name = names[place]
        text = opened.loaded.passages.text(opened.rows[name])
        line = {"query": "", "relevant": [name], "text": text[:DRAWN_TEXT]}
        console.print(_line(line, console), markup=False)
    errors.print('Write a question that the text answers into each "query", and add other ids that answer it too.')


def _line(value: object, console: Console) -> str:
    """Return a line of JSON that any stream can take and no terminal obeys."""
    is_utf_8 = console.encoding.lower().replace("-", "") == "utf8"
    line = json.dumps(value, ensure_ascii=not is_utf_8)
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in line)
