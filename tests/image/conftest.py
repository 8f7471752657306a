"""The image, built as `make image` builds it, and what a process outside of it answers to the same events."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from semsearch.app.settings import IN_LAMBDA
from tests.function.events.event_makers import Event
from tests.image.docker import TAG, Layer, diff_ids, docker, layers, run, why_there_is_no_docker
from tests.image.sources import HANDLE, REQUESTS, SOURCES, last_line
from tests.project import ROOT

Reply = dict[str, Any]

# what an image is built of
COPIED = ("Dockerfile", ".dockerignore", "requirements.txt", "function", "semsearch", "bundle")


@pytest.fixture(scope="session", autouse=True)
def running_docker() -> None:
    """Skip all tests where there is no Docker, and fail them all where there is one that does not work."""
    reason = why_there_is_no_docker()
    if reason:
        pytest.skip(f"make test-image: skipped, {reason}")
    docker("version")


@pytest.fixture(scope="session")
def image(running_docker: None) -> str:
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
def answer() -> Callable[..., list[Reply]]:
    """Return what this machine's own Python answers to events, with the bundle that is in the image or another one."""

    def in_a_process(events: list[Event], bundle: Path = ROOT / "bundle") -> list[Reply]:
        lambdas = {"BUNDLE_DIR": str(bundle), IN_LAMBDA: "tests"}  # with Lambda's limits
        environment = os.environ | lambdas
        printed = run(sys.executable, "-c", HANDLE, text=json.dumps(events), environment=environment)
        replies: list[Reply] = last_line(printed)
        return replies

    return in_a_process


@pytest.fixture(scope="session")
def expected(answer: Callable[..., list[Reply]], events: list[Event]) -> dict[tuple[str, str], Reply]:
    """What the code answers outside of the image to each request from each source."""
    keys = [(source, name) for source in SOURCES for name in REQUESTS]
    return dict(zip(keys, answer(events), strict=True))


@pytest.fixture
def context(tmp_path: Path) -> Path:
    """A copy of what an image is built of, to be changed."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, tmp_path / name)
    return tmp_path


@pytest.fixture
def tag() -> Iterator[str]:
    """A name for an image that is gone after the test."""
    yield f"{TAG}:changed"
    docker("image", "rm", "--force", f"{TAG}:changed")
