"""The command `semsearch evaluate`: measure how well an index answers questions whose answers are known."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import App, Parameter, Token
from cyclopts.validators import Number
from rich.console import Console

from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.options import JsonObject, JsonObjects, Positive
from semsearch.commands.places import bundle_at
from semsearch.engine.bundle import BundleError
from semsearch.engine.errors import OptionError
from semsearch.engine.metadata.boosts import read_boosts
from semsearch.evaluation.measures import HYBRID, MEASURED_MODES, MEASURES, TITLES
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
from semsearch.evaluation.statistics import SEED, figure, randomization_test
from semsearch.indexing.progress import OnProgress, showing_progress
from semsearch.indexing.questions import Question, read_log, read_questions

FAILURES = 5  # questions that are printed
SHOWN_TEXTS = 3  # expected texts and returned texts of each of them
DRAWN_TEXT = 500  # characters of a passage that is printed for a question
EXAMPLES = """\
Measures, each a mean over the questions from 0 to 1 with its 95 % confidence interval:

    nDCG@10     how high the relevant texts stand among the first 10 hits, better grades first; 1 is the best order
    recall@5    the share of the relevant texts that are among the first 5 hits; the same for @10 and @100
    MRR@10      1 divided by the place of the first relevant text, 0 if it is not among the first 10

Questions:

    JSON lines  {"query": "reset my password", "relevant": ["faq-12", "faq-40"]}
                or with grades: {"query": "reset my password", "relevant": {"faq-12": 2, "faq-40": 1}}
    BEIR        a folder with queries.jsonl and qrels/test.tsv
    TREC        a file of lines with an id, a tab and a question; and --qrels FILE

Examples:

    semsearch evaluate bundle/ --make-questions 30 > questions.jsonl   write a question into each line, then:
    semsearch evaluate bundle/ --questions questions.jsonl
    semsearch evaluate bundle/ --questions questions.jsonl --group-by path
    semsearch evaluate bundle/ --questions questions.jsonl --filter '{"language": "en"}'
    semsearch evaluate bundle/ --questions questions.jsonl --compare older-bundle/
    semsearch evaluate bundle/ --questions questions.jsonl --mode hybrid --floor ndcg@10=0.6
    semsearch evaluate bundle/ --questions topics.txt --qrels qrels.txt --mode semantic --run semantic.run
"""
command: App = App(help_epilogue=EXAMPLES)


def _floors(kind: object, tokens: Sequence[Token]) -> list[tuple[str, float]]:
    floors = []
    for token in tokens:
        measure, _, words = token.value.partition("=")
        try:
            value = float(words)
        except ValueError:
            value = math.nan
        if measure.lower() not in MEASURES or not 0 <= value <= 1:
            expected = f"MEASURE=VALUE with a measure of {', '.join(MEASURES)} and a value from 0 to 1"
            raise ValueError(f"found {token.value!r}, expected {expected}")
        floors.append((measure.lower(), value))
    return floors


Modes = Annotated[Sequence[str], Parameter(choices=MEASURED_MODES, metavar="MODE")]
Floors = Annotated[Sequence[tuple[str, float]], Parameter(converter=_floors, n_tokens=1, metavar="MEASURE=VALUE")]


@command.default
def evaluate(
    place: str = "bundle",
    /,
    *,
    questions: Path | None = None,
    qrels: Path | None = None,
    mode: Modes = (),
    candidates: Annotated[int, Parameter(validator=Number(gte=1, lte=100))] = 20,
    correct: bool = True,
    group_by: str | None = None,
    filter: JsonObjects = (),
    boost: JsonObject | None = None,
    allow_missing: bool = False,
    compare: str | None = None,
    floor: Floors = (),
    run: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    make_questions: Positive | None = None,
    from_log: Path | None = None,
) -> int:
    """Measure how well an index answers questions whose answers you know, in each mode of search.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache.
        questions: questions and their relevant ids: JSON lines, BEIR or TREC.
        qrels: judgements of TREC topics, or another split of a BEIR folder.
        mode: only this mode; can be repeated. Without it, all modes of the bundle.
        candidates: texts that the reranker scores in the modes with rerank, if the bundle has one.
        correct: replace misspelled words that no text has by similar ones.
        group_by: compare relevant ids with this column instead of passages' ids, such as path for documents; of
            passages with the same value, only the best counts.
        filter: measure requests with this filter too, with the relevant texts that pass it; can be repeated.
        boost: search with these boosts of columns instead of the bundle's; {} searches without any.
        allow_missing: count relevant ids that the bundle lacks as not found.
        compare: test whether this other bundle differs, question by question (paired randomization test).
        floor: exit with 1 if a measured mode is below this, such as ndcg@10=0.6; can be repeated.
        run: write the hits of one --mode as a TREC run.
        json: print one object of JSON for other programs.
        make_questions: print this number of random passages as lines of questions that you fill in.
        from_log: with --make-questions: draw the questions of a log (LOG_QUERIES=1).
    """
    console, errors = TerminalConsole(), TerminalConsole(stderr=True)
    if (questions is None) == (make_questions is None):
        raise OptionError("questions", "expected --questions FILE or --make-questions N; state one of them")
    if from_log is not None and make_questions is None:
        raise OptionError("from_log", "is for --make-questions N; add it")
    if run is not None and len(set(mode)) != 1:
        raise OptionError("run", "writes the hits of one mode; name it with --mode, such as --mode semantic")
    bundle = bundle_at(place)
    if questions is None:
        assert make_questions is not None
        draw_questions(bundle, make_questions, from_log, group_by, console, errors)
        return 0
    asked, notes = read_questions(questions, qrels)
    with showing_progress(errors) as on_progress:
        opened = open_named(bundle, group_by, on_progress)
        modes = choose_modes(opened, mode)
        if not allow_missing:
            check_ids(opened, asked, qrels or questions)
        filtered = [(condition, *filter_questions(opened, asked, condition)) for condition in filter]
        read_boosts(boost or {}, opened.loaded.columns.kinds)
        search = partial(search_all, candidates=candidates, correct=correct, boost=boost)
        results = search(opened, asked, modes, on_progress)
        subsets = [_subset(None, results)]
        for condition, kept, allowed in filtered:
            among = search(opened, kept, modes, on_progress, allowed)
            subsets.append(_subset(condition, among))
        comparisons = []
        if compare is not None:
            other = open_named(bundle_at(compare), group_by, on_progress)
            if not allow_missing:
                check_ids(other, asked, qrels or questions)
            comparisons = _compare(other, choose_modes(other, mode), search, results, on_progress)
    if run is not None:
        _write_run(run, results, modes[0])
    shown = HYBRID if HYBRID in modes else modes[0]
    below = _below_floor(floor, subsets[0])
    report = Report(
        bundle=str(bundle),
        texts=len(opened.names),
        questions=str(questions),
        notes=notes,
        subsets=subsets,
        failures_of=shown,
        failures=_failures(opened, results, shown),
        advice=results.advice.get("fusion"),
        rerank_advice=results.advice.get("rerank"),
        other=compare,
        comparisons=comparisons,
        below_floor=below,
    )
    if json:
        console.print(_line(asdict(report), console), markup=False)
    else:
        print_report(console, report, suggested("index", "PATH", "--out", bundle))
    for line in below:
        errors.print(f"error: {bundle}: {line}; look at the questions that fail, or lower --floor", markup=False)
    if below:
        return 1
    return 0


def _below_floor(floors: Sequence[tuple[str, float]], measured: Subset) -> list[str]:
    return [
        f"{mode} {TITLES.get(name, name)} is {own[name].value:.4f}, expected at least {least:g}"
        for name, least in floors
        for mode, own in measured.modes.items()
        if own[name].value < least
    ]


def _subset(condition: dict[str, object] | None, results: ModeResults) -> Subset:
    figures = {
        mode: {name: figure(values[:, place]) for place, name in enumerate(MEASURES)}
        for mode, values in results.measures.items()
    }
    return Subset(condition, len(results.questions), figures)


def _compare(
    other: OpenBundle,
    modes: Sequence[str],
    search: Callable[..., ModeResults],
    results: ModeResults,
    on_progress: OnProgress,
) -> list[BundleComparison]:
    both = [mode for mode in results.measures if mode in modes]
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


def draw_questions(
    bundle: Path, count: int, log: Path | None, group_by: str | None, console: Console, errors: Console
) -> None:
    """Print questions of a log, or passages, as lines of questions to fill in."""
    with showing_progress(errors) as on_progress:
        opened = open_named(bundle, group_by, on_progress)
    if log is not None:
        asked = sorted(read_log(log))
        order = np.random.default_rng(SEED).permutation(len(asked))[:count]
        for place in order.tolist():
            console.print(_line({"query": asked[place], "relevant": []}, console), markup=False)
        errors.print('Write the ids of the texts that answer each question into "relevant".')
        return
    names = list(opened.rows)
    if count > len(names):
        expected = f"{count:,} or more; draw fewer with --make-questions"
        raise BundleError(f"{bundle}: found {len(names):,} texts, expected {expected}")
    for place in sorted(np.random.default_rng(SEED).choice(len(names), count, replace=False)):
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
