"""Results: tables and pictures for people, JSON for programs, and the commit, machine and texts of both."""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.processors import CLASSES, VNNI, cpu_name, processor_class

PROJECT = Path(__file__).parents[1]
PEERS = PROJECT / "bench" / "peers"
RESULTS = PROJECT / "bench" / "results"
SKIPPED = 3  # exit code of a measurement that this machine cannot run; `python -m bench all` goes on after it
CHANGES = "+changes"  # follows a commit whose tree had uncommitted changes
UNKNOWN = "unknown"  # instead of a commit where the tree is not a git checkout
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


def current_commit(folder: Path = PROJECT) -> str:
    """Return the short hash of the commit that is checked out, followed by "+changes" if the tree differs from it."""
    commit = git(folder, "rev-parse", "--short", "HEAD")
    if commit is None:
        return UNKNOWN
    return commit + (CHANGES if git(folder, "status", "--porcelain", "--", ".", *WRITTEN) else "")


def git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, without the last newline; None if git fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def report(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], details: dict[str, Any], source: Provenance
) -> None:
    """Print the table, and write it with all details to bench/results/."""
    show(columns, rows)
    if source.texts:
        console.print(f"measured on {source.texts}")
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, ["---"] * len(columns), *rows)]
    write_result(name, "\n".join(lines) + "\n", details, source)


def show(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table and write no result."""
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def write_result(name: str, markdown: str, details: dict[str, Any], source: Provenance) -> None:
    """Write a result to bench/results/: NAME.md ends with the provenance in small print, NAME.json begins with it."""
    RESULTS.mkdir(exist_ok=True)
    path = result_file(name, processor_class())
    path.with_suffix(".md").write_text(f"{markdown}\n{source.small_print()}\n", encoding="utf-8")
    content = asdict(source) | {"onnxruntime": version("onnxruntime")} | details
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def result_file(name: str, processor: str) -> Path:
    """Return where the result of a class of processors is: NAME.json for VNNI, NAME.CLASS.json for the others."""
    return RESULTS / (f"{name}.json" if processor == VNNI else f"{name}.{processor}.json")


def read_results(name: str) -> dict[str, dict[str, Any]]:
    """Return the contents of the results of this name that there are, by the class of the processor."""
    files = {processor: result_file(name, processor) for processor in CLASSES}
    return {key: json.loads(path.read_text(encoding="utf-8")) for key, path in files.items() if path.exists()}


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram: its title, the label of its vertical axis, and its lines: values by places on the x axis."""

    title: str
    label: str
    lines: Mapping[str, Mapping[int, float]]
    is_logarithmic: bool = False


def draw_lines(name: str, x_label: str, panels: Sequence[Panel]) -> None:
    """Write a picture beside the result: the panels, with one legend if no panel has other lines than the first."""
    import matplotlib as mpl  # slow to import, and only pictures need it

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    plt.rcParams["svg.hashsalt"] = name  # the same numbers become the same file
    width = 12.8 / len(panels)
    figure, grid = plt.subplots(1, len(panels), figsize=(12.8, max(3.4, width * 0.75)), squeeze=False)
    is_shared = all(panel.lines.keys() <= panels[0].lines.keys() for panel in panels)
    for panel, axes in zip(panels, grid[0], strict=True):
        for label, points in panel.lines.items():
            axes.plot(list(points), list(points.values()), marker="o", markersize=3, label=label)
        axes.set_title(panel.title, fontsize=9)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.0f}"))
        if panel.is_logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_xlabel(x_label)
        axes.set_ylabel(panel.label)
        axes.grid(visible=True, linewidth=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if not is_shared:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2, frameon=False, fontsize=9)
    figure.tight_layout()
    if is_shared:
        lines, names = grid[0][0].get_legend_handles_labels()
        figure.legend(
            lines, names, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(names), frameon=False, fontsize=9
        )
    figure.savefig(
        result_file(name, processor_class()).with_suffix(".svg"), metadata={"Date": None}, bbox_inches="tight"
    )
    plt.close(figure)
