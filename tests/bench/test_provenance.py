"""Where a result comes from, and whether it still holds: in a git repository made for it."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bench.provenance import UNKNOWN, Provenance, current_commit, make_provenance
from bench.report import report
from bench.stale import why_stale

SOURCE = Provenance("abc1234", "3.13.0", "Some CPU (2 cores; avx2)", "30,000 headlines", "2026-11-21T12:00:00+00:00")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Someone")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "someone@example.org")
    run(tmp_path, "init", "--quiet")
    commit(tmp_path, "function/app.py", "1")
    return tmp_path


def run(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "commit.gpgsign=false", *arguments], cwd=folder, check=True, capture_output=True)


def write(folder: Path, path: str, text: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def commit(folder: Path, path: str, text: str) -> None:
    write(folder, path, text)
    run(folder, "add", ".")
    run(folder, "commit", "--quiet", "-m", f"Change {path}")


def test_a_changed_tree_is_told_from_its_commit(repository: Path) -> None:
    clean = current_commit(repository)
    assert len(clean) >= 7
    assert "+" not in clean
    write(repository, "function/app.py", "2")
    assert current_commit(repository) == f"{clean}+changes"


def test_results_and_documents_that_measuring_writes_do_not_count_as_changes(repository: Path) -> None:
    write(repository, "bench/results/warm.json", "{}")
    write(repository, "README.md", "a table")
    write(repository, "docs/cold-start.md", "a table")
    assert "+" not in current_commit(repository)


def test_without_git_the_commit_is_unknown(tmp_path: Path) -> None:
    assert current_commit(tmp_path) == UNKNOWN


def test_a_result_is_stale_when_what_it_measures_changed(repository: Path) -> None:
    measured = current_commit(repository)
    commit(repository, "export/cli.py", "1")
    assert why_stale(repository, measured, ("function", "deploy")) == ""
    commit(repository, "function/app.py", "2")
    reason = why_stale(repository, measured, ("function", "deploy"))
    assert reason == f"measured on {measured}; newer commits that changed function, deploy: 1"


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (UNKNOWN, "its commit was not recorded"),
        ("abc1234+changes", "measured on abc1234 with changes that were not committed"),
        ("abc1234", "measured on abc1234, which this checkout does not have"),
    ],
)
def test_a_result_of_no_known_commit_is_stale(repository: Path, measured: str, reason: str) -> None:
    assert why_stale(repository, measured, ("function",)) == reason


def test_a_table_ends_with_its_provenance_and_its_json_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    report("speed", ("", "ms"), [("it", 1.5)], {"seen": [1.5]}, SOURCE)
    small_print = "<sub>commit abc1234, Python 3.13.0, Some CPU (2 cores; avx2), 30,000 headlines, 2026-11-21</sub>"
    assert (tmp_path / "speed.md").read_text() == f"|  | ms |\n| --- | --- |\n| it | 1.5 |\n\n{small_print}\n"
    content = json.loads((tmp_path / "speed.json").read_text())
    assert [*content][:5] == ["commit", "python", "machine", "texts", "measured"]
    assert content["seen"] == [1.5]


def test_a_result_without_texts_names_none() -> None:
    assert ", ," not in replace(SOURCE, texts="").small_print()


def test_a_result_from_the_image_names_the_images_python() -> None:
    assert make_provenance(python="3.13.99").python == "3.13.99"
