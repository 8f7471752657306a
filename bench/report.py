"""Tables for people, JSON for machines; both say where the figures come from."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.folders import RESULTS
from bench.provenance import Provenance

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)  # a log can be wide


def report(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], details: dict[str, Any], source: Provenance
) -> None:
    """Print the table, and write it as Markdown and with all details as JSON to bench/results/."""
    show(columns, rows)
    if source.texts:
        console.print(f"measured on {source.texts}")
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, ["---"] * len(columns), *rows)]
    write_result(name, "\n".join(lines) + "\n", details, source)


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print the table alone."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def write_result(name: str, markdown: str, details: dict[str, Any], source: Provenance) -> None:
    """Write a result to bench/results/: NAME.md ends with the provenance in small print, NAME.json begins with it."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"{markdown}\n{source.small_print()}\n", encoding="utf-8")
    content = asdict(source) | {"onnxruntime": version("onnxruntime")} | details
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_result(name: str) -> dict[str, Any] | None:
    """Return what a measurement wrote to NAME.json, or None if it has not run yet."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
