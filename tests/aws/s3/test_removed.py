"""Texts that were removed from the pointer: running functions skip them after their next poll, without fetching."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.engine.bundle import BundleError
from semsearch.publishing.store import Store
from tests.app.routes.test_documents import documents as documents
from tests.aws.s3.asking import Start
from tests.stand_ins.faults import Proxy
from tests.stand_ins.fixtures import Publish, object_at

GOOSE = "story-150"  # "An angry goose …", chapter 15
QUERY = {"text": "angry goose", "num_results": 10}
MODES = ("semantic", "keyword", "hybrid")


def ids(client: httpx.Client, **fields: Any) -> list[str]:
    reply = client.post("/similar", json=QUERY | fields)
    assert reply.status_code == 200, reply.text
    return [result["id"] for result in reply.json()["results"]]


def call(client: httpx.Client, tool: str, **arguments: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return client.post("/mcp", json=body, headers={"accept": "application/json, text/event-stream"}).json()["result"]


def test_a_removal_is_visible_after_one_poll_everywhere_and_fetches_nothing_of_the_bundle(
    start: Start, publish: Publish, bundle: Path, store: Store, proxy: Proxy
) -> None:
    publish(bundle)
    switch, client = start()
    assert all(GOOSE in ids(client, mode=mode) for mode in MODES)
    store.remove([GOOSE])
    proxy.asked.clear()
    switch.poll()
    assert [path.rpartition("/")[2] for path, _, _ in proxy.asked] == ["current.json"]
    for mode in MODES:
        assert GOOSE not in ids(client, mode=mode)
        assert GOOSE not in ids(client, mode=mode, filter={"chapter": 15})
        assert GOOSE not in ids(client, mode=mode, group_by="who")
    reply = client.post("/similar", json={"text": "goose", "facets": ["chapter"]}).json()
    assert reply["total"] == 199
    assert client.post("/similar", json={"id": GOOSE}).status_code == 404
    assert client.get(f"/passages/{GOOSE}").status_code == 404
    assert call(client, "fetch", id=GOOSE)["isError"]
    assert GOOSE not in str(call(client, "search", query="angry goose"))
    shown = client.get("/info").json()["bundle"]
    assert (shown["removed"], shown["switches"], shown["error"]) == (1, 1, None)


def test_a_document_lacks_its_removed_passages(start: Start, publish: Publish, documents: Path, store: Store) -> None:
    publish(documents)
    store.remove(["a.md#x", "twice"])
    _, client = start()
    found = client.get("/documents/a.md").json()
    assert (found["total"], [passage["id"] for passage in found["passages"]]) == (1, ["a.md#y"])
    assert client.get("/passages/twice").status_code == 404  # both texts with this id


def test_a_restored_text_is_found_again(start: Start, publish: Publish, bundle: Path, store: Store) -> None:
    publish(bundle)
    switch, client = start()
    before = ids(client)
    store.remove([GOOSE, "story-000"])
    switch.poll()
    store.restore([GOOSE, "story-000"])
    switch.poll()
    assert ids(client) == before


def test_removals_follow_to_other_bundles(start: Start, publish: Publish, bundles: list[Path], store: Store) -> None:
    old = publish(bundles[0])
    store.remove([GOOSE])
    switch, client = start()
    publish(bundles[1])
    switch.poll()
    assert GOOSE not in ids(client)
    store.make_current(old, store.pointer())
    switch.poll()
    assert GOOSE not in ids(client)
    assert switch.status.switches == 2


def test_a_damaged_list_is_refused_and_what_was_removed_before_stays_removed(
    start: Start, publish: Publish, bundle: Path, store: Store, s3: Any, url: str
) -> None:
    version = publish(bundle)
    store.remove([GOOSE])
    switch, client = start()
    content = json.dumps({"version": version, "removed": {GOOSE: [200]}}).encode()  # as no command writes it
    s3.put_object(**object_at(url, "current.json"), Body=content)
    switch.poll()
    message = "row 200 was removed, expected one of 200 rows"
    assert message in str(switch.status.error)
    assert GOOSE not in ids(client)
    with pytest.raises(BundleError, match=message):
        start()
