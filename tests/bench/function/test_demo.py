"""The demo, as its reader sees it."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.project import ROOT


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "demo", *arguments]
    environment = os.environ | {"COLUMNS": "200"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_the_demo_prints_questions_and_answers_and_nothing_for_machines(bundle: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bundle, tmp_path / "[b] it's")
    done = demo("--bundle", str(folder), "an old sailor", "[red] goose")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("200 texts of stories.csv, tests/mean-of-words, ready in ")
    assert lines[2].startswith("an old sailor  ")
    assert "sailor" in lines[3]
    assert lines[6].startswith("[red] goose  ")
    command = lines[11].removeprefix("Serve it: ")
    assert shlex.split(command)[1:] == ["-m", "function", "--bundle", str(folder)]
    assert len(lines) == 12


def test_a_bundle_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = demo("--bundle", str(tmp_path / "none"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {tmp_path / 'none'}: is not a folder; make a bundle with ")
    assert len(done.stderr.splitlines()) == 1
