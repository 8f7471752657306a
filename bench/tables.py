"""Put measured tables and figures into README.md and docs/, between the markers that name them.

    <!-- warm -->
    <!-- /warm -->                                                     the table bench/results/warm.md
    <!-- serve texts=short connections=40 -->
    <!-- /serve -->                                                    the rows of serve.md with these cells
    <!-- figure warm/p50/whole handler .1f -->4.3<!-- /figure -->      one value of bench/results/warm.json

A document shows at most ROWS rows of a table, the first ones, and a link to the whole table. The path of a figure is
the name of the result and the keys that lead to the value, separated by slashes; the last word is the format. If the
value is a list of numbers, the figure is their median. `warm.avx2` is the result of another class of processors than
VNNI. GitHub does not show the markers.
"""

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

from bench.report import CLASSES, PROJECT, RESULTS, console

ROWS = 10
TABLE = re.compile(
    r"(<!-- (?P<name>\w+)(?P<cells>(?: \w+=[^\s=]+)*) -->\n)(?P<content>.*?)(<!-- /(?P=name) -->)", re.DOTALL
)
FIGURE = re.compile(r"(<!-- figure (?P<path>[^<>\n]+) (?P<format>\S+) -->)(?P<content>[^<>\n]*)(<!-- /figure -->)")


class DocumentError(ValueError):
    """A marker that cannot be filled: the message says where, what was found, what was expected and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the documents are README.md and docs/, the results those of bench/results/."""


def run(options: argparse.Namespace) -> int:
    """Rewrite the documents and print which of them changed; return the exit code."""
    for path in pages(PROJECT):
        text = path.read_text(encoding="utf-8")
        try:
            filled = fill(text, RESULTS, "" if path.parent == PROJECT else "../")
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


def fill(text: str, results: Path, root: str = "") -> str:
    """Return a document with each marked table and figure as the results have it now; a table without result is empty.

    root is the path from the document's folder to the project's, which links begin with.
    Raises DocumentError if a figure is not in the results or cannot be formatted, or if a comment is not a marker.
    """

    def table(match: re.Match[str]) -> str:
        file = results / f"{match['name']}.md"
        cells = dict(cell.split("=") for cell in match["cells"].split())
        return match[1] + (shorten(file, cells, root) if file.exists() else "") + match[5]

    def figure(match: re.Match[str]) -> str:
        return match[1] + read_figure(match["path"], match["format"], results) + match[5]

    outside = FIGURE.sub("", TABLE.sub("", text))
    if "<!--" in outside:
        comment = outside[outside.index("<!--") :].partition("\n")[0]
        raise DocumentError(
            f"found {comment!r}, expected a table's or a figure's marker and the one that closes it; correct the marker"
        )
    return FIGURE.sub(figure, TABLE.sub(table, text))


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


def read_figure(path: str, layout: str, results: Path) -> str:
    """Return the value at a path such as "warm/p50/whole handler", formatted; of a list of numbers, the median.

    A result of another class of processors, such as "warm.arm/p50/whole handler", can be "not measured".
    Raises DocumentError if there is no such value, or if it cannot be formatted so.
    """
    name, *keys = path.split("/")
    value: Any
    try:
        value = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        if name.rpartition(".")[2] in CLASSES:
            return "not measured"
        raise DocumentError(
            f"figure {path}: there is no {name}.json, expected one in {results}; correct the name, or measure it"
        ) from None
    try:
        for key in keys:
            value = value[key]
        return format(statistics.median(value) if isinstance(value, list) else value, layout)
    except (KeyError, TypeError, ValueError) as error:
        raise DocumentError(f"figure {path}: found {error!r}, expected a value to format as {layout!r}") from error
