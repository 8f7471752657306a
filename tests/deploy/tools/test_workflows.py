"""GitHub's own schema over our workflows and forms, and over the workflows that the pages show."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.project import ROOT


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "file",
    [
        *(".github/workflows/ci.yml", ".github/workflows/release.yml", "deploy/nightly.yaml"),
        *("docs/environments.md", "docs/search-box.md"),
    ],
)
def test_a_workflow_is_what_github_reads_and_keeps_the_rules_of_zizmor(tools: Path, tmp_path: Path, file: str) -> None:
    workflow = ROOT / file
    if workflow.suffix == ".md":
        page = workflow.read_text(encoding="utf-8")
        (shown,) = re.findall(r"^```yaml\n(name: .*?)^```$", page, re.DOTALL | re.MULTILINE)
        workflow = tmp_path / "deploy.yml"
        workflow.write_text(shown.replace("@COMMIT", f"@{'0' * 40}"), encoding="utf-8")
    run(tools / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)
    run(tools / "zizmor", "--offline", "--quiet", workflow)


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("action.yml", "actions"),
        (".github/ISSUE_TEMPLATE/bug.yml", "issue-forms"),
        (".github/ISSUE_TEMPLATE/idea.yml", "issue-forms"),
    ],
)
def test_the_action_and_the_forms_of_issues_are_what_github_reads(tools: Path, file: str, kind: str) -> None:
    run(tools / "check-jsonschema", "--builtin-schema", f"vendor.github-{kind}", ROOT / file)
