"""Whether a result still holds: the files that its measurement imports, and which of them changed."""

import argparse
from pathlib import Path

import pytest

from bench import MEASUREMENTS, load_measurement, stale
from bench.report import PROJECT, UNKNOWN
from bench.stale import measured_files, why_stale
from tests.bench.repository import Repository

SPEED = """
from bench.report import report
from function.app import app

def run():
    import export.cli
"""
APP = """
import function.engine.semantic.index
with open():
    from function import handler
from other import a
"""
HANDLER = """
if S3:
    import function.s3

def page():
    'Return the page.'
    import function.page
"""
FILES = {
    "bench/speed.py": SPEED,
    "bench/report.py": "from function import log\n",
    "function/__init__.py": "",
    "function/app.py": APP,
    "function/handler.py": HANDLER,
    "function/log.py": "",
    "function/page.py": "",
    "function/s3.py": "",
    "function/engine/__init__.py": "",
    "function/engine/semantic/index.py": "a = 1  # a comment\n",
    "export/cli.py": "",
    "deploy/trim.py": "",
    "requirements.txt": "# a comment\nnumpy==1\n",
}
MEASURES = ("bench.speed", "deploy.trim", "requirements.txt")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_imports_at_the_top_of_modules_are_followed_and_no_others(repository: Repository) -> None:
    repository.write(FILES)
    assert measured_files(repository.folder, MEASURES) == [
        "deploy/trim.py",
        "function/__init__.py",
        "function/app.py",
        "function/engine/__init__.py",
        "function/engine/semantic/index.py",
        "function/handler.py",
        "function/log.py",
        "requirements.txt",
    ]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"function/engine/semantic/index.py": "a = 2"}, "function/engine/semantic/index.py"),
        ({"requirements.txt": "numpy==2\n", "function/s3.py": "1"}, "requirements.txt"),
        ({"function/engine/semantic/index.py": '"""About it."""\na = 1\n', "requirements.txt": "numpy==1\n"}, ""),
        ({"function/page.py": "1", "export/cli.py": "2", "bench/speed.py": SPEED + "1"}, ""),
    ],
    ids=["code", "packages", "comments", "files that it does not use"],
)
def test_a_result_is_stale_when_code_changed_that_it_measures(
    repository: Repository, changes: dict[str, str], named: str
) -> None:
    measured = repository.commit(FILES)
    repository.commit(changes)
    reason = why_stale(repository.folder, measured, measured_files(repository.folder, MEASURES))
    assert reason == (f"changed since {measured}: {named}" if named else "")


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (UNKNOWN, "its commit was not recorded"),
        ("abc1234+changes", "measured on abc1234 with changes that were not committed"),
        ("abc1234", "measured on abc1234, which this checkout does not have"),
    ],
)
def test_a_result_of_no_known_commit_is_stale(repository: Repository, measured: str, reason: str) -> None:
    repository.commit(FILES)
    assert why_stale(repository.folder, measured, ["function/app.py"]) == reason


def test_the_command_prints_a_line_for_each_stale_result_and_nothing_if_none_is(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = repository.commit(FILES)
    monkeypatch.setattr(stale, "PROJECT", repository.folder)
    monkeypatch.setattr(stale, "MEASUREMENTS", {"demo": "bench.speed"})
    results = {"vnni": {"commit": measured}, "arm": {"commit": measured}}
    monkeypatch.setattr(stale, "read_results", lambda name: results)
    assert stale.run(argparse.Namespace()) == 0
    assert capsys.readouterr().out == ""
    repository.commit({"function/app.py": "1"})
    assert stale.run(argparse.Namespace()) == 1
    reason = f"changed since {measured}: function/app.py; run `python -m bench demo`\n"
    assert capsys.readouterr().out == f"demo: {reason}demo (arm): {reason}"


@pytest.mark.parametrize("command", MEASUREMENTS)
def test_what_a_measurement_says_that_it_measures_is_there(command: str) -> None:
    files = measured_files(PROJECT, (MEASUREMENTS[command], *load_measurement(command).MEASURES))
    assert [file for file in files if not (PROJECT / file).exists()] == []
    assert "function/engine/embedder.py" in files
