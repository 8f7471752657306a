"""Search: the same objects from a folder and from a URL."""

import inspect
import json
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError

import numpy as np
import pytest

from semsearch import Hit, Hits, Search
from semsearch.app.app import App
from semsearch.app.http import Receive, Scope, Send, header
from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.search.request import SimilarRequest
from tests.browser.page.conftest import serving
from tests.bundle_files import damage

KEY = "0123456789abcdef"
CLOSED = Settings(api_keys=(ApiKey("test", hash_key(KEY)),))


@pytest.fixture(scope="module")
def remote(make_app: Callable[..., App]) -> Iterator[Search]:
    with serving(make_app(settings=CLOSED)) as address:
        yield Search(address, key=KEY)


@pytest.fixture(scope="module")
def local(bundle: Path) -> Search:
    return Search(bundle)


def test_a_folder_and_a_url_return_the_same(local: Search, remote: Search) -> None:
    fields: dict[str, Any] = {"filter": {"chapter": {"$lt": 19}}, "facets": ["places"], "top_k": 3, "highlights": True}
    fields["boost"] = {"chapter": {"log": True, "weight": 0.1}}
    found, expected = (each.search("the baker", **fields) for each in (local, remote))
    assert found == expected
    assert (len(found), found.total, found.facets) == (3, expected.total, expected.facets)
    assert found[0].text.startswith("The baker")
    assert found[0].snippet is not None
    assert local.similar_to("story-007", top_k=2) == remote.similar_to("story-007", top_k=2)
    np.testing.assert_array_equal(local.embed(["the baker"]), remote.embed(["the baker"]))


def test_facets_of_results_count_the_best_hundred_texts(local: Search) -> None:
    page = local.search("the baker", mode="semantic", facets=["who"], facets_of="results", top_k=1, offset=2)
    best = local.search("the baker", mode="semantic", top_k=100)
    counts = Counter(hit.metadata["who"] for hit in best if "who" in hit.metadata)
    assert (page.total, {each["value"]: each["count"] for each in page.facets["who"]}) == (100, counts)


async def test_groups_have_their_other_texts(local: Search) -> None:
    hits = await local.asearch("an angry goose", group_by="who", top_k=2)
    assert hits[0].group == "an angry goose"
    assert {other.metadata["who"] for other in hits[0].other_passages} == {"an angry goose"}


@pytest.mark.parametrize("place", ["local", "remote"])
def test_an_argument_that_cannot_be_used_is_a_value_error(place: str, request: pytest.FixtureRequest) -> None:
    search: Search = request.getfixturevalue(place)
    with pytest.raises(ValueError, match="found 'year'"):
        search.search("goose", filter={"year": 1})
    with pytest.raises(ValueError, match=r"top_k|num_results"):
        search.search("goose", top_k=0)


def test_a_wrong_key_is_an_error_of_the_server(remote: Search, make_app: Callable[..., App]) -> None:
    with serving(make_app(settings=CLOSED)) as address, pytest.raises(HTTPError) as raised:
        Search(address, key="f" * 16).search("goose")
    assert (raised.value.code, "API keys" in json.load(raised.value)["error"]) == (401, True)


METADATA = {"score": 5, "score_metadata": 6, "id": "x", "brand": "North", "index": 7}
RESULT = {"index": 3, "id": "c-1", "score": 0.5, "text": "A warm <b>coat</b>", "metadata": METADATA}
REPLY: dict[str, Any] = {"results": [RESULT, {**RESULT, "id": "c-2", "metadata": {"brand": 1}}], "truncated": False}
REPLY |= {"facets": {"brand": [{"value": "North", "count": 2}]}, "total": 2}
EMPTY = Hits({"results": [], "truncated": False})
ALWAYS = ["id", "score", "text", "index"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_hits_become_a_table(library: str) -> None:
    frame = pytest.importorskip(library, reason=f"{library} is not installed with this project")
    table, empty = getattr(Hits(REPLY), f"to_{library}")(), getattr(EMPTY, f"to_{library}")()
    assert isinstance(table, frame.DataFrame)
    assert [*table.columns][:4] == [*empty.columns] == ALWAYS
    assert [*table["score"]] == [0.5, 0.5]
    assert table["score_metadata_metadata"][0] == 5  # the metadata's score; its score_metadata keeps its name
    assert table["score_metadata"][0] == 6
    assert ([*table["id"]], table["id_metadata"][0], table["index_metadata"][0]) == (["c-1", "c-2"], "x", 7)


def test_hits_become_dicts_with_what_the_search_requested(local: Search) -> None:
    (first, *_) = local.search("an angry goose", group_by="who", highlights=True, top_k=2).to_dicts()
    assert [*first][:6] == [*ALWAYS, "group", "snippet"]
    assert (first["group"], first["who"]) == ("an angry goose", "an angry goose")
    assert [*local.search("goose", mode="semantic", top_k=1).to_dicts()[0]][:5] == [*ALWAYS, "chapter"]


def test_a_slice_of_hits_keeps_facets_and_total() -> None:
    hits = Hits(REPLY)
    part = hits[1:]
    assert isinstance(part, Hits)
    assert ([hit.id for hit in part], part.total, part.facets, len(hits)) == (["c-2"], 2, hits.facets, 2)
    assert isinstance(hits[0], Hit)
    assert pickle.loads(pickle.dumps(part)).total == 2


def test_a_notebook_displays_hits_as_a_table() -> None:
    shown = Hits(REPLY)._repr_html_()
    assert "<th>score_metadata_metadata</th>" in shown
    assert "<td>A warm &lt;b&gt;coat&lt;/b&gt;</td>" in shown
    assert EMPTY._repr_html_().count("<th>") == len(ALWAYS)


def test_a_request_with_a_region_is_signed_with_the_credentials_of_the_environment(
    make_app: Callable[..., App], monkeypatch: pytest.MonkeyPatch
) -> None:
    signed: list[str] = []
    plain = make_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        signed.append(header(scope, b"authorization").decode())
        await plain(scope, receive, send)

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with serving(cast(App, app)) as address:
        assert len(Search(address, region="eu-central-1").search("goose", top_k=1)) == 1
    assert signed[0].startswith("AWS4-HMAC-SHA256 Credential=AKID/")
    assert "/eu-central-1/execute-api/aws4_request" in signed[0]


def test_every_field_of_similar_is_an_argument() -> None:
    arguments = {*inspect.signature(Search.search).parameters} - {"self"}
    assert {"num_results" if name == "top_k" else name for name in arguments} == {*SimilarRequest.model_fields}


def test_with_verify_a_damaged_bundle_is_refused(bundle_copy: Path) -> None:
    Search(bundle_copy, verify=True)
    damage(bundle_copy / "passages.safetensors")
    with pytest.raises(ValueError, match=r"passages\.safetensors: is damaged"):
        Search(bundle_copy, verify=True)
    with pytest.raises(ValueError, match="verify: http://localhost:8000 is an address"):
        Search("http://localhost:8000", verify=True)
