"""Where a result comes from: the commit, the Python, the processor, the texts and the day."""

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.folders import PROJECT

CHANGES = "+changes"  # after a commit: the tree had changes that no commit has
UNKNOWN = "unknown"  # instead of a commit: the tree is not a git checkout
# measuring writes these, and they are not what is measured
WRITTEN = (":(exclude)bench/results", ":(exclude)*.md")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a result was measured with; texts is "" where no texts were read, measured an ISO 8601 time."""

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

    texts says what was read, such as "30,000 headlines"; python is the version that the measured code ran on, by
    default the one that runs this.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Provenance(current_commit(), python or platform.python_version(), cpu_name(), texts, now)


def current_commit(folder: Path = PROJECT) -> str:
    """Return the short name of the commit that is checked out, "+changes" after it if the tree differs from it."""
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


def cpu_name() -> str:
    """Return the processor's name as Linux has it, with its cores and the instructions that matter here."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    fields = {name.strip(): value.strip() for name, value in pairs}
    flags = fields.get("flags", "").split()
    widest = [flag for flag in ("avx2", "avx512f", "avx512_vnni", "avx_vnni") if flag in flags]
    return f"{fields.get('model name', platform.processor())} ({os.cpu_count()} cores; {', '.join(widest)})"
