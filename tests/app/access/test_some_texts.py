"""Keys that find none of the texts, one, some and all of them: plain examples on each route that shows texts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from semsearch.app.settings import ApiKey, Settings, hash_key
from tests.promises.conftest import SHELF, corpus_of
from tests.world import write_bundle

ALL = "abcdefgh"
# the filter of each key, and the ids that it finds
KEYS: dict[str, tuple[dict[str, Any] | None, str]] = {
    "none": ({"copies": 4}, ""),
    "one": ({"id": "d"}, "d"),
    "some": ({"copies": 3}, "agh"),
    "all": ({"id": {"$exists": True}}, ALL),
    "empty-filter": ({}, ALL),
    "without-filter": (None, ALL),
}
SECRET = "0123456789abcdef"


@pytest.fixture(scope="module", params=KEYS)
def key(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bundle(tmp_path_factory.mktemp("keys") / "bundle", corpus_of(SHELF))


@pytest.fixture(scope="module")
def caller(connect: Callable[..., httpx.Client], folder: Path, key: str) -> httpx.Client:
    """A client with this key, of an app with all keys."""
    keys = tuple(ApiKey(name, hash_key(name + SECRET), condition) for name, (condition, _) in KEYS.items())
    client = connect(bundle=folder, settings=Settings(api_keys=keys))
    client.headers["authorization"] = f"Bearer {key + SECRET}"
    return client


def ids_found(caller: httpx.Client, **body: Any) -> list[str]:
    """Return the ids that a search finds, best first."""
    reply = caller.post("/similar", json={"num_results": 100} | body)
    assert reply.status_code == 200
    return [each["id"] for each in reply.json()["results"]]


@pytest.mark.promise("key")
def test_a_list_has_the_texts_of_the_key_with_their_numbers_and_total(caller: httpx.Client, key: str) -> None:
    expected = [*KEYS[key][1]]
    reply = caller.post("/similar", json={"filter": {}, "facets": ["genre"], "num_results": 100}).json()
    assert [(each["index"], each["id"]) for each in reply["results"]] == [*enumerate(expected)]
    assert reply["total"] == len(expected)


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.promise("key")
def test_a_search_finds_the_texts_of_the_key(caller: httpx.Client, key: str, mode: str) -> None:
    assert sorted(ids_found(caller, text="the baker", mode=mode, num_results=100)) == [*KEYS[key][1]]
    assert ids_found(caller, text="the baker", mode=mode, num_results=1) == [*KEYS[key][1][:1]]


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
@pytest.mark.promise("key")
def test_a_filter_does_not_reach_beyond_the_key(caller: httpx.Client, key: str, mode: str) -> None:
    own = KEYS[key][1]
    conditions: list[dict[str, Any]] = [{"$not": {"copies": 4}}, {"$or": [{}, {"copies": 3}]}, {"id": {"$ne": ""}}]
    for condition in conditions:
        assert ids_found(caller, filter=condition) == [*own]
        assert sorted(ids_found(caller, text="the baker", mode=mode, filter=condition)) == [*own]
    within = [id for id in own if id in "cdg"]
    assert ids_found(caller, filter={"id": {"$in": ["c", "d", "g"]}}) == within


@pytest.mark.promise("key")
def test_facets_count_the_texts_of_the_key(caller: httpx.Client, key: str) -> None:
    genres = {"none": [], "one": [("nov", 1)], "some": [("novel", 3)]}
    expected = genres.get(key, [("novel", 4), ("", 1), ("nov", 1), ("poem", 1)])
    for mode in ("semantic", "keyword", "hybrid"):
        body = {"text": "the baker", "mode": mode, "facets": ["genre"]}
        found = caller.post("/similar", json=body).json()["facets"]["genre"]
        assert [(each["value"], each["count"]) for each in found] == expected


@pytest.mark.parametrize("id", [*ALL, "unknown"])
@pytest.mark.promise("key")
def test_an_id_of_another_text_is_unknown(caller: httpx.Client, key: str, id: str) -> None:
    own = KEYS[key][1]
    passage = caller.get(f"/passages/{id}")
    similar = caller.post("/similar", json={"id": id, "num_results": 100})
    if id in own:
        assert (passage.status_code, passage.json()["id"], passage.json()["index"]) == (200, id, own.index(id))
        assert sorted(each["id"] for each in similar.json()["results"]) == sorted(set(own) - {id})
    else:
        for reply in (passage, similar):
            assert (reply.status_code, reply.json()["error_type"]) == (404, "not_found")
            assert reply.json()["error"] == f"id: found '{id}', expected the id of a text; search for one"


@pytest.mark.promise("key")
def test_info_counts_the_texts_of_the_key(caller: httpx.Client, key: str) -> None:
    info = caller.get("/info").json()
    index = info["index"]
    assert index["rows"] == len(KEYS[key][1])
    counts = [index["keywords"][name] for name in ("terms", "postings", "known_words", "synonyms")]
    if KEYS[key][0] is None:
        assert "files" in info
        assert None not in counts
    else:  # no figure of the whole corpus
        shown = {"corpus", "title", "description", "columns", "keywords", "vectors", "boost", "rows"}
        assert (index.keys(), "files" in info, counts) == (shown, False, [None] * 4)


@pytest.mark.promise("key")
def test_the_tools_of_mcp_find_the_texts_of_the_key(caller: httpx.Client, key: str) -> None:
    own = KEYS[key][1]

    def call(tool: str, **arguments: str) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        reply = caller.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).json()
        found: dict[str, Any] = reply["result"]
        return found

    found = json.loads(call("search", query="the baker")["content"][0]["text"])["results"]
    assert sorted(each["id"] for each in found) == [*own]
    for id in ALL:
        assert call("fetch", id=id).get("isError", False) == (id not in own)
