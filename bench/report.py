"""Results: tables for people, JSON for programs, and the commit, machine and texts of both."""

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).parents[1]
PEERS = PROJECT / "bench" / "peers"
RESULTS = PROJECT / "bench" / "results"
SKIPPED = 3  # exit code of a measurement that this machine cannot run; `python -m bench all` goes on after it
VNNI, AVX2, ARM = ("vnni", "avx2", "arm")  # classes of processors by their products of bytes
CPUINFO = Path("/proc/cpuinfo")
# measuring writes these files itself, so they are no changes
WRITTEN = (":(exclude)bench/results", ":(exclude)*.md")

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 200)  # wide in a log


class Missing(SystemExit):
    """A measurement needs something that this machine lacks; the message says what it is and how to get it."""


def numbers(text: str) -> list[int]:
    """Return the whole numbers of a list with commas."""
    return sorted({int(word) for word in text.split(",")})


def docker_problem() -> str | None:
    """Return why no container can be run on this machine; None if one can."""
    if shutil.which("docker") is None:
        return "docker is not installed on this machine"
    done = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return f"docker is installed, but no engine answers: {done.stderr.strip().splitlines()[-1]}"
    return None


def require_docker() -> None:
    """Raise Missing if no container can be run on this machine."""
    problem = docker_problem()
    if problem is not None:
        raise Missing(f"{problem}; this measurement starts the image, so install Docker and start its engine")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a result was measured with; texts is "" if no texts were read, measured is an ISO 8601 time."""

    commit: str
    python: str
    machine: str
    texts: str
    measured: str

    def small_print(self) -> str:
        """Return the line of Markdown that ends a table."""
        commit = f"commit {self.commit}"
        parts = (commit, f"Python {self.python}", self.machine, self.texts, self.measured.partition("T")[0])
        return f"<sub>{', '.join(part for part in parts if part)}</sub>"


def make_provenance(texts: str = "", python: str = "") -> Provenance:
    """Return the provenance of a result that is measured now.

    texts describes what was read, such as "30,000 headlines". python is the version that ran the measured code, by
    default the one that runs this.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(current_commit(), python or platform.python_version(), cpu_name(), texts, now)


def cpu_fields() -> dict[str, str]:
    """Return what Linux reports about the last core, by name; empty on other systems."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines if ":" in line)}


def processor_class() -> str:
    """Return the class of the processor that this process sees."""
    if platform.machine() in ("aarch64", "arm64"):
        return ARM
    has_vnni = {"avx512_vnni", "avx_vnni"} & set(cpu_fields().get("flags", "").split())
    return VNNI if has_vnni else AVX2


def cpu_name() -> str:
    """Return the processor's name as Linux reports it, its cores, and its instructions for 8-bit products."""
    fields = cpu_fields()
    flags = fields.get("flags", fields.get("Features", "")).split()
    widest = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "asimddp", "i8mm") if flag in flags]
    return f"{fields.get('model name', platform.processor())} ({os.cpu_count()} cores; {', '.join(widest)})"


def current_commit(folder: Path = PROJECT) -> str:
    """Return the short hash of the commit that is checked out, followed by "+changes" if the tree differs from it.

    "unknown" if the folder is no git checkout.
    """
    commit, changed = (
        subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
        for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--", ".", *WRITTEN))
    )
    return commit + ("+changes" if changed else "") if commit else "unknown"


def report(
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    details: dict[str, Any],
    source: Provenance,
    *,
    by_class: bool = True,
) -> None:
    """Print the table, and write it with all details to bench/results/.

    by_class is whether each class of processors has a result of its own.
    """
    show(columns, rows)
    if source.texts:
        console.print(f"measured on {source.texts}")
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, ["---"] * len(columns), *rows)]
    processor = processor_class() if by_class else VNNI
    write_result(name, "\n".join(lines) + "\n", details, source, processor)


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table and write no result."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def write_result(name: str, markdown: str, details: dict[str, Any], source: Provenance, processor: str = "") -> None:
    """Write a result to bench/results/: NAME.md ends with the provenance in small print, NAME.json begins with it.

    Without a class of processors, it is the result of this machine's.
    """
    RESULTS.mkdir(exist_ok=True)
    path = result_file(name, processor or processor_class())
    path.with_suffix(".md").write_text(f"{markdown}\n{source.small_print()}\n", encoding="utf-8")
    content = asdict(source) | {"onnxruntime": version("onnxruntime")} | details
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def result_file(name: str, processor: str) -> Path:
    """Return where the result of a class of processors is: NAME.json for VNNI, NAME.CLASS.json for the others."""
    return RESULTS / (f"{name}.json" if processor == VNNI else f"{name}.{processor}.json")
