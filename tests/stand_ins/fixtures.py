"""S3 and S3 Vectors on this machine: moto's servers, and bundles to publish."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

from semsearch.indexing.corpus import Corpus
from semsearch.indexing.progress import no_progress
from semsearch.publishing.bucket import connect
from semsearch.publishing.s3vectors import Sent
from semsearch.publishing.s3vectors import publish as publish_vectors
from semsearch.publishing.store import Store
from tests.stand_ins.s3vectors import REGION, StandIn, s3vectors_server
from tests.world import make_stories, write_bundle

Publish = Callable[[Path], str]
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret", "AWS_REGION": "eu-central-1"}

BUCKET = "tests-bucket"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "secret"}

_numbers = count()

# Clients of boto3 read the descriptions of services for 0.1 s, unless they share a loader.
_one_loader = cache(botocore.session.create_loader)


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of a server that speaks S3. Unlike moto's own, it looks at a condition and writes in one step."""
    put_object, one_at_a_time = S3Response.put_object, threading.Lock()

    def put_alone(response: S3Response) -> Any:
        with one_at_a_time:
            return put_object(response)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(S3Response, "put_object", put_alone)
        patch.setattr(botocore.session, "create_loader", _one_loader)
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


def object_at(url: str, name: str) -> dict[str, str]:
    """Return boto3's arguments that name an object below an s3:// URL."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": f"{prefix}/{name}"}


@pytest.fixture(scope="session")
def bundles(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three bundles of the same model with other texts."""
    folder = tmp_path_factory.mktemp("bundles")
    stories = make_stories()
    found = [bundle]
    for number in (1, 2):
        texts = [f"{text} Edition {number}." for text in stories.texts]
        corpus = Corpus(texts, stories.ids, stories.metadata, columns=stories.columns)
        found.append(write_bundle(folder / str(number), corpus))
    return found


@pytest.fixture
def store(s3: Any, url: str) -> Store:
    return Store(s3, url)


@pytest.fixture
def publish(store: Store) -> Publish:
    """Return what publishes a bundle and returns its version."""

    def send_and_switch(bundle: Path) -> str:
        before = store.pointer()
        version, _, _ = store.send(bundle)
        store.switch(version, before)
        return version

    return send_and_switch


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a stand-in with one bucket; AWS's variables of this process lead there."""
    with s3vectors_server() as address, pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", _one_loader)
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        variables = {"AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL_S3VECTORS": address}
        for name, value in (CREDENTIALS | variables).items():
            patch.setenv(name, value)
        client = connect("s3vectors")
        with suppress(client.exceptions.ConflictException):  # moto keeps the bucket while the process runs
            client.create_vector_bucket(vectorBucketName=BUCKET)
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
        changes = {"client": connect("s3vectors"), "on_progress": no_progress} | changes
        return publish_vectors(bundle, f"{BUCKET}/{index}", out, **changes)

    return send_to


@pytest.fixture(scope="session")
def published(bundle: Path, send: Callable[..., Sent], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle that is served from S3 Vectors, all of whose rows are there."""
    out = tmp_path_factory.mktemp("published") / "bundle"
    send(bundle, "stories", out)
    return out
