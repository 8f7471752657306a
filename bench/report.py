"""Tables for people, JSON for machines."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)  # a log can be wide


def cpu_name() -> str:
    """Give the processor's name as Linux has it, with the instructions that matter here."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    widest = [
        flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx_vnni") if flag in fields.get("flags", "").split()
    ]
    return f"{fields.get('model name', platform.processor())} ({os.cpu_count()} cores; {', '.join(widest)})"


def report(name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], details: dict[str, Any]) -> None:
    """Print the table, and write it as Markdown and with all details as JSON to bench/results/."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)
    content = {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": cpu_name(),
        "python": platform.python_version(),
        "onnxruntime": version("onnxruntime"),
        **details,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, ["---"] * len(columns), *rows)]
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")
