"""The README says what is so: its tables are the measured ones, its files and its commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
RESULTS = PROJECT / "bench" / "results"
MARKED = re.findall(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", README, flags=re.DOTALL)


@pytest.mark.parametrize(("name", "content"), MARKED, ids=[name for name, _ in MARKED])
def test_what_stands_between_the_marks_is_what_was_measured(name: str, content: str) -> None:
    assert content == (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def test_the_readme_shows_the_demo_and_every_measurement() -> None:
    assert {name for name, _ in MARKED} == {path.stem for path in RESULTS.glob("*.md")}


def test_every_python_command_can_be_pasted_once_the_environment_is_activated() -> None:
    blocks = re.findall(
        r"```\n(.*?)```", re.sub(r"<!-- demo -->.*?<!-- /demo -->", "", README, flags=re.DOTALL), re.DOTALL
    )
    lines = [line for block in blocks for line in block.splitlines()]
    activated = next(number for number, line in enumerate(lines) if line.startswith(". .venv/bin/activate"))
    commands = [number for number, line in enumerate(lines) if "python -m" in line]
    assert min(number for number in commands if lines[number].startswith("python -m")) > activated
    assert [lines[number] for number in commands if ".venv" in lines[number]] == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"[\w./]+/[\w./]+\.(?:py|svg)", README))))
def test_every_file_that_is_named_is_there(path: str) -> None:
    assert (PROJECT / path).is_file()


@pytest.mark.parametrize(
    "words", sorted(set(re.findall(r"python -m ((?:export|bench|function)(?: [a-z][a-z-]+)?)", README)))
)
def test_every_command_that_is_named_can_be_asked_for_help(words: str) -> None:
    command = [sys.executable, "-m", *words.split(), "--help"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage:")
