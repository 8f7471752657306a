"""The commands that everyone runs: `make check` stays light, and CI runs the README's commands on any machine."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def recipe(folder: Path, *targets: str) -> str:
    """Return what make would run for the targets, with a virtual environment that does not exist yet."""
    command = ["make", "--dry-run", "--always-make", f"VENV={folder / 'venv'}", *targets]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_make_check_installs_neither_torch_nor_the_export(tmp_path: Path) -> None:
    commands = recipe(tmp_path, "check")
    assert "--extra dev" in commands
    assert not re.search(r"torch|export,|minilm", commands)


def test_make_test_installs_torch_before_the_export_could_bring_cuda(tmp_path: Path) -> None:
    commands = recipe(tmp_path, "test")
    assert 0 < commands.index("torch==") < commands.index("[export,documents,server,bench,dev]")


def test_only_the_script_of_ci_knows_folders_outside_of_the_checkout() -> None:
    tracked = subprocess.run(
        ["git", "grep", "-lE", r"\.\./shared|\"shared\"|\.pyenv", "--", ":!tests/test_makefile.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert tracked == [".ci/run"]


def test_every_target_that_a_document_names_exists() -> None:
    documents = "\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("*.md")))
    named = set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", documents, re.MULTILINE))
    assert {"check", "format", "demo", "test", "test-image", "test-template"} <= named
    for target in named:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)


def test_the_first_lines_of_the_makefile_explain_what_contributing_lists() -> None:
    makefile, guide = (ROOT / name for name in ("Makefile", "CONTRIBUTING.md"))
    explained = set(re.findall(r"^# make ([\w-]+) ", makefile.read_text(encoding="utf-8"), re.MULTILINE))
    listed = set(re.findall(r"^make ([\w-]+) ", guide.read_text(encoding="utf-8"), re.MULTILINE))
    assert explained - {"image"} == listed
