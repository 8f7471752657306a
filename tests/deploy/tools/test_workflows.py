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
    path.write_text(workflow, encoding="utf-8")
    return path


def check(tools: Path, path: Path, kind: str = "workflows") -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [tools / "check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workflow", ["ours", "nightly", "environments.md", "browser.md", "search-box.md"])
def test_a_workflow_is_what_github_reads(tools: Path, tmp_path: Path, workflow: str) -> None:
    files = {"ours": ROOT / ".github" / "workflows" / "ci.yml", "nightly": ROOT / "deploy" / "nightly.yaml"}
    path = files.get(workflow) or shown(tmp_path, workflow)
    done = check(tools, path)
    assert done.returncode == 0, done.stdout


def test_the_action_is_what_github_reads(tools: Path) -> None:
    done = check(tools, ROOT / "action.yml", "actions")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("form", ["bug.yml", "idea.yml"])
def test_a_form_of_an_issue_is_what_github_reads(tools: Path, form: str) -> None:
    done = check(tools, ROOT / ".github" / "ISSUE_TEMPLATE" / form, "issue-forms")
    assert done.returncode == 0, done.stdout
