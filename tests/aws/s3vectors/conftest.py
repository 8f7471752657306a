"""The app that asks the stand-in for S3 Vectors."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import Settings
from semsearch.engine.loading import load
from tests.stand_ins.fixtures import published, quiet_server, send, server
from tests.world import InProcess


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
