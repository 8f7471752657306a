"""GET /passages/{id} and GET /documents/{path}: texts by their ids, and whole documents.

The order of a document's passages is that of semsearch.search.refinements.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.engine.loading import load
from semsearch.indexing.corpus import Corpus
from tests.app.access.test_views import remote_copy
from tests.app_fixtures import connect_app
from tests.world import write_bundle

IDS = ["a.md#x", "b/c d.md#ü", "a.md#y", "twice", "twice", "💡 100%?"]
PATHS = ["a.md", "b/c d.md", "a.md", "", "b/c d.md", None]
NUMBERS = [1, 0, 0, 0, None, 3]


def write_documents(folder: Path, ids: list[str], rows: list[dict[str, Any]]) -> Path:
    """Write a bundle of passages with these metadata, of which None is left out, and return its folder."""
    metadata = [json.dumps({name: value for name, value in row.items() if value is not None}) for row in rows]
    texts = [f"Text {row} of the baker" for row in range(len(ids))]
    kinds = {"passage": "number", "path": "string", "tenant": "string"}
    columns = {name: kind for name, kind in kinds.items() if any(name in row for row in rows)}
    return write_bundle(folder / "bundle", Corpus(texts, ids, metadata, columns=columns))


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of passages of documents, in another order than that of their texts."""
    rows = [{"path": path, "passage": number} for path, number in zip(PATHS, NUMBERS, strict=True)]
    return write_documents(tmp_path_factory.mktemp("documents"), IDS, rows)


@pytest.fixture(scope="module")
def library(connect: Callable[..., httpx.Client], documents: Path) -> httpx.Client:
    return connect(bundle=documents)


@pytest.mark.promise("/passages id")
@pytest.mark.parametrize("row", [0, 1, 5])
def test_a_passage_is_found_by_its_id(library: httpx.Client, row: int) -> None:
    reply = library.get(f"/passages/{quote(IDS[row], safe='/')}")
    assert reply.status_code == 200
    found = reply.json()
    assert (found["index"], found["id"], found["text"]) == (row, IDS[row], f"Text {row} of the baker")
    assert found["metadata"].get("path") == PATHS[row]


@pytest.mark.promise("/documents path")
def test_a_document_has_its_passages_in_the_order_of_its_text(library: httpx.Client) -> None:
    found = library.get("/documents/a.md").json()
    assert (found["path"], found["total"]) == ("a.md", 2)
    assert [passage["index"] for passage in found["passages"]] == [2, 0]
    found = library.get("/documents/b/c%20d.md").json()
    assert [passage["index"] for passage in found["passages"]] == [1, 4]  # without a number: last


@pytest.mark.promise("/documents offset", "/documents num_results")
def test_a_document_is_returned_in_pages(library: httpx.Client) -> None:
    pages = [library.get("/documents/a.md", params={"num_results": 1, "offset": n}).json() for n in range(3)]
    assert [[passage["index"] for passage in page["passages"]] for page in pages] == [[2], [0], []]
    assert {page["total"] for page in pages} == {2}


@pytest.mark.promise("/documents offset", "/documents num_results")
def test_a_hundred_passages_are_returned_unless_told_otherwise(
    connect: Callable[..., httpx.Client], tmp_path: Path
) -> None:
    rows = [{"path": "a.md", "passage": number} for number in range(1_001)]
    client = connect(bundle=write_documents(tmp_path, [str(number) for number in range(1_001)], rows))

    def passages(**numbers: int) -> list[int]:
        reply = client.get("/documents/a.md", params=numbers)
        assert reply.status_code == 200, reply.text
        return [passage["index"] for passage in reply.json()["passages"]]

    assert passages() == list(range(100))
    assert passages(num_results=1_000) == list(range(1_000))
    assert passages(offset=1_000) == [1_000]
    assert passages(offset=1_000_000_000) == []
    for wrong in ({"num_results": 0}, {"num_results": 1_001}, {"offset": -1}, {"offset": 1_000_000_001}):
        assert client.get("/documents/a.md", params=wrong).status_code == 422


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two documents. The passages of one, in another order than that of its text, have two tenants."""
    places = [("a.md", 3), ("a.md", 0), ("b.md", 1), ("a.md", 1), ("b.md", 0), ("a.md", 2), ("a.md", None)]
    rows = [{"path": path, "passage": number, "tenant": "a"} for path, number in places]
    rows[3]["tenant"] = "b"
    return write_documents(tmp_path_factory.mktemp("shared"), [f"{path}:{number}" for path, number in places], rows)


def around(client: httpx.Client, id: str, **numbers: int) -> tuple[list[str], list[str]]:
    """Return the ids of the passages before and after a passage."""
    found = client.get(f"/passages/{id}", params=numbers).json()
    return tuple([passage["id"] for passage in found[name]] for name in ("before", "after"))  # type: ignore[return-value]


@pytest.mark.promise("/passages before", "/passages after")
def test_a_passage_has_those_around_it_in_the_order_of_its_document(
    connect: Callable[..., httpx.Client], shared: Path
) -> None:
    client = connect(bundle=shared)
    assert around(client, "a.md:1", before=1, after=1) == (["a.md:0"], ["a.md:2"])
    assert around(client, "a.md:3", before=2) == (["a.md:1", "a.md:2"], [])
    assert around(client, "a.md:0", before=10, after=10) == ([], ["a.md:1", "a.md:2", "a.md:3"])
    assert around(client, "b.md:0", before=10, after=10) == ([], ["b.md:1"])
    found = client.get("/passages/a.md:1", params={"after": 1}).json()
    assert found["after"] == [client.get("/passages/a.md:2").json()]
    assert client.get("/passages/a.md:1", params={"before": 0}).json().keys() == {"index", "id", "text", "metadata"}


@pytest.mark.promise("/passages after")
def test_the_passages_around_another_one_are_those_of_the_api_key(
    connect: Callable[..., httpx.Client], shared: Path
) -> None:
    key = "0123456789abcdef"
    client = connect(bundle=shared, settings=Settings(api_keys=(ApiKey("a", hash_key(key), {"tenant": "a"}),)))
    client.headers["authorization"] = f"Bearer {key}"
    assert around(client, "a.md:0", after=2) == ([], ["a.md:2", "a.md:3"])


@pytest.mark.promise("/passages before", "/passages after")
def test_a_row_of_a_table_has_no_passages_around_it(
    connect: Callable[..., httpx.Client], client: httpx.Client, shared: Path
) -> None:
    error = "before: found 2, expected 0 for a text that is in no document, such as a row of a table; leave it out"
    reply = client.get("/documents/a.md")
    error_of_document = "path: found a corpus without documents, expected a value of the column 'path'; search for one"
    assert (reply.status_code, reply.json()["error"]) == (404, error_of_document)
    for each, id in ((client, "story-007"), (connect(bundle=shared), "a.md:None")):
        reply = each.get(f"/passages/{id}", params={"before": 2})
        assert (reply.status_code, reply.json()) == (422, {"error": error, "error_type": "invalid"})
        assert each.get(f"/passages/{id}", params={"before": 0, "after": 0}).status_code == 200


@pytest.mark.promise("/passages after")
def test_at_most_ten_passages_around_another_one_are_returned(library: httpx.Client) -> None:
    reply = library.get("/passages/a.md%23x", params={"after": 11})
    assert (reply.status_code, reply.json()["error"][:6]) == (422, "after:")


@pytest.mark.promise("/passages id", "/documents path")
@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/passages/nothing", "id: found 'nothing', expected the id of a text; search for one"),
        ("/documents/x.md", "path: found 'x.md', expected a value of the column 'path'; search for one"),
    ],
)
def test_what_is_not_there_is_a_404(library: httpx.Client, path: str, error: str) -> None:
    reply = library.get(path)
    assert (reply.status_code, reply.json()) == (404, {"error": error, "error_type": "not_found"})


def test_texts_in_s3_vectors_are_not_read_by_their_ids(documents: Path, tmp_path: Path) -> None:
    client = connect_app(load(remote_copy(documents, tmp_path / "remote")))
    error = "corpus: found in S3 Vectors, expected in the bundle; search for the texts"
    for path in ("/passages/twice", "/documents/a.md"):
        reply = client.get(path)
        assert (reply.status_code, reply.json()) == (404, {"error": error, "error_type": "not_found"})


def test_a_reply_that_is_too_large_says_what_to_do(connect: Callable[..., httpx.Client], documents: Path) -> None:
    client = connect(bundle=documents, settings=Settings(max_reply_bytes=40))
    for path, advice in (
        ("/passages/twice", "split the long texts of the corpus"),
        ("/documents/a.md", "ask for fewer passages with num_results"),
    ):
        reply = client.get(path)
        assert reply.status_code == 413
        assert reply.json()["error"].startswith("text: the reply is ")
        assert reply.json()["error"].endswith(f" bytes, at most 40; {advice}")
