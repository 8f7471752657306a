"""GET /metrics, read by the library's own parser."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from semsearch.app.settings import Settings
from semsearch.server.workers import ServerApp, make_app
from tests.server.running import counted
from tests.world import InProcess


@pytest.fixture
def app(bundle: Path) -> ServerApp:
    return make_app(Settings(bundle_dir=bundle), 1, 10**6)


@pytest.fixture
def client(app: ServerApp) -> Iterator[httpx.Client]:
    with httpx.Client(transport=InProcess(app), base_url="http://tests") as client:
        yield client


def test_requests_phases_and_batches_are_counted(client: httpx.Client) -> None:
    assert client.post("/predict", json={"text": ["goose", "an angry goose"]}).status_code == 200
    assert client.post("/similar", json={"text": "goose"}).status_code == 200
    assert client.post("/similar", json={}).status_code == 422
    samples = counted(client.get("/metrics").text)
    assert samples["requests_total", "/predict", "200"] == 1
    assert samples["requests_total", "/similar", "200"] == samples["requests_total", "/similar", "422"] == 1
    assert samples["request_seconds_count", "/similar"] == 2
    for phase in (("embed", "/predict"), ("search", "/similar")):
        assert samples["phase_seconds_count", *phase] == 1
    assert samples["batch_texts_sum",] == 3
    assert samples["batch_tokens_sum",] == 3 + 5 + 3
    assert samples["queued_tokens",] == 0
    assert samples["request_seconds_sum", "/predict"] > 0


def test_paths_of_no_route_are_counted_together_and_so_are_those_with_a_name_in_them(client: httpx.Client) -> None:
    for path in ("/a", "/b", "/semantic/search", "/v1/models/one", "/v1/models/two"):
        client.get(path)
    samples = counted(client.get("/metrics").text)
    found = {key[1]: value for key, value in samples.items() if key[0] == "requests_total"}
    assert found == {"other": 3, "/v1/models/{name}": 2}
