"""checkov over the templates and the Dockerfile: nothing fails that is not skipped with its reason."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.project import ROOT

SCANNED = ("template.yaml", "deploy/github.yaml", "Dockerfile")


@pytest.fixture(scope="module")
def results(tools: Path) -> list[dict[str, Any]]:
    """The checks of every framework, as checkov prints them."""
    files = [word for name in SCANNED for word in ("--file", name)]
    command: list[str | Path] = [tools / "checkov", "--config-file", ".checkov.yaml", "--output", "json", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    return [one["results"] for one in (found if isinstance(found, list) else [found])]


def test_every_file_is_checked(results: list[dict[str, Any]]) -> None:
    checked = {check["file_path"].lstrip("/") for one in results for check in one["passed_checks"]}
    assert checked == set(SCANNED)
    assert not [error for one in results for error in one["parsing_errors"]]


def test_nothing_fails(results: list[dict[str, Any]]) -> None:
    failed = [
        f"{check['check_id']} {check['file_path']} {check['resource']}: {check['check_name']}"
        for one in results
        for check in one["failed_checks"]
    ]
    assert not failed


def test_what_is_skipped_has_a_reason(results: list[dict[str, Any]]) -> None:
    skipped = [check for one in results for check in one["skipped_checks"]]
    assert skipped
    for check in skipped:
        reason = check["check_result"]["suppress_comment"]
        assert reason not in (None, "", "No comment provided"), check["check_id"]
