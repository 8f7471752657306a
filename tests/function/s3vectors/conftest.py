"""The app that asks the stand-in for S3 Vectors."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from function.app import create_app
from function.engine.loading import load
from function.settings import Settings
from function.startup import ColdStart
from tests.conftest import InProcess
from tests.stand_ins.fixtures import published, quiet_server, send, server


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
