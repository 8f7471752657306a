"""GitHub's own schema over our workflows and forms, and over the workflows that the pages show."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.project import ROOT


def shown(folder: Path, name: str = "environments.md") -> Path:
    """Return a file with the workflow that a page shows."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    (workflow,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = folder / "deploy.yml"
    path.write_text(workflow.replace("@COMMIT", f"@{'0' * 40}"), encoding="utf-8")
    return path


def check(tools: Path, path: Path, kind: str = "workflows") -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [tools / "check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def workflow_file(name: str, folder: Path) -> Path:
    """Return the file of a workflow: of this project, or one that a page shows."""
    ours = ROOT / ".github" / "workflows" / name
    if ours.is_file():
        return ours
    if name == "nightly.yaml":
        return ROOT / "deploy" / name
    return shown(folder, name)


WORKFLOWS = ["ci.yml", "release.yml", "nightly.yaml", "environments.md", "search-box.md"]


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_is_what_github_reads(tools: Path, tmp_path: Path, workflow: str) -> None:
    done = check(tools, workflow_file(workflow, tmp_path))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_workflow_keeps_the_rules_of_zizmor(tools: Path, tmp_path: Path, workflow: str) -> None:
    command: list[str | Path] = [tools / "zizmor", "--offline", "--quiet", workflow_file(workflow, tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_action_is_what_github_reads(tools: Path) -> None:
    done = check(tools, ROOT / "action.yml", "actions")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("form", ["bug.yml", "idea.yml"])
def test_a_form_of_an_issue_is_what_github_reads(tools: Path, form: str) -> None:
    done = check(tools, ROOT / ".github" / "ISSUE_TEMPLATE" / form, "issue-forms")
    assert done.returncode == 0, done.stdout
