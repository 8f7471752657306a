"""S3 on this machine: moto's server, and bundles to publish."""

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

from export.corpus import Corpus
from export.publishing.store import Store
from function.app import create_app
from function.s3 import objects
from function.s3.reloader import BundleReloader
from function.settings import Settings
from function.startup import ColdStart
from tests.conftest import InProcess, make_stories, write_bundle
from tests.publishing.asking import NOWHERE, Start
from tests.publishing.faults import Proxy

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret", "AWS_REGION": "eu-central-1"}

_numbers = count()


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of a server that speaks S3. Unlike moto's own, it looks at a condition and writes in one step."""
    put_object, one_at_a_time = S3Response.put_object, threading.Lock()

    def put_alone(response: S3Response) -> Any:
        with one_at_a_time:
            return put_object(response)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Response, "put_object", put_alone)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Credentials, which are in the environment too; no others are looked for."""
    for name, value in (KEYS | {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    return KEYS


@pytest.fixture
def s3(endpoint: str, keys: dict[str, str]) -> Iterator[Any]:
    """A client of boto3."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name=keys["AWS_REGION"])
    yield client
    client.close()


@pytest.fixture
def url(s3: Any) -> str:
    """A prefix of a new bucket."""
    bucket = f"bucket-{next(_numbers)}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    return f"s3://{bucket}/search/news"


@pytest.fixture(scope="session")
def bundles(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three bundles of the same model with other texts."""
    folder = tmp_path_factory.mktemp("bundles")
    stories = make_stories()
    found = [bundle]
    for number in (1, 2):
        texts = [f"{text} Edition {number}." for text in stories.texts]
        corpus = Corpus(texts, stories.ids, stories.metadata, empty_texts=0, columns=stories.columns)
        found.append(write_bundle(folder / str(number), corpus))
    return found


@pytest.fixture
def own_bundle(bundle: Path, tmp_path: Path) -> Path:
    """A bundle that the test may break."""
    return Path(shutil.copytree(bundle, tmp_path / "own"))


@pytest.fixture
def store(s3: Any, url: str) -> Store:
    return Store(s3, url)


@pytest.fixture
def publish(store: Store) -> Callable[[Path], str]:
    """Return what publishes a bundle and returns its version."""

    def send_and_switch(bundle: Path) -> str:
        before = store.pointer()
        version, _, _ = store.send(bundle)
        store.switch(version, before)
        return version

    return send_and_switch


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

    def started(local: Path = NOWHERE, *, by_requests: bool = False, seconds: float = 0.0) -> Any:
        switch = BundleReloader(url, local, seconds, environment, by_requests)
        switch.fetch()
        bundle = switch.load()
        cold_start = ColdStart(lambda phases: None)
        cold_start.end({})
        app = create_app(bundle, Settings(), logging.getLogger("tests"), cold_start, reloader=switch)
        return switch, httpx.Client(transport=InProcess(app), base_url="http://tests")

    return started
