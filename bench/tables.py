"""Tables and figures: written to bench/results/ by measurements, and put into README.md and docs/ by `tables`.

    <!-- warm -->
    <!-- /warm -->                                                     the table bench/results/warm.md

A document shows at most ROWS rows of a table, the first ones, and a link to the whole table. GitHub does not show the
markers. A figure in a sentence or in a table of our own has no marker: figures.toml names the line and its values.

`python -m bench.tables` prints the results that other code measured, and ends with exit code 1 if there are any. It
needs nothing but Python and git, because a release runs it (deploy/release/check.sh).
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import PROJECT, RESULTS

CPUINFO = Path("/proc/cpuinfo")
# Changes of these change no measurement: what it writes itself, documents, their figures, and tests.
UNMEASURED = tuple(
    f":(exclude){each}" for each in ("bench/results", "bench/figures.toml", "*.md", "test_*.py", "*/test_*.py")
)
PRODUCTION = ("semsearch", "function", "export")  # folders with the code that results are about

ROWS = 10
TABLE = re.compile(r"(<!-- (?P<name>\w+) -->\n)(?P<content>.*?)(<!-- /(?P=name) -->)", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.@-])\d+(?:,\d{3})*(?:\.\d+)?%?(?![\w-])")  # not the numbers in recall@10, float32, 8-bit

# For each document, the beginning of a line and what replaces the first numbers behind it. A value is the name of a
# result and the keys that lead to it, with slashes between them, and the format. A list is replaced by its median.
FIGURES: dict[str, dict[str, list[str]]] = tomllib.loads(Path(__file__).with_name("figures.toml").read_text("utf-8"))


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


def cpu_name() -> str:
    """Return the processor's name as Linux reports it, its cores, and its instructions for 8-bit products."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines if ":" in line)}
    flags = fields.get("flags", fields.get("Features", "")).split()
    widest = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "asimddp", "i8mm") if flag in flags]
    return f"{fields.get('model name', platform.processor())} ({os.cpu_count()} cores; {', '.join(widest)})"


def current_commit(folder: Path = PROJECT) -> str:
    """Return the short hash of the commit that is checked out, followed by "+changes" if the measured code differs.

    "unknown" if the folder is no git checkout.
    """
    commit, changed = (
        subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()
        for words in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "--", ".", *UNMEASURED))
    )
    return commit + ("+changes" if changed else "") if commit else "unknown"


def report(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], details: dict[str, Any], source: Provenance
) -> None:
    """Print the table, and write it to bench/results/.

    NAME.md ends with the provenance in small print, NAME.json begins with it and has all details.
    """
    table = as_markdown(columns, rows)
    print(f"{table}measured on {source.texts or 'this machine'}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(f"{table}\n{source.small_print()}\n", encoding="utf-8")
    content = asdict(source) | {"onnxruntime": version("onnxruntime")} | details
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def as_markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table of Markdown."""
    lines = ["| " + " | ".join(map(str, cells)) + " |" for cells in (columns, ["---"] * len(columns), *rows)]
    return "\n".join(lines) + "\n"


class DocumentError(ValueError):
    """A marker that cannot be filled: the message says where, what was found, what was expected and what to do."""


def tables() -> None:
    """Put the tables and figures of bench/results/ into README.md and docs/, and print which pages changed."""
    for path in pages(PROJECT):
        text = path.read_text(encoding="utf-8")
        try:
            filled = fill_page(path, RESULTS)
        except DocumentError as error:
            raise SystemExit(f"error: {path.relative_to(PROJECT)}: {error}") from error
        path.write_text(filled, encoding="utf-8")
        print(f"{path.relative_to(PROJECT)}: {'is as measured' if filled == text else 'has new tables or figures'}")


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
        return match[1] + (shorten(file, root) if file.exists() else "") + match[4]

    outside = TABLE.sub("", text)
    if "<!--" in outside:
        comment = outside[outside.index("<!--") :].partition("\n")[0]
        raise DocumentError(
            f"found {comment!r}, expected a table's marker and the one that closes it; correct the marker"
        )
    return TABLE.sub(table, text)


def fill_figures(text: str, figures: Mapping[str, Sequence[str]], results: Path) -> str:
    """Return a document with the first numbers of some lines replaced by what was measured.

    figures has, for the beginning of a line, the paths of the values and their formats, as figures.toml has them.
    Raises DocumentError if no line or more than one begins so, if it has fewer numbers, or if there is no such value.
    """
    lines = text.splitlines(keepends=True)
    for beginning, paths in figures.items():
        places = [place for place, line in enumerate(lines) if line.startswith(beginning)]
        if len(places) != 1:
            raise DocumentError(
                f"found {len(places)} lines that begin with {beginning!r}, expected one; correct figures.toml"
            )
        rest = lines[places[0]].removeprefix(beginning)
        if len(NUMBER.findall(rest)) < len(paths):
            raise DocumentError(
                f"found {rest!r} behind {beginning!r}, expected {len(paths)} numbers; correct figures.toml"
            )
        lines[places[0]] = beginning + _with_values(rest, [read_figure(path, results) for path in paths])
    return "".join(lines)


def _with_values(text: str, values: list[str]) -> str:
    following = iter(values)
    return NUMBER.sub(lambda _: next(following), text, count=len(values))


def shorten(file: Path, root: str) -> str:
    """Return the table of a Markdown file: the first ROWS rows, and a link to the file if it has more."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    table = [line for line in lines if line.startswith("|")]
    if len(table) - 2 <= ROWS:  # two lines are the head
        return "".join(lines)
    rest = [line for line in lines if not line.startswith("|")]
    link = f"\n[All {len(table) - 2} rows]({root}bench/results/{file.name})\n"
    return "".join([*table[: ROWS + 2], link, *rest])


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


def outdated(results: Path, project: Path) -> Iterator[str]:
    """Yield a line for each result that was measured with other production code than that of HEAD."""
    for file in sorted(results.glob("*.json")):
        commit = json.loads(file.read_text(encoding="utf-8")).get("commit", "unknown")
        same = ["git", "diff", "--quiet", commit, "HEAD", "--", *PRODUCTION]
        if subprocess.run(same, cwd=project, capture_output=True, check=False).returncode:
            yield (
                f"{file.name}: was measured at commit {commit}, whose code differs from HEAD's; "
                f"run `python -m bench {file.stem.replace('_', '-')}` again"
            )


if __name__ == "__main__":
    sys.exit("\n".join(outdated(RESULTS, PROJECT)) or 0)
