"""`make check` stays light, and CI runs no action that can change under its name."""

import re
import subprocess
from pathlib import Path

from tests.project import ROOT


def test_make_check_installs_neither_torch_nor_the_export(tmp_path: Path) -> None:
    command = ["make", "--dry-run", "--always-make", f"VENV={tmp_path / 'venv'}", "check"]
    commands = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--extra dev" in commands
    assert not re.search(r"torch|export,|minilm", commands)


def test_every_action_is_pinned_by_its_commit() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    uses = re.findall(r"uses: (\S+)", workflow)
    assert uses
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one) for one in uses)
