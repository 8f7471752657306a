"""Put measured tables and figures into README.md and docs/.

    <!-- warm -->
    <!-- /warm -->                                                     the table bench/results/warm.md
    <!-- serve texts=short connections=40 -->
    <!-- /serve -->                                                    the rows of serve.md with these cells

A document shows at most ROWS rows of a table, the first ones, and a link to the whole table. GitHub does not show the
markers. A figure in a sentence or in a table of our own has no marker: FIGURES names the line and its values.
"""

import argparse
import json
import re
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.report import PROJECT, RESULTS, console

ROWS = 10
TABLE = re.compile(
    r"(<!-- (?P<name>\w+)(?P<cells>(?: \w+=[^\s=]+)*) -->\n)(?P<content>.*?)(<!-- /(?P=name) -->)", re.DOTALL
)
NUMBER = re.compile(r"(?<![\w.@-])\d+(?:,\d{3})*(?:\.\d+)?%?(?![\w-])")  # not the numbers in recall@10, float32, 8-bit

STARTS = (  # the rows of cold_start that README.md compares
    "this function",
    "FastAPI + ONNX Runtime in Lambda's base image",
    "FastAPI + fastembed in Lambda's base image",
    "FastAPI + sentence-transformers",
)


def on_both(name: str, keys: str) -> tuple[str, str]:
    """Return the values of a result with VNNI, and of the same with AVX2 alone."""
    return f"{name}/{keys}", f"{name}.avx2/{keys}"


# For each document, the beginning of a line and what replaces the first numbers behind it. A value is the name of a
# result and the keys that lead to it, with slashes between them, and the format. A list is replaced by its median.
FIGURES: dict[str, dict[str, tuple[str, ...]]] = {
    "README.md": {
        "Measured on two cores": ("warm/rows ,d",),
        "| warm request |": ("warm/p50/whole handler .1f", "warm/p50/bare session.run .1f"),
        "| cold start |": tuple(f"cold_start/seen/warm/{name}/init ,.0f" for name in STARTS),
        "| cold start, nothing in the page cache |": tuple(
            f"cold_start/seen/dropped/{name}/init ,.0f" for name in STARTS
        ),
        "| peak memory |": tuple(f"cold_start/seen/warm/{name}/peak_megabytes .0f" for name in STARTS),
        "| ranking of hybrid search (SciFact nDCG@10) |": tuple(
            f"modes/results/{name} .2f" for name in ("hybrid, english stems", "semantic", "keyword, english stems")
        ),
        "| nearest neighbours that 8 bit keeps (recall@10) |": (
            "accuracy/results/w8a14 (shipped)/recall_both_sides .3f",
            "accuracy/results/naive dynamic int8/recall_both_sides .3f",
        ),
        "| model |": ("accuracy/results/w8a14 (shipped)/megabytes .1f", "accuracy/results/float32/megabytes .1f"),
        "| requests a second, 40 callers at once |": (
            "serve/multiples/FastAPI + gunicorn/predict, short, 40 .1f",
            "serve/multiples/infinity-emb/predict, short, 40 .1f",
        ),
        "| embedding a corpus |": ("throughput/ratios/w8a14 (shipped) .1f",),
    },
    "accuracy.md": {
        "is measured with ": ("accuracy/queries ,d", "accuracy/others ,d"),
        "It replaces ": ("modes/corrected .1%",),
        "A request to `/similar` with a query of ": ("warm/words d", "warm/rows ,d"),
    },
    "benchmarks.md": {
        "| one text of 8 tokens, times the milliseconds of naive int8 |": on_both(
            "latency", "ratios/w8a14 (shipped)/8 .2f"
        ),
        "| one text of 32 tokens, times the milliseconds of naive int8 |": on_both(
            "latency", "ratios/w8a14 (shipped)/32 .2f"
        ),
        "| float32 with 32 tokens, times the milliseconds of naive int8 |": on_both("latency", "ratios/float32/32 .2f"),
        "| embedding a corpus, times the rate of sentence-transformers |": on_both(
            "throughput", "ratios/w8a14 (shipped) .2f"
        ),
        "| a warm request, ms |": on_both("warm", "p50/whole handler .1f"),
        "| cold start: INIT, ms |": on_both("cold_start", "seen/warm/this function/init ,.0f"),
        f"| cold start: share of the INIT of {STARTS[1]} |": on_both("cold_start", f"shares/warm/{STARTS[1]}/init .2f"),
    },
    "operate.md": {"- **A revoked key** was accepted for another ": ("month/nights/13/revoked_within .0f",)},
    "cold-start.md": {
        "| above, and in the README |": ("cold_start/seen/warm/this function/init ,.0f", "cold_start/starts d"),
        "| [memory](deploy.md#how-much-memory), and the cost of a cold start |": ("memory/seen/1769/init ,.0f",),
        "| [number of texts](scale.md#what-was-measured) |": ("scale/sizes/30000/starts/warm/init ,.0f",),
    },
}


class DocumentError(ValueError):
    """A marker that cannot be filled: the message says where, what was found, what was expected and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the documents are README.md and docs/, the results those of bench/results/."""


def run(options: argparse.Namespace) -> int:
    """Rewrite the documents and print which of them changed; return the exit code."""
    for path in pages(PROJECT):
        text = path.read_text(encoding="utf-8")
        try:
            filled = fill_page(path, RESULTS)
        except DocumentError as error:
            raise SystemExit(f"error: {path.relative_to(PROJECT)}: {error}") from error
        path.write_text(filled, encoding="utf-8")
        console.print(
            f"{path.relative_to(PROJECT)}: {'is as measured' if filled == text else 'has new tables or figures'}"
        )
    return 0


def pages(project: Path) -> list[Path]:
    """Return README.md and the pages of docs/, in order."""
    return [project / "README.md", *sorted((project / "docs").glob("*.md"))]


def fill_page(page: Path, results: Path) -> str:
    """Return a document of this project with its tables and figures as the results have them now.

    Raises DocumentError as `fill` and `fill_figures` do.
    """
    text = fill(page.read_text(encoding="utf-8"), results, "" if page.parent == PROJECT else "../")
    return fill_figures(text, FIGURES.get(page.name, {}), results)


def fill(text: str, results: Path, root: str = "") -> str:
    """Return a document with each marked table as the results have it now; a table without result is empty.

    root is the path from the document's folder to the project's, which links begin with.
    Raises DocumentError if a comment is not a marker.
    """

    def table(match: re.Match[str]) -> str:
        file = results / f"{match['name']}.md"
        cells = dict(cell.split("=") for cell in match["cells"].split())
        return match[1] + (shorten(file, cells, root) if file.exists() else "") + match[5]

    outside = TABLE.sub("", text)
    if "<!--" in outside:
        comment = outside[outside.index("<!--") :].partition("\n")[0]
        raise DocumentError(
            f"found {comment!r}, expected a table's marker and the one that closes it; correct the marker"
        )
    return TABLE.sub(table, text)


def fill_figures(text: str, figures: Mapping[str, tuple[str, ...]], results: Path) -> str:
    """Return a document with the first numbers of some lines replaced by what was measured.

    figures has, for the beginning of a line, the paths of the values and their formats, as FIGURES has them.
    Raises DocumentError if no line or more than one begins so, if it has fewer numbers, or if there is no such value.
    """
    lines = text.splitlines(keepends=True)
    for beginning, paths in figures.items():
        places = [place for place, line in enumerate(lines) if line.startswith(beginning)]
        if len(places) != 1:
            raise DocumentError(
                f"found {len(places)} lines that begin with {beginning!r}, expected one; correct FIGURES"
            )
        rest = lines[places[0]].removeprefix(beginning)
        if len(NUMBER.findall(rest)) < len(paths):
            raise DocumentError(f"found {rest!r} behind {beginning!r}, expected {len(paths)} numbers; correct FIGURES")
        lines[places[0]] = beginning + _with_values(rest, [read_figure(path, results) for path in paths])
    return "".join(lines)


def _with_values(text: str, values: list[str]) -> str:
    following = iter(values)
    return NUMBER.sub(lambda _: next(following), text, count=len(values))


def shorten(file: Path, cells: dict[str, str], root: str) -> str:
    """Return the table of a Markdown file: the first ROWS rows with these cells, and a link to the file if it has more.

    cells has the wanted content of columns by their heads. Raises DocumentError if there is no row with them.
    """
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    table = [line for line in lines if line.startswith("|")]
    wanted = [
        row for row in table[2:] if cells.items() <= dict(zip(_cells(table[0]), _cells(row), strict=True)).items()
    ]
    if table and not wanted:
        raise DocumentError(f"{file.stem}: no row has {cells}, expected cells of {file}; correct the marker")
    if len(table[2:]) == len(wanted[:ROWS]):
        return "".join(lines)
    rest = [line for line in lines if not line.startswith("|")]
    link = f"\n[All {len(table[2:])} rows]({root}bench/results/{file.name})\n"
    return "".join([*table[:2], *wanted[:ROWS], link, *rest])


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|\n").split("|")]


def read_figure(path: str, results: Path) -> str:
    """Return the value at a path such as "warm/p50/whole handler .1f", formatted; of a list of numbers, the median.

    Raises DocumentError if there is no such value, or if it cannot be formatted so.
    """
    keys, _, layout = path.rpartition(" ")
    name, *rest = keys.split("/")
    try:
        value: Any = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        for key in rest:
            value = value[key]
        return format(statistics.median(value) if isinstance(value, list) else value, layout)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DocumentError(f"figure {keys}: found {error!r}, expected a value to format as {layout!r}") from error
