"""A function whose bundle is in the stand-in for S3, behind a proxy that makes faults."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semsearch.app.reloading.s3 import BundleReloader
from semsearch.app.settings import Settings
from semsearch.aws.s3 import objects
from tests.app_fixtures import connect_app
from tests.aws.s3.asking import NOWHERE, Behind, Start
from tests.stand_ins.faults import Proxy
from tests.stand_ins.fixtures import Publish, bundles, endpoint, keys, publish, s3, store, url


@pytest.fixture
def environment(proxy: Proxy, keys: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """What the function reads to find S3, through the proxy, and a folder for what it fetches."""
    return keys | {"AWS_ENDPOINT_URL_S3": proxy.address, "TMPDIR": str(tmp_path / "fetched")}


@pytest.fixture
def proxy(endpoint: str) -> Iterator[Proxy]:
    """A proxy before S3 that makes faults."""
    with Proxy(endpoint) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PAUSE", 0.0)


@pytest.fixture
def start(url: str, environment: dict[str, str]) -> Start:
    """Return what starts a function from S3, and a client of it. Requests do not start polls: the tests do."""

    def started(local: Path = NOWHERE, *, by_requests: bool = False, seconds: int = 0) -> Any:
        settings = Settings(bundle_url=url, bundle_dir=local, bundle_poll_seconds=seconds)
        switch = BundleReloader(settings, environment, by_requests=by_requests)
        switch.fetch()
        return switch, connect_app(switch.load(), switch)

    return started


@pytest.fixture
def behind(start: Start, publish: Publish, bundles: list[Path]) -> Behind:
    """A function that serves the first bundle, while S3 has the second one."""
    old = publish(bundles[0])
    switch, client = start()
    return Behind(switch, client, old, publish(bundles[1]))
