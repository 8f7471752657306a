"""Put measured tables and figures into README.md and docs/, between the markers that name them.

    <!-- warm -->
    <!-- /warm -->                                                     the table bench/results/warm.md
    <!-- figure warm/p50/whole handler .1f -->4.3<!-- /figure -->      one value of bench/results/warm.json

The path of a figure is the name of the result and the keys that lead to the value, separated by slashes; the last word
is the format. Where the value is a list of numbers, the figure is their median. GitHub does not show the markers.
"""

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

from bench.folders import PROJECT, RESULTS
from bench.report import console

TABLE = re.compile(r"(<!-- (?P<name>\w+) -->\n)(?P<content>.*?)(<!-- /(?P=name) -->)", re.DOTALL)
FIGURE = re.compile(r"(<!-- figure (?P<path>[^<>\n]+) (?P<format>\S+) -->)(?P<content>[^<>\n]*)(<!-- /figure -->)")


class DocumentError(ValueError):
    """A marker that cannot be filled: the message says where, what was found, what was expected and what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments: the documents are README.md and docs/, the results those of bench/results/."""


def run(options: argparse.Namespace) -> int:
    """Rewrite the documents and say which results none of them shows; return the exit code."""
    shown: set[str] = set()
    for path in documents(PROJECT):
        text = path.read_text(encoding="utf-8")
        try:
            filled = fill(text, RESULTS)
        except DocumentError as error:
            raise SystemExit(f"error: {path.relative_to(PROJECT)}: {error}") from error
        path.write_text(filled, encoding="utf-8")
        shown |= {match["name"] for match in TABLE.finditer(text)}
        state = "is as measured" if filled == text else "has new tables or figures"
        console.print(f"{path.relative_to(PROJECT)}: {state}")
    for table in sorted(RESULTS.glob("*.md")):
        if table.stem not in shown:
            console.print(f"{table.stem}: no document has the marker <!-- {table.stem} -->")
    return 0


def documents(project: Path) -> list[Path]:
    """Return README.md and the pages of docs/, in order."""
    return [project / "README.md", *sorted((project / "docs").glob("*.md"))]


def fill(text: str, results: Path) -> str:
    """Return a document with each marked table and figure as the results have it now; a table without result is empty.

    Raises DocumentError if a figure is not in the results or cannot be formatted, or if a comment is not a marker.
    """

    def table(match: re.Match[str]) -> str:
        file = results / f"{match['name']}.md"
        return match[1] + (file.read_text(encoding="utf-8") if file.exists() else "") + match[4]

    def figure(match: re.Match[str]) -> str:
        return match[1] + read_figure(match["path"], match["format"], results) + match[5]

    outside = FIGURE.sub("", TABLE.sub("", text))
    if "<!--" in outside:
        comment = outside[outside.index("<!--") :].partition("\n")[0]
        raise DocumentError(
            f"found {comment!r}, expected a table's or a figure's marker and the one that closes it; correct the marker"
        )
    return FIGURE.sub(figure, TABLE.sub(table, text))


def read_figure(path: str, layout: str, results: Path) -> str:
    """Return the value at a path such as "warm/p50/whole handler", formatted; of a list of numbers, the median.

    Raises DocumentError if there is no such value, or if it cannot be formatted so.
    """
    name, *keys = path.split("/")
    value: Any
    try:
        value = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        command = f"python -m bench {name.replace('_', '-')}"
        raise DocumentError(
            f"figure {path}: there is no {name}.json, expected one in {results}; run `{command}`"
        ) from None
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            names = ", ".join(value) if isinstance(value, dict) else f"no keys but {value!r}"[:60]
            raise DocumentError(f"figure {path}: found {names}, expected {key!r}; correct the path of the figure")
        value = value[key]
    try:
        return format(statistics.median(value) if isinstance(value, list) else value, layout)
    except (TypeError, ValueError) as error:
        raise DocumentError(
            f"figure {path}: {error}, expected a value that {layout!r} can format; correct the path or the format"
        ) from error
