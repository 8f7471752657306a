"""The app that asks the stand-in for S3 Vectors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.engine.loading import load
from tests.app_fixtures import connect_app
from tests.stand_ins.fixtures import published, quiet_server, send, server


@pytest.fixture(scope="session")
def ask(published: Path, client: httpx.Client) -> Callable[..., httpx.Response]:
    """Return what asks /similar of the app over S3 Vectors, or of that over the bundle itself with local=True."""
    elsewhere = connect_app(load(published))

    def ask_for(text: str, local: bool = False, **request: Any) -> httpx.Response:
        return (client if local else elsewhere).post("/similar", json={"text": text, **request})

    return ask_for
