"""deploy/release/check.sh refuses a release while something is missing that only its authors know."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from semsearch.version import VERSION
from tests.project import ROOT

PROJECT, CITATION = "pyproject.toml", "CITATION.cff"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the check reads, with an address and authors, and without results of benchmarks."""
    for name in ("deploy/release/check.sh", "CHANGELOG.md", PROJECT, CITATION):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "tables.py").touch()
    change(tmp_path / PROJECT, r"^\[project\.urls\]\n(.+\n)*|^authors = .*\n", "")
    change(tmp_path / PROJECT, r"^\[project\]\n", '[project]\nauthors = [{ name = "X" }]\n')
    change(tmp_path / PROJECT, r"\Z", '\n[project.urls]\nSource = "https://github.com/x/y"\n')
    change(tmp_path / CITATION, r"^repository-code: .*\n", "")
    change(tmp_path / CITATION, r"\Z", "repository-code: https://github.com/x/y\n")
    return tmp_path


def change(file: Path, pattern: str, replacement: str) -> None:
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(pattern, replacement, text, flags=re.MULTILINE), encoding="utf-8")


def check(folder: Path, tag: str = f"v{VERSION}") -> subprocess.CompletedProcess[str]:
    command, path = ["deploy/release/check.sh", tag], {"PATH": os.environ["PATH"]}
    return subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)


def test_a_release_with_all_of_it_prints_its_part_of_the_changelog(checkout: Path) -> None:
    done = check(checkout)
    assert (done.returncode, done.stderr) == (0, "")
    assert "### Texts" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "message"),
    [
        (PROJECT, r"Source = .*\n", "pyproject.toml states no Source in [project.urls]"),
        (PROJECT, r"authors = .*\n", "pyproject.toml states no authors"),
        (CITATION, r"repository-code: .*\n", "CITATION.cff states no repository-code"),
    ],
)
def test_a_release_without_an_address_or_an_author_is_refused(
    checkout: Path, file: str, line: str, message: str
) -> None:
    change(checkout / file, f"^{line}", "")
    done = check(checkout)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: {message}; see Releasing in CONTRIBUTING.md\n"


def test_a_release_of_another_version_is_refused(checkout: Path) -> None:
    assert f"error: the tag is v0.1, expected v{VERSION} as in pyproject.toml" in check(checkout, "v0.1").stderr
