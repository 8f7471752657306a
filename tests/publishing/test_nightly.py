"""The commands of deploy/nightly.yaml, run by bash as GitHub runs them, against the stand-ins for S3 and a function."""

import json
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
CHECK, UNDO = (next(step for step in STEPS if step.get("id") == id)["run"] for id in ("check", "undo"))


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


@pytest.fixture
def shell(
    tmp_path: Path, url: str, endpoint: str, keys: dict[str, str], store: Store, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Return what runs a step in a folder as the workflow has it, and returns the exit code."""
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

        def run_step(script: str) -> int:
            command = ["bash", "--noprofile", "--norc", "-e", "-c", script]
            return subprocess.run(command, cwd=tmp_path, check=False).returncode

        yield run_step


SWITCHED = {"bundle": {"version": "VERSION", "error": None}}
NOT_SERVED: dict[str, tuple[int, dict[str, Any], bool]] = {  # status and content of /info, is it an older version
    "it serves the older version": (200, SWITCHED, True),
    "an error": (200, {"bundle": {"version": "VERSION", "error": "damaged"}}, False),
    "IAM refuses": (403, {"message": "Forbidden"}, False),
    "it serves its image": (200, {"bundle": None}, False),
}


@pytest.mark.slow  # the tests below run the same step
def test_a_version_that_is_not_served_is_undone(
    shell: Any, store: Store, publish: Publish, bundles: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest, before = publish(bundles[0]), publish(bundles[1])
    (tmp_path / "bundle").symlink_to(bundles[2])
    assert shell(PUBLISH) == 0
    assert store.pointer().version not in (oldest, before)
    for name, (status, content, serves_older) in NOT_SERVED.items():
        monkeypatch.setattr(Info, "status", status)
        monkeypatch.setattr(Info, "content", content)
        monkeypatch.setattr(Info, "version", before if serves_older else "")
        assert shell(CHECK) == 1, name
    monkeypatch.setattr(Info, "content", SWITCHED)
    assert shell(CHECK) == 0
    assert shell(UNDO) == 0
    assert store.pointer().version == before


def test_nothing_is_undone_if_the_texts_were_unchanged(
    shell: Any, store: Store, publish: Publish, bundles: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundles[0])
    before = publish(bundles[1])
    (tmp_path / "published.json").write_text(run("publish", bundles[1], store.url, "--json").out)
    monkeypatch.setattr(Info, "status", 503)
    assert shell(CHECK) == 1
    assert shell(UNDO) == 0
    assert store.pointer().version == before


def test_a_version_that_somebody_made_current_during_the_check_stays(
    shell: Any, store: Store, publish: Publish, bundles: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundles[0])
    (tmp_path / "bundle").symlink_to(bundles[1])
    assert shell(PUBLISH) == 0
    repaired = publish(bundles[2])
    monkeypatch.setattr(Info, "content", SWITCHED)
    assert shell(CHECK) == 1  # another version is served
    assert shell(UNDO) == 0
    assert store.pointer().version == repaired
