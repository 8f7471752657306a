"""Commands: what is said when something is missing, what `all` does then, and the demo as its reader sees it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import SKIPPED
from bench.__main__ import run_all
from semsearch.commands.console import suggested
from tests.project import ROOT

FAIL = [sys.executable, "-c", "raise SystemExit('boom')"]
SKIP = [sys.executable, "-c", f"import sys; sys.stderr.write('no such thing here\\n'); sys.exit({SKIPPED})"]
WORK = [sys.executable, "-c", "pass"]


def bench(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    variables = os.environ | environment
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_without_data_accuracy_says_what_is_missing_before_it_makes_models(tmp_path: Path) -> None:
    done = bench("accuracy", "--work", str(tmp_path / "work"), "--data", str(tmp_path))
    assert done.returncode == SKIPPED
    assert done.stderr.startswith(f"{tmp_path}/headlines.csv.gz: there is no such file; docs/benchmarks.md says where ")
    assert not (tmp_path / "work").exists()


def test_all_goes_on_after_what_is_skipped_and_what_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_all({"one": SKIP, "two": FAIL, "three": WORK}) == 1
    lines = capfd.readouterr().out.splitlines()
    assert "one: skipped: no such thing here" in lines
    assert "two: failed: exit 1" in lines
    assert any(line.startswith("three: measured in ") for line in lines)
    assert run_all({"one": SKIP, "three": WORK}) == 0


def test_the_demo_prints_the_answers_to_each_question(bundle: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bundle, tmp_path / "[b] it's")
    done = bench("demo", "an old sailor", "[red] goose", "--bundle", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "sailor" in lines[3]
    assert lines[6].startswith("[red] goose  ")
    assert lines[11] == f"Serve it: {suggested('serve', folder)}"
