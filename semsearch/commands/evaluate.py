"""The command `semsearch evaluate`: measure how well an index answers questions whose answers are known."""

import inspect
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
from cyclopts import App, Parameter, Token
from cyclopts.validators import Number
from docstring_parser import parse
from rich.console import Console

from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.options import JsonObject, JsonObjects, Positive, Share, as_command
from semsearch.commands.places import bundle_at
from semsearch.engine.bundle import BundleError
from semsearch.engine.errors import OptionError
from semsearch.evaluation.evaluation import evaluate
from semsearch.evaluation.measures import MEASURED_MODES, MEASURES, TITLES
from semsearch.evaluation.report import BundleComparison, Report, Subset, print_report
from semsearch.evaluation.search import ModeResults, open_named
from semsearch.evaluation.statistics import SEED
from semsearch.indexing.progress import showing_progress
from semsearch.indexing.questions import read_log
from semsearch.search.query import MOST_CANDIDATES

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


Floors = Annotated[Sequence[tuple[str, float]], Parameter(converter=_floors, n_tokens=1, metavar="MEASURE=VALUE")]
# what a command line cannot have in the form that Python has, and limits
EVALUATE_FORMS: dict[str, Any] = {
    "questions": Path | None,
    "qrels": Path | None,
    "mode": Annotated[Sequence[str], Parameter(choices=MEASURED_MODES, metavar="MODE")],
    "candidates": Annotated[int, Parameter(validator=Number(gte=1, lte=MOST_CANDIDATES))],
    "fusion_weight": Share | None,
    "filter": JsonObjects,
    "boost": JsonObject | None,
}
PYTHON_ARGUMENTS = ("bundle", "progress")  # parameters of `evaluate` that are no options


def options_of_evaluate() -> Iterator[inspect.Parameter]:
    """Yield the arguments of `evaluate` as options, with their sentences."""
    hints = get_type_hints(evaluate) | EVALUATE_FORMS
    sentences = {each.arg_name: each.description or "" for each in parse(evaluate.__doc__ or "").params}
    for name, parameter in inspect.signature(evaluate).parameters.items():
        if name not in PYTHON_ARGUMENTS:
            sentence = sentences[name].partition(" From Python")[0]
            yield parameter.replace(
                annotation=Annotated[hints[name], Parameter(help=sentence)],
                kind=inspect.Parameter.KEYWORD_ONLY,
                default=None if name == "questions" else parameter.default,
            )


def run_evaluate(
    place: str = "bundle",
    /,
    *,
    compare: str | None = None,
    floor: Floors = (),
    run: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    make_questions: Positive | None = None,
    from_log: Path | None = None,
    **options: Any,
) -> int:
    """Measure how well an index answers questions whose answers you know, in each mode of search.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache.
        compare: test whether this other bundle differs, question by question (paired randomization test).
        floor: exit with 1 if a measured mode is below this, such as ndcg@10=0.6; can be repeated.
        run: write the hits of one --mode as a TREC run.
        json: print one object of JSON for other programs.
        make_questions: print this number of random passages as lines of questions that you fill in.
        from_log: with --make-questions: draw the questions of a log (LOG_QUERIES=1).
    """
    console, errors = TerminalConsole(), TerminalConsole(stderr=True)
    questions, mode = options.pop("questions", None), options.get("mode", ())
    if (questions is None) == (make_questions is None):
        raise OptionError("questions", "expected --questions FILE or --make-questions N; state one of them")
    if from_log is not None and make_questions is None:
        raise OptionError("from_log", "is for --make-questions N; add it")
    if run is not None and len(set(mode)) != 1:
        raise OptionError("run", "writes the hits of one mode; name it with --mode, such as --mode semantic")
    bundle = bundle_at(place)
    if questions is None:
        assert make_questions is not None
        draw_questions(bundle, make_questions, from_log, options.get("group_by"), console, errors)
        return 0
    comparisons: list[BundleComparison] = []
    with showing_progress(errors) as on_progress:
        found = evaluate(bundle, questions, **options, progress=on_progress)
        if compare is not None:
            other = evaluate(bundle_at(compare), questions, **options, progress=on_progress)
            comparisons = found.compare(other)
    if run is not None:
        _write_run(run, found.results, mode[0])
    below = _below_floor(floor, found.subsets[0])
    report = Report(
        bundle=str(bundle),
        texts=found.texts,
        questions=str(questions),
        notes=found.notes,
        subsets=found.subsets,
        failures_of=found.shown_mode,
        failures=found.failures(),
        advice=found.advice,
        rerank_advice=found.rerank_advice,
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


def _options() -> list[inspect.Parameter]:
    place, *own, _ = inspect.signature(run_evaluate).parameters.values()
    return [place, *options_of_evaluate(), *own]


command: App = as_command(run_evaluate, _options(), EXAMPLES, "evaluate")


def _below_floor(floors: Sequence[tuple[str, float]], measured: Subset) -> list[str]:
    return [
        f"{mode} {TITLES.get(name, name)} is {own[name].value:.4f}, expected at least {least:g}"
        for name, least in floors
        for mode, own in measured.modes.items()
        if own[name].value < least
    ]


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
