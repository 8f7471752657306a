"""A bundle that comes from S3 and whose texts are in S3 Vectors: served, and switched to another one."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from export.publishing.client import connect
from export.publishing.sending import Sent
from export.publishing.store import Store
from function.app import create_app
from function.s3.reloader import BundleReloader
from function.settings import Settings
from function.startup import ColdStart
from tests.conftest import InProcess, write_bundle
from tests.export.publishing.test_s3vectors import corpus_of

NOWHERE = Path("/nowhere")


@pytest.fixture
def store(server: str) -> Any:
    client = connect("s3", server)
    client.create_bucket(Bucket="bundles", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    yield Store(client, "s3://bundles/search")
    client.close()


def publish(store: Store, bundle: Path) -> None:
    before = store.pointer()
    store.switch(store.send(bundle)[0], before)


def found(client: httpx.Client, **fields: Any) -> list[str]:
    reply = client.post("/similar", json={"text": "an angry goose", "num_results": 2} | fields)
    assert reply.status_code == 200, reply.text
    return [hit["id"] for hit in reply.json()["results"]]


def test_a_switch_leads_from_one_index_to_the_next_and_to_a_bundle_with_texts_of_its_own(
    server: str, store: Store, published: Path, bundle: Path, send: Callable[..., Sent], tmp_path: Path
) -> None:
    newer = write_bundle(
        tmp_path / "newer", corpus_of(["a goose", "an angry goose"], [{"year": 1}, {}], {"year": "number"})
    )
    send(newer, "newer", tmp_path / "small")
    publish(store, published)
    environment = os.environ | {"AWS_ENDPOINT_URL_S3": server, "TMPDIR": str(tmp_path / "fetched")}
    switch = BundleReloader(store.url, NOWHERE, 0, environment, by_requests=False)
    switch.fetch()
    cold_start = ColdStart(lambda phases: None)
    cold_start.end({})
    app = create_app(switch.load(), Settings(), logging.getLogger("tests"), cold_start, reloader=switch)
    client = httpx.Client(transport=InProcess(app), base_url="http://tests")
    first = found(client)
    assert all(name.startswith("story-") for name in first)

    publish(store, tmp_path / "small")
    switch.poll()
    assert switch.status.error is None
    assert found(client) == ["id-1", "id-0"]
    assert found(client, filter={"year": 1}) == ["id-0"]
    assert client.post("/similar", json={"text": "goose", "mode": "keyword"}).status_code == 422
    assert client.get("/info").json()["index"]["vectors"]["index"] == "newer"

    send(bundle, "kept-from-s3", tmp_path / "kept", keeps_texts=True)
    publish(store, tmp_path / "kept")
    switch.poll()
    assert switch.status.error is None
    assert found(client) == found(client, mode="hybrid")
    kept = found(client, mode="hybrid"), found(client, mode="keyword", filter={"who": {"$gt": "b"}})
    assert found(client, mode="semantic") == first

    publish(store, bundle)
    switch.poll()
    assert switch.status.error is None
    assert (found(client, mode="hybrid"), found(client, mode="keyword", filter={"who": {"$gt": "b"}})) == kept
    assert found(client, mode="semantic") == first
    assert found(client, mode="keyword")
