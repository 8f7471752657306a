"""What a result is written with: the commit and its changes, the class of the processor, and the small print."""

import json
import platform
import subprocess
from pathlib import Path

import pytest

from bench import report as module
from bench.report import ARM, AVX2, VNNI, Provenance, cpu_name, current_commit, processor_class, report

SOURCE = Provenance("abc1234", "3.13.0", "Some CPU (2 cores; avx2)", "30,000 headlines", "2026-11-21T12:00:00+00:00")


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "expected", "shown"),
    [
        ("x86_64", "model name\t: A\nflags\t\t: avx2 avx512f avx512_vnni", VNNI, "avx2, avx512f, avx512_vnni"),
        ("x86_64", "model name\t: A\nflags\t\t: avx2 avx512f", AVX2, "avx2, avx512f"),
        ("aarch64", "Features\t: fp asimddp i8mm", ARM, "asimddp, i8mm"),
    ],
    ids=["VNNI", "AVX-512 alone", "Arm"],
)
def test_a_processor_is_of_the_class_of_its_products_of_bytes(
    machine: str, cpuinfo: str, expected: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{cpuinfo}\n")
    monkeypatch.setattr(module, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert processor_class() == expected
    assert f"; {shown})" in cpu_name()


def test_a_changed_tree_is_told_from_its_commit_but_measuring_changes_nothing(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        settings = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *settings, *words], cwd=tmp_path, check=True, capture_output=True)

    assert current_commit(tmp_path) == "unknown"
    (tmp_path / "app.py").write_text("1")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "A change")
    clean = current_commit(tmp_path)
    (tmp_path / "README.md").write_text("a table")
    assert current_commit(tmp_path) == clean
    (tmp_path / "app.py").write_text("2")
    assert current_commit(tmp_path) == f"{clean}+changes"


def test_a_table_ends_with_its_provenance_and_its_json_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.report.RESULTS", tmp_path)
    for processor, name in ((VNNI, "speed"), (AVX2, "speed.avx2")):
        monkeypatch.setattr("bench.report.processor_class", lambda own=processor: own)
        report("speed", ("", "ms"), [("it", 1.5)], {"seen": [1.5]}, SOURCE)
        small_print = "<sub>commit abc1234, Python 3.13.0, Some CPU (2 cores; avx2), 30,000 headlines, 2026-11-21</sub>"
        assert (tmp_path / f"{name}.md").read_text() == f"|  | ms |\n| --- | --- |\n| it | 1.5 |\n\n{small_print}\n"
        content = json.loads((tmp_path / f"{name}.json").read_text())
        assert [*content][:5] == ["commit", "python", "machine", "texts", "measured"]
        assert content["seen"] == [1.5]
