"""checkov over the templates and the Dockerfile."""

import json
import subprocess
from pathlib import Path

from tests.project import ROOT

SCANNED = ("template.yaml", "deploy/github.yaml", "Dockerfile")


def test_checkov_checks_every_file_nothing_fails_and_what_is_skipped_has_a_reason(tools: Path) -> None:
    files = [word for name in SCANNED for word in ("--file", name)]
    command: list[str | Path] = [tools / "checkov", "--config-file", ".checkov.yaml", "--output", "json", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    results = [one["results"] for one in (found if isinstance(found, list) else [found])]  # one of each framework
    assert {check["file_path"].lstrip("/") for one in results for check in one["passed_checks"]} == set(SCANNED)
    assert not [error for one in results for error in one["parsing_errors"]]
    failed = [
        f"{check['check_id']} {check['file_path']} {check['resource']}: {check['check_name']}"
        for one in results
        for check in one["failed_checks"]
    ]
    assert not failed
    skipped = [check for one in results for check in one["skipped_checks"]]
    assert skipped
    for check in skipped:
        reason = check["check_result"]["suppress_comment"]
        assert reason not in (None, "", "No comment provided"), check["check_id"]
