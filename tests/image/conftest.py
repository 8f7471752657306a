"""The image, built as `make image` builds it, and what a process outside of it answers to the same events."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.image.engine import ROOT, TAG, Layer, diff_ids, docker, layers, run, why_there_is_no_docker
from tests.image.sources import HANDLE, REQUESTS, SOURCES, Event, last_line

Reply = dict[str, Any]


@pytest.fixture(scope="session", autouse=True)
def engine() -> None:
    """A Docker that answers. Where there is none, all is skipped; where there is one that does not work, all fails."""
    reason = why_there_is_no_docker()
    if reason:
        pytest.skip(f"make test-image: skipped, {reason}")
    docker("version")


@pytest.fixture(scope="session")
def image(engine: None) -> str:
    run("make", "image", f"IMAGE={TAG}")
    return f"{TAG}:latest"


@pytest.fixture(scope="session")
def base() -> str:
    """The name that the Dockerfile has after FROM."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("ARG BASE_IMAGE=")).partition("=")[2]


@pytest.fixture(scope="session")
def over_base(image: str, base: str) -> list[Layer]:
    """The image's layers over its base's."""
    below = len(diff_ids(base))
    assert diff_ids(image)[:below] == diff_ids(base)
    return layers(image)[below:]


@pytest.fixture(scope="session")
def events() -> list[Event]:
    """Every request from every source, in the order of SOURCES and REQUESTS."""
    return [make(request) for make in SOURCES.values() for request in REQUESTS.values()]


@pytest.fixture(scope="session")
def outside(events: list[Event]) -> list[Reply]:
    """What this machine's own Python answers to these events, with the bundle that is in the image."""
    environment = os.environ | {"BUNDLE_DIR": str(ROOT / "bundle")}
    done = subprocess.run(
        [sys.executable, "-c", HANDLE],
        cwd=ROOT,
        env=environment,
        input=json.dumps(events),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    replies: list[Reply] = last_line(done.stdout)
    return replies
