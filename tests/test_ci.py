"""CI: the workflow on GitHub and .ci/run call the same make targets, and the targets are there."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

ROOT = Path(__file__).parents[1]
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
SCRIPT = ROOT / ".ci" / "run"
HOOKS = ROOT / ".pre-commit-config.yaml"


def jobs() -> dict[str, Any]:
    loaded: dict[str, Any] = cfn_yaml.load(str(WORKFLOW))["jobs"]
    return loaded


def targets_of_the_script() -> set[str]:
    return set(re.findall(r"^ *make ([\w-]+)$", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_workflow_calls_the_same_make_targets_as_the_script() -> None:
    commands = [step["run"] for job in jobs().values() for step in job["steps"] if "run" in step]
    called = {command.removeprefix("make ") for command in commands if command.startswith("make ")}
    assert called == targets_of_the_script() >= {"check", "demo", "test", "test-image", "test-template"}


def test_every_target_that_the_script_calls_exists() -> None:
    for target in targets_of_the_script():
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize("job", ["checks", "tests"])
def test_the_workflow_runs_every_python_that_the_package_declares(job: str) -> None:
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert jobs()[job]["strategy"]["matrix"]["python"] == declared


def test_every_action_is_pinned_by_its_commit() -> None:
    uses = [step["uses"] for job in jobs().values() for step in job["steps"] if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one) for one in uses)


def test_the_hooks_before_a_commit_run_the_tools_of_make_check() -> None:
    hooks = {hook["entry"].split()[0] for repo in cfn_yaml.load(str(HOOKS))["repos"] for hook in repo["hooks"]}
    recipe = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--old-file=.venv/checks", "check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert {line.split()[0] for line in recipe.splitlines()} == {hook for hook in hooks if hook.startswith(".venv/")}
