"""Results: what they are written with, what documents show of them, and which of them are outdated."""

import json
import subprocess
from pathlib import Path

import pytest

from bench import tables
from bench.tables import Provenance, report


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """One measured table, and its values."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "warm.md").write_text("| ms |\n| --- |\n| 4.3 |\n")
    content = {"p50": {"whole handler": 4.336}, "init": [300.2, 290.0, 400.0], "share": 0.125}
    (folder / "warm.json").write_text(json.dumps(content))
    return folder


def test_a_table_replaces_what_stood_between_its_markers(results: Path) -> None:
    text = "before\n<!-- warm -->\n| old |\n<!-- /warm -->\nafter\n"
    expected = "before\n<!-- warm -->\n| ms |\n| --- |\n| 4.3 |\n<!-- /warm -->\nafter\n"
    assert tables.fill(text, results) == expected


def test_the_numbers_behind_the_beginning_of_a_line_are_what_was_measured(results: Path) -> None:
    text = "8 tokens take 7 ms.\n| naive int8 (recall@10) | 9 ms, 1,234.5 with 8-bit, 20% of 3 |\n"
    figures = {"| naive int8 (recall@10) |": ("warm/p50/whole handler .1f", "warm/init ,.0f", "warm/share .1%")}
    expected = "8 tokens take 7 ms.\n| naive int8 (recall@10) | 4.3 ms, 300 with 8-bit, 12.5% of 3 |\n"
    assert tables.fill_figures(text, figures, results) == expected


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("It takes 9 ms.\n", "cold/init .1f", "figure cold/init: found FileNotFoundError("),
        ("It takes 9 ms.\n", "warm/p99 .1f", "figure warm/p99: found KeyError('p99'), expected a value"),
        ("It takes long.\n", "warm/init .1f", "found ' long.\\n' behind 'It takes', expected 1 numbers"),
        ("It took 9 ms.\n", "warm/init .1f", "found 0 lines that begin with 'It takes', expected one"),
        ("It takes 9.\nIt takes 9.\n", "warm/init .1f", "found 2 lines that begin with 'It takes', expected one"),
    ],
    ids=["no result", "no key", "no number", "no line", "two lines"],
)
def test_a_figure_that_cannot_be_filled_is_refused(results: Path, text: str, path: str, message: str) -> None:
    with pytest.raises(tables.DocumentError) as caught:
        tables.fill_figures(text, {"It takes": (path,)}, results)
    assert message in str(caught.value)


def test_a_marker_that_nothing_closes_is_refused(results: Path) -> None:
    with pytest.raises(tables.DocumentError, match="found '<!-- warm -->', expected a table's marker and the one that"):
        tables.fill("<!-- warm -->\n| 1 |\n", results)


@pytest.mark.parametrize(
    ("cpuinfo", "shown"),
    [
        ("model name\t: A\nflags\t\t: avx2 avx512f avx512_vnni", "A (2 cores; avx2, avx512f, avx512_vnni)"),
        ("model name\t: B\nFeatures\t: fp asimddp i8mm", "B (2 cores; asimddp, i8mm)"),
    ],
    ids=["x86-64", "Arm"],
)
def test_a_processor_is_named_with_its_instructions_for_products_of_bytes(
    cpuinfo: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{cpuinfo}\n")
    monkeypatch.setattr(tables, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert tables.cpu_name() == shown


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=Someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path) -> str:
    """Commit all files, and return the short hash."""
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "A change")
    return git(folder, "rev-parse", "--short", "HEAD")


def test_a_changed_tree_is_told_from_its_commit_unless_nothing_measured_has_changed(tmp_path: Path) -> None:
    assert tables.current_commit(tmp_path) == "unknown"
    git(tmp_path, "init", "--quiet")
    (tmp_path / "app.py").write_text("1")
    clean = commit(tmp_path)
    (tmp_path / "tests").mkdir()
    for path in ("README.md", "tests/test_app.py"):
        (tmp_path / path).write_text("1")
    assert tables.current_commit(tmp_path) == clean
    (tmp_path / "app.py").write_text("2")
    assert tables.current_commit(tmp_path) == f"{clean}+changes"


def test_a_result_is_outdated_if_the_code_that_it_is_about_has_changed(tmp_path: Path, results: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "semsearch").mkdir()
    (tmp_path / "semsearch" / "app.py").write_text("1")
    measured = commit(tmp_path)
    (results / "warm.json").write_text(json.dumps({"commit": measured}))
    (results / "cold.json").write_text(json.dumps({"commit": f"{measured}+changes"}))
    commit(tmp_path)
    assert [line.partition(":")[0] for line in tables.outdated(results, tmp_path)] == ["cold.json"]
    (tmp_path / "semsearch" / "app.py").write_text("2")
    commit(tmp_path)
    assert [line.partition(":")[0] for line in tables.outdated(results, tmp_path)] == ["cold.json", "warm.json"]


SOURCE = Provenance("abc1234", "3.13.0", "Some CPU (2 cores; avx2)", "30,000 headlines", "2026-11-21T12:00:00+00:00")


def test_a_table_and_its_json_have_their_provenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    report("speed", ("", "ms"), [("it", 1.5)], {"seen": [1.5]}, SOURCE)
    small_print = "<sub>commit abc1234, Python 3.13.0, Some CPU (2 cores; avx2), 30,000 headlines, 2026-11-21</sub>"
    assert (tmp_path / "speed.md").read_text() == f"|  | ms |\n| --- | --- |\n| it | 1.5 |\n\n{small_print}\n"
    content = json.loads((tmp_path / "speed.json").read_text())
    assert (content["commit"], content["seen"]) == ("abc1234", [1.5])
