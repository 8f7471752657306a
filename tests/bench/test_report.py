"""What a result is written with: the commit and its changes, in a git repository made for it, and the small print."""

import json
from pathlib import Path

import pytest

from bench.processors import ARM, AVX2, CLASSES, VNNI
from bench.report import UNKNOWN, Provenance, current_commit, read_results, report
from tests.bench.repository import Repository

SOURCE = Provenance("abc1234", "3.13.0", "Some CPU (2 cores; avx2)", "30,000 headlines", "2026-11-21T12:00:00+00:00")


def test_a_changed_tree_is_told_from_its_commit_but_measuring_changes_nothing(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    clean = repository.commit({"function/app.py": "1"})
    repository.write({"bench/results/warm.json": "{}", "README.md": "a table", "docs/cold-start.md": "a table"})
    assert current_commit(tmp_path) == clean
    repository.write({"function/app.py": "2"})
    assert current_commit(tmp_path) == f"{clean}+changes"


def test_without_git_the_commit_is_unknown(tmp_path: Path) -> None:
    assert current_commit(tmp_path) == UNKNOWN


def test_a_table_ends_with_its_provenance_and_its_json_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    monkeypatch.setattr("bench.report.processor_class", lambda: VNNI)
    report("speed", ("", "ms"), [("it", 1.5)], {"seen": [1.5]}, SOURCE)
    small_print = "<sub>commit abc1234, Python 3.13.0, Some CPU (2 cores; avx2), 30,000 headlines, 2026-11-21</sub>"
    assert (tmp_path / "speed.md").read_text() == f"|  | ms |\n| --- | --- |\n| it | 1.5 |\n\n{small_print}\n"
    content = json.loads((tmp_path / "speed.json").read_text())
    assert [*content][:5] == ["commit", "python", "machine", "texts", "measured"]
    assert content["seen"] == [1.5]


def test_each_class_of_processors_keeps_its_own_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    for milliseconds, processor in enumerate(CLASSES):
        monkeypatch.setattr("bench.report.processor_class", lambda own=processor: own)
        report("speed", ("", "ms"), [("it", milliseconds)], {"seen": milliseconds}, SOURCE)
    assert {key: result["seen"] for key, result in read_results("speed").items()} == {VNNI: 0, AVX2: 1, ARM: 2}
    assert {path.name for path in tmp_path.glob("*.json")} == {"speed.json", "speed.avx2.json", "speed.arm.json"}
    assert "| it | 1 |" in (tmp_path / "speed.avx2.md").read_text()
