"""The commands that everyone runs: their targets exist, `make check` stays light, and both ways of CI are the same."""

import re
import subprocess
from pathlib import Path

from tests.project import ROOT

MAKEFILE, GUIDE, WORKFLOW, SCRIPT = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("Makefile", "CONTRIBUTING.md", ".github/workflows/ci.yml", ".ci/run")
)


def test_every_target_that_ci_and_contributors_call_exists_and_both_ways_of_ci_call_the_same() -> None:
    script = set(re.findall(r"^ *make ([\w-]+)(?: \|\||$)", SCRIPT, re.MULTILINE))
    assert script == set(re.findall(r"^ +- run: make ([\w-]+)", WORKFLOW, re.MULTILINE))
    guide = set(re.findall(r"^make ([\w-]+)", GUIDE, re.MULTILINE))
    assert script <= guide <= set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))


def test_make_check_installs_neither_torch_nor_the_export(tmp_path: Path) -> None:
    command = ["make", "--dry-run", "--always-make", f"VENV={tmp_path / 'venv'}", "check"]
    commands = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--extra dev" in commands
    assert not re.search(r"torch|export,|minilm", commands)


def test_every_action_is_pinned_by_its_commit() -> None:
    uses = re.findall(r"uses: (\S+)", WORKFLOW)
    assert uses
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one) for one in uses)


def test_only_the_script_of_ci_knows_folders_outside_of_the_checkout() -> None:
    pattern = r"\.\./shared|\"shared\"|\.pyenv"
    command = ["git", "grep", "-lE", pattern, "--", ":!tests/test_makefile.py"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split() == [".ci/run"]
