"""Each figure in README.md and docs/ has a source: a result in bench/results/, a link, or a reason in NOT_MEASURED."""

import re

import pytest

from bench.tables import FIGURES, TABLE, pages
from tests.project import ROOT

NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNIT = r"(?:ms|milliseconds|s|seconds|minutes|hours|[kMG]B|%|times as|\w+ (?:a|per) second)"
FIGURE = re.compile(rf"(?<![\w.$-]){NUMBER}[ -]?{UNIT}(?!\w)|(?<![\w.])0\.\d\d+(?!\w)|\$\d")
LIMIT = re.compile(rf"(?:at most|more than|up to|at least|within|below|limit of) \$?{NUMBER}(?:[ -]?{UNIT})?")
CODE = re.compile(r"`[^`]*`")

# beginnings of the lines with figures that nobody measured, by what the figures are
NOT_MEASURED = {
    "constants of the code and of the tests": (
        "- If the index has [`--synonyms`](bundle.md#keywords), a word also finds",
        "| cannot look: what arrives crawls |",
        "  counts 0.7 times as much, and only in texts that lack one",
        "| `--semantic-search-mark`, `--semantic-search-on-mark` |",
        "The image runs as an ordinary user with a read-only file system",
        "  takes more than 10 s of processor time plus 10 s per MB",
        "| single 502s from a load balancer",
        "`python -m bench month` lets 30 nights pass on one machine",
        "The range in brackets is a 95 % confidence interval",
        "often differences as large would come by chance",
        "A mode has no floor if fewer than 90 % of questions",
        "A small index has few such questions, and 90 % of few can be chance.",
        "- Of 80, 85 and 90 %, 85 % was chosen on other random indexes",
        "has to show that more than 85 % would reach the floor.",
        "question can be lost, with 100 texts 8, and from 250 texts on the 90 % decide alone.",
        "like what people type. `semsearch index` takes the narrowest stages",
        "libraries, and this project, have the fastest settings that reach a recall of 0.98",
        "least one whole core in INIT, as in Lambda (`python -m bench memory`).",
    ),
    "what a measurement needs": ("| `python -m bench scale` |",),
    "printed by a command that keeps no result": ("| plain dicts for the schemas of pydantic_core (`core-schema`) |",),
    "limits of AWS and times calculated from them": (
        "Lambda gives a function a share of a core in proportion to its memory.",
        "they may refuse 3,008 MB.",
        "Lambda stops a start after ten seconds.",
        "about nine of the ten seconds.",
        "A start that was stopped begins again in the first request",
        "the first request of each new environment wait for some 20 seconds",
        "bundle, and two of them during a switch: `EphemeralStorage`",
        "512 MB. During a switch the model's files need room only once.",
        "- The idle timeout must be longer than that of the load balancer or proxy",
    ),
    "costs calculated from AWS's prices": (
        "- `ReservedConcurrency` is the only hard bound.",
        "| price of a million requests |",
        "| Lambda, with [1,769 MB](#how-much-memory) |",
        "| together |",
        "  them costs about $76 a month",
        "without requests, at 1,769 MB: one provisioned environment about $19",
        "`Tracing=Active` costs about $13 a month",
        "384 dimensions, a month in S3 Vectors costs $0.15",
        "$0.14 in the image and $0.03 in S3.",
    ),
}


def figures_without_source(text: str, sources: tuple[str, ...]) -> list[str]:
    """Return the lines of a page with a figure that is in no marked table, beside no link, and in no line of sources.

    sources are beginnings of lines. Limits such as "at most 512 MB" are no figures, nor is code.
    """
    found, is_code = [], False
    for line in TABLE.sub("", text).splitlines():
        if line.startswith("```"):
            is_code = not is_code
        if is_code or "https://" in line or line.startswith(sources):
            continue
        if FIGURE.search(LIMIT.sub("", CODE.sub("", line))):
            found.append(line)
    return found


def test_each_figure_of_the_documents_has_a_source() -> None:
    known = tuple(beginning for beginnings in NOT_MEASURED.values() for beginning in beginnings)
    missing = {}
    for page in pages(ROOT):
        sources = (*known, *FIGURES.get(page.name, {}))
        if lines := figures_without_source(page.read_text(encoding="utf-8"), sources):
            missing[page.name] = lines
    assert missing == {}, "delete these figures, or add their values to bench/figures.toml"


def test_each_reason_is_that_of_a_line() -> None:
    lines = [line for page in pages(ROOT) for line in page.read_text(encoding="utf-8").splitlines()]
    beginnings = [beginning for some in NOT_MEASURED.values() for beginning in some]
    assert [one for one in beginnings if not any(line.startswith(one) for line in lines)] == []


@pytest.mark.parametrize(
    ("line", "is_figure"),
    [
        ("A request takes 2.8 ms.", True),
        ("It answers 8.4 times as many.", True),
        ("It embeds 600 headlines per second.", True),
        ("| hybrid | 0.74 |", True),
        ("A million cost $2.13.", True),
        ("A body has at most 4 KB, and a start at most 10 seconds.", False),
        ("`--timeout 30 s`", False),
        ("Python 3.13 and version 0.2", False),
        ("AWS says [some 100 ms](https://aws.amazon.com/).", False),
        ("| a warm request | 2.8 ms |", False),
        ("<!-- warm -->\n| 2.8 ms |\n<!-- /warm -->", False),
    ],
)
def test_a_figure_is_a_number_with_a_unit_that_has_no_source(line: str, is_figure: bool) -> None:
    assert bool(figures_without_source(line, ("| a warm request |",))) == is_figure
