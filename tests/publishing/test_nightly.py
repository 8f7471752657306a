"""The commands of deploy/nightly.yaml, run by bash as GitHub runs them, against the stand-ins for S3 and a function."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cfnlint.decode import cfn_yaml

from semsearch.publishing.store import Store
from tests.command_line import run
from tests.project import ROOT
from tests.stand_ins.fixtures import Publish
from tests.stand_ins.http import Handler, listening

STEPS = cfn_yaml.load(str(ROOT / "deploy" / "nightly.yaml"))["jobs"]["update"]["steps"]
PUBLISH = next(step for step in STEPS if "semsearch publish" in step.get("run", ""))["run"]
CHECK, UNDO = (next(step for step in STEPS if step.get("id") == id) for id in ("check", "undo"))


class Info(Handler):
    """GET /info of a function."""

    status = 200
    content: ClassVar[dict[str, Any]] = {}
    version = ""  # the version that it serves; "" for the one that was just published
    store: Store

    def answer(self) -> None:
        assert self.headers["authorization"] == "Bearer secret"
        version = self.version or self.store.pointer().version
        content = json.dumps(self.content).replace("VERSION", str(version))
        self.reply(self.status, {}, content.encode())


class Steps:
    """The steps of the workflow, in a folder as the workflow has it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (self._undone,) = re.findall(r"^\$\{\{ failure\(\) && steps.check.outputs.code == '(\d)' \}\}$", UNDO["if"])

    def publish(self, bundle: Path) -> None:
        (self._folder / "bundle").symlink_to(bundle)
        assert self._run(PUBLISH) == 0

    def check(self) -> bool | None:
        """Run the step `check`, and return None if it succeeded, or whether the step `undo` would run."""
        outputs = self._folder / "outputs"
        outputs.write_text("")
        if self._run(CHECK["run"]) == 0:
            return None
        return outputs.read_text() == f"code={self._undone}\n"

    def undo(self) -> None:
        assert self._run(UNDO["run"]) == 0

    def _run(self, script: str) -> int:
        command = ["bash", "--noprofile", "--norc", "-e", "-c", script]
        environment = os.environ | {"GITHUB_OUTPUT": str(self._folder / "outputs")}
        return subprocess.run(command, cwd=self._folder, env=environment, check=False).returncode


@pytest.fixture
def steps(
    tmp_path: Path, url: str, endpoint: str, keys: dict[str, str], store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Steps]:
    """The steps, with S3 and a function."""
    for name in ("semsearch", "deploy"):
        (tmp_path / name).symlink_to(ROOT / name)
    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    for name, words in (("python", ""), ("semsearch", " -m semsearch")):
        (commands / name).write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        (commands / name).chmod(0o755)
    monkeypatch.setattr(Info, "store", store, raising=False)
    with listening(Info) as address:
        variables = {"AWS_ENDPOINT_URL_S3": endpoint, "BUNDLE_URL": url, "SEARCH_KEY": "secret", "SEARCH_URL": address}
        for name, value in (variables | {"SECONDS_TO_SWITCH": "0"}).items():
            monkeypatch.setenv(name, value)

        yield Steps(tmp_path)


SWITCHED = {"bundle": {"version": "VERSION", "error": None}}
# status and content of /info, whether that is of an older version, and whether the texts are rolled back
FAILURES: dict[str, tuple[int, dict[str, Any], bool, bool]] = {
    "it serves the older version": (200, SWITCHED, True, True),
    "it cannot start": (503, {"message": "Service Unavailable"}, False, True),
    "it serves its image": (200, {"bundle": None}, False, True),
    "it serves the version, and cannot look for newer ones": (
        200,
        {"bundle": {"version": "VERSION", "error": "403"}},
        False,
        False,
    ),
    "it refuses a key": (
        200,
        {**SWITCHED, "keys": {"unusable": ["the filter of team-b: no such column"]}},
        False,
        False,
    ),
    "the key was revoked": (401, {"error": "authorization: is not one"}, False, False),
    "IAM refuses": (403, {"message": "Forbidden"}, False, False),
}


@pytest.mark.slow  # the tests below run the same step
def test_a_version_that_is_not_served_is_undone(
    steps: Steps, store: Store, publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest, before = publish(bundles[0]), publish(bundles[1])
    steps.publish(bundles[2])
    assert store.pointer().version not in (oldest, before)
    for name, (status, content, serves_older, is_undone) in FAILURES.items():
        monkeypatch.setattr(Info, "status", status)
        monkeypatch.setattr(Info, "content", content)
        monkeypatch.setattr(Info, "version", before if serves_older else "")
        assert steps.check() is is_undone, name
    monkeypatch.setattr(Info, "status", 200)
    monkeypatch.setattr(Info, "content", SWITCHED)
    assert steps.check() is None
    steps.undo()
    assert store.pointer().version == before


def test_texts_stay_if_the_key_was_revoked(
    steps: Steps, publish: Publish, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "published.json").write_text(json.dumps({"version": publish(bundle), "replaced": None}))
    monkeypatch.setattr(Info, "status", 401)
    assert steps.check() is False


def test_nothing_is_undone_if_the_texts_were_unchanged(
    steps: Steps, store: Store, publish: Publish, bundles: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundles[0])
    before = publish(bundles[1])
    (tmp_path / "published.json").write_text(run("publish", bundles[1], store.url, "--json").out)
    monkeypatch.setattr(Info, "status", 503)
    assert steps.check() is True
    steps.undo()
    assert store.pointer().version == before


def test_a_version_that_somebody_made_current_during_the_check_stays(
    steps: Steps, store: Store, publish: Publish, bundles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundles[0])
    steps.publish(bundles[1])
    repaired = publish(bundles[2])
    monkeypatch.setattr(Info, "content", SWITCHED)
    assert steps.check() is True  # another version is served
    steps.undo()
    assert store.pointer().version == repaired
