"""A corpus in the stand-in for S3 Vectors, and the app that asks it."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from export.progress import no_progress
from export.publishing.client import connect
from export.publishing.s3vectors import publish
from export.publishing.sending import Sent
from function.app import create_app
from function.engine.loading import load
from function.settings import Settings
from function.startup import ColdStart
from tests.conftest import InProcess
from tests.s3vectors_server import REGION, StandIn, s3vectors_server

BUCKET = "tests-bucket"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "secret"}


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a stand-in with one bucket; AWS's variables of this process lead there."""
    with s3vectors_server() as address, pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        variables = {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL_S3VECTORS": address}
        for name, value in (CREDENTIALS | variables).items():
            patch.setenv(name, value)
        connect("s3vectors").create_vector_bucket(vectorBucketName=BUCKET)
        yield address


@pytest.fixture(autouse=True)
def quiet_server() -> None:
    """Forget what earlier tests asked of the stand-in."""
    StandIn.busy = 0
    StandIn.put_calls.clear()
    StandIn.queries.clear()


@pytest.fixture(scope="session")
def send(server: str) -> Callable[..., Sent]:
    """Return what publishes a bundle, without waiting for anything."""

    def send_to(bundle: Path, index: str, out: Path, **changes: Any) -> Sent:
        changes = {"client": connect("s3vectors"), "on_progress": no_progress, "sleep": lambda seconds: None} | changes
        return publish(bundle, f"{BUCKET}/{index}", out, **changes)

    return send_to


@pytest.fixture(scope="session")
def published(bundle: Path, send: Callable[..., Sent], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle that is served from S3 Vectors, all of whose rows are there."""
    out = tmp_path_factory.mktemp("published") / "bundle"
    send(bundle, "stories", out)
    return out


@pytest.fixture(scope="session")
def ask(published: Path, client: httpx.Client) -> Callable[..., httpx.Response]:
    """Return what asks /similar of the app over S3 Vectors, or of that over the bundle itself with local=True."""
    elsewhere = connect_app(published)

    def ask_for(text: str, local: bool = False, **request: Any) -> httpx.Response:
        return (client if local else elsewhere).post("/similar", json={"text": text, **request})

    return ask_for


def connect_app(bundle: Path) -> httpx.Client:
    """Return a client of the real app over a bundle."""
    cold_start = ColdStart(lambda phases: None)
    cold_start.end({"model": 1.0})
    app = create_app(load(bundle), Settings(), logging.getLogger("tests"), cold_start)
    return httpx.Client(transport=InProcess(app), base_url="http://tests")
