"""POST /mcp, message by message: what each revision of the protocol asks of a server without sessions."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from semsearch.app.mcp.messages import ISSUER_VARIABLE, OAUTH_METADATA
from semsearch.app.mcp.names import tool_name
from semsearch.app.mcp.tools import input_schema
from semsearch.app.settings import Settings
from semsearch.engine.bundle import Manifest, RerankInfo, read_manifest
from semsearch.engine.loading import load
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.search.request import NOT_OFFERED, OFFERED, SimilarRequest
from semsearch.version import VERSION
from tests.function.events.event_makers import function_url, http_api, load_balancer, rest_api
from tests.world import add_floor, write_bundle

META = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
OWN = "search_stories"  # the tool named after the corpus
SEARCH = {"name": OWN, "arguments": {"text": "angry goose", "num_results": 2}}


def message(method: str, params: dict[str, Any] | None = None, **fields: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}} | fields


def modern(method: str, params: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a message of the modern era and its headers."""
    params = params or {}
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return message(method, params | {"_meta": meta}), headers


def ask(
    client: httpx.Client, body: object, headers: dict[str, str] | None = None, path: str = "/mcp"
) -> httpx.Response:
    return client.post(path, content=json.dumps(body), headers=JSON | (headers or {}))


def result(reply: httpx.Response) -> dict[str, Any]:
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "application/json"
    found = reply.json()
    assert (found.keys(), found["jsonrpc"], found["id"]) == ({"jsonrpc", "id", "result"}, "2.0", 7)
    content: dict[str, Any] = found["result"]
    return content


def error(reply: httpx.Response, status: int, code: int) -> dict[str, Any]:
    found: dict[str, Any] = reply.json()["error"]
    assert (reply.status_code, found["code"]) == (status, code), reply.text
    return found


def content_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool returned; it is sent once, as a text."""
    (content,) = found["content"]
    assert (content["type"], found.keys() - {"resultType", "_meta"}) == ("text", {"content", "isError"})
    returned: dict[str, Any] = json.loads(content["text"])
    return returned


def call(client: httpx.Client, name: str, path: str = "/mcp", **arguments: object) -> dict[str, Any]:
    """Return what a call of a tool returned."""
    return result(ask(client, message("tools/call", {"name": name, "arguments": arguments}), path=path))


def tools_of(client: httpx.Client, path: str = "/mcp") -> list[dict[str, Any]]:
    """Return all tools. The first one is named after the corpus."""
    tools: list[dict[str, Any]] = result(ask(client, message("tools/list"), path=path))["tools"]
    return tools


# --- the handshake era


@pytest.mark.parametrize(("asked", "offered"), [(LEGACY, LEGACY), ("2024-11-05", LEGACY)])
def test_initialize_agrees_on_a_revision_that_both_know(client: httpx.Client, asked: str, offered: str) -> None:
    found = result(ask(client, message("initialize", {"protocolVersion": asked, "capabilities": {}})))
    assert found["protocolVersion"] == offered
    assert found["capabilities"] == {"tools": {}}
    assert found["serverInfo"] == {"name": "semantic-search", "version": VERSION}
    assert "200 texts of stories.csv" in found["instructions"]


def test_a_notification_is_accepted_without_an_answer(client: httpx.Client) -> None:
    reply = ask(client, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (reply.status_code, reply.content) == (202, b"")


def test_an_unknown_method_is_an_error_with_status_200_before_2026(client: httpx.Client) -> None:
    found = error(ask(client, message("resources/list"), {"mcp-protocol-version": LEGACY}), 200, -32601)
    assert found["message"] == "method: found 'resources/list', expected tools/list or tools/call"


# --- the modern era


def test_discover_says_which_revisions_there_are(client: httpx.Client) -> None:
    found = result(ask(client, *modern("server/discover")))
    assert found["supportedVersions"] == [MODERN, LEGACY, "2025-06-18"]
    assert (found["capabilities"], found["resultType"]) == ({"tools": {}}, "complete")
    assert found["_meta"] == {f"{META}serverInfo": {"name": "semantic-search", "version": VERSION}}
    assert (found["ttlMs"], found["cacheScope"]) == (300_000, "private")


def test_both_eras_find_what_similar_finds(client: httpx.Client) -> None:
    expected = client.post("/similar", json=SEARCH["arguments"]).json()
    for found in (
        result(ask(client, *modern("tools/call", SEARCH))),
        result(ask(client, message("tools/call", SEARCH))),
    ):
        assert (content_of(found), found["isError"]) == (expected, False)


@pytest.mark.parametrize("method", ["ping", "initialize"])
def test_an_unknown_method_is_a_404_since_2026(client: httpx.Client, method: str) -> None:
    error(ask(client, *modern(method)), 404, -32601)


def test_an_unknown_revision_is_refused_with_those_there_are(client: httpx.Client) -> None:
    body, headers = modern("tools/list")
    body["params"]["_meta"][f"{META}protocolVersion"] = "1900-01-01"
    found = error(ask(client, body, headers | {"mcp-protocol-version": "1900-01-01"}), 400, -32022)
    assert found["data"] == {"supported": [MODERN, LEGACY, "2025-06-18"], "requested": "1900-01-01"}
    error(ask(client, message("tools/list"), {"mcp-protocol-version": "1900-01-01"}), 400, -32022)
    error(ask(client, {"jsonrpc": "2.0", "method": "n"}, {"mcp-protocol-version": "1900-01-01"}), 400, -32022)


def test_a_notification_that_cannot_be_understood_is_answered_without_an_id(client: httpx.Client) -> None:
    notification, headers = modern("notifications/initialized")
    del notification["id"]
    assert ask(client, notification, {"mcp-protocol-version": MODERN}).status_code == 202
    reply = ask(client, notification, headers | {"mcp-protocol-version": LEGACY})
    error(reply, 400, -32020)
    assert reply.json()["id"] is None


@pytest.mark.parametrize("field", ["protocolVersion", "clientCapabilities"])
def test_a_message_of_2026_says_what_its_client_can_do(client: httpx.Client, field: str) -> None:
    body, headers = modern("server/discover")
    del body["params"]["_meta"][META + field]
    assert ask(client, body, headers).json() == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {
            "code": -32602,
            "message": f"params._meta: expected {META}protocolVersion and {META}clientCapabilities",
        },
    }
    assert ask(client, message("ping", {"_meta": 3})).status_code == 200  # a client without a version can send anything


@pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-name"])
@pytest.mark.parametrize("value", [None, LEGACY])
def test_a_header_that_is_missing_or_differs_from_the_message_is_refused(
    client: httpx.Client, name: str, value: str | None
) -> None:
    body, headers = modern("tools/call", SEARCH)
    del headers[name]
    found = error(ask(client, body, headers if value is None else headers | {name: value}), 400, -32020)
    assert name in found["message"] or "version" in found["message"]


# --- messages that are none


NOT_A_NUMBER = b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"number": NaN}}'


@pytest.mark.parametrize("body", [b"{", b"[" * 40_000, b'{"id": "\\ud800"}', NOT_A_NUMBER])
def test_what_is_not_json_is_a_parse_error_without_an_id(client: httpx.Client, body: bytes) -> None:
    reply = client.post("/mcp", content=body, headers=JSON)
    error(reply, 400, -32700)
    assert reply.json()["id"] is None


@pytest.mark.parametrize(
    "body", [[message("ping")], {"jsonrpc": "1.0", "id": 1, "method": "ping"}, message("ping", id=1.5)]
)
def test_what_is_not_a_message_is_an_invalid_request(client: httpx.Client, body: object) -> None:
    found = error(ask(client, body), 400, -32600)
    if isinstance(body, list) and body:
        assert found["message"].startswith("message: input should be a valid dictionary")


@pytest.mark.parametrize(
    ("body", "id"),
    [
        (message("ping", id=9) | {"params": None}, 9),
        (message("ping", id=9.0) | {"params": [1]}, 9),
        ({"jsonrpc": "1.0", "id": "nine", "method": "ping"}, "nine"),
        ({"jsonrpc": "2.0", "id": 9}, 9),
        (message("ping", id=True), None),
        (message("ping", id=[9]), None),
        ([message("ping", id=9)], None),
    ],
    ids=str,
)
def test_an_invalid_request_is_answered_with_its_id_if_it_has_one(
    client: httpx.Client, body: object, id: object
) -> None:
    reply = ask(client, body)
    error(reply, 400, -32600)
    assert reply.json()["id"] == id


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_are_no_streams_and_no_sessions(client: httpx.Client, method: str) -> None:
    reply = client.request(method, "/mcp", headers={"accept": "text/event-stream"})
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:6274", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:80", 200),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("http://[", 403),
    ],
)
def test_a_web_page_elsewhere_may_not_ask(client: httpx.Client, origin: str, status: int) -> None:
    # with the page's own name for this machine, as after DNS rebinding
    headers = {"origin": origin, "host": "evil.example"}
    assert ask(client, message("ping"), headers).status_code == status


def test_a_web_page_that_the_settings_name_may_ask(connect: Callable[..., httpx.Client]) -> None:
    some, all_ = (connect(settings=Settings(mcp_origins=(origin,))) for origin in ("https://a.example", "*"))
    for client, origin, status in (
        (some, "https://a.example", 200),
        (some, "https://b.example", 403),
        (all_, "https://b.example", 200),
    ):
        assert ask(client, message("ping"), {"origin": origin}).status_code == status


def test_the_phases_of_a_message_are_told(client: httpx.Client) -> None:
    found = {}
    for method, params in (("ping", {}), ("tools/call", SEARCH)):
        timing = ask(client, message(method, params)).headers["server-timing"]
        found[method] = [phase.partition(";")[0] for phase in timing.split(", ")]
    assert found["ping"] == ["parse", "reply", "total"]
    assert found["tools/call"] == ["parse", "keyword", "embed", "search", "reply", "total"]


# --- the tool


def test_the_tool_names_the_corpus_and_its_columns(client: httpx.Client) -> None:
    tool = tools_of(client)[0]
    assert tool["name"] == OWN
    assert "200 texts of stories.csv" in tool["description"]
    columns = "chapter (number); places (list: sea, village); told (date); true (boolean)"
    assert f"can choose: {columns}." in tool["description"]  # `who` has too many values to list
    assert tool["inputSchema"]["properties"].keys() == set(OFFERED) - {"rerank", "min_score"}
    assert all(each["description"] for each in tool["inputSchema"]["properties"].values())


def test_each_field_of_a_search_is_offered_or_left_out_for_a_reason() -> None:
    assert sorted([*OFFERED, *NOT_OFFERED]) == sorted(SimilarRequest.model_fields)
    assert all(NOT_OFFERED.values())


def test_values_that_the_description_does_not_list_are_stated_by_an_ellipsis(
    connect: Callable[..., httpx.Client], tmp_path: Path
) -> None:
    metadata = [json.dumps({"kind": f"k{row % 9}"}) for row in range(18)]
    ids = [str(row) for row in range(18)]
    corpus = Corpus(["The goose"] * 18, ids, metadata, columns={"kind": "string"})
    tool = tools_of(connect(bundle=write_bundle(tmp_path / "bundle", corpus)))[0]
    assert "kind (string: k0, k1, k2, k3, k4, k5, k6, k7, …)." in tool["description"]


def test_a_corpus_without_columns_and_keywords_offers_neither(
    connect: Callable[..., httpx.Client], tmp_path: Path
) -> None:
    corpus = Corpus(["The baker", "The goose"], ["a", "b"], ["{}"] * 2)
    client = connect(bundle=write_bundle(tmp_path / "bundle", corpus, keywords=None))
    tool, search, fetch = tools_of(client)
    assert "columns" not in tool["description"]
    assert search["description"].startswith("Find texts by a query")
    assert fetch["inputSchema"]["properties"].keys() == {"id", "ids", "max_characters"}
    assert tool["inputSchema"]["properties"]["mode"]["enum"] == ["semantic"]
    found = call(client, OWN, text="goose", mode="hybrid")
    assert "mode: found 'hybrid', but this bundle has no keywords" in found["content"][0]["text"]


# --- the tools that assistants such as ChatGPT expect


DOCUMENTS = Corpus(
    ["The baker opened the door.", "The baker sold apples.", "An angry goose " * 20],
    ["a#1", "a#2", "goose"],
    [
        json.dumps({"path": "a", "passage": 0, "title": "About", "url": "https://example.org/a#1"}),
        json.dumps({"path": "a", "passage": 1, "headings": ["Top", "Apples"], "url": "https://example.org/a#2"}),
        "{}",
    ],
    columns={"passage": "number", "path": "string", "title": "string", "url": "string"},
)


@pytest.fixture(scope="module")
def library(connect: Callable[..., httpx.Client], tmp_path_factory: pytest.TempPathFactory) -> httpx.Client:
    return connect(bundle=write_bundle(tmp_path_factory.mktemp("library") / "bundle", DOCUMENTS))


def test_each_tool_has_a_valid_name_and_schemas_that_hold(library: httpx.Client) -> None:
    tools = tools_of(library)
    assert [tool["name"] for tool in tools] == [OWN, "search", "fetch", "list_documents"]
    assert [tool["name"] for tool in tools if len(json.dumps(tool, separators=(",", ":"))) > 2_048] == []
    calls: list[dict[str, Any]] = [{"text": "goose", "group_by": "path"}, {"query": "goose"}, {"id": "a#1"}, {}]
    for tool, arguments in zip(tools, calls, strict=True):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"])
        assert tool["annotations"]["readOnlyHint"] is True
        jsonschema_rs.validate(tool["inputSchema"], arguments)
        assert content_of(call(library, tool["name"], **arguments))


@pytest.mark.promise("SearchArguments.query")
def test_search_returns_the_id_title_and_address_of_a_passage_of_each_document(library: httpx.Client) -> None:
    found = content_of(call(library, "search", query="the baker sold apples"))["results"]
    snippet = "The baker sold apples."
    assert found[0] == {"id": "a#2", "title": "Apples", "url": "https://example.org/a#2", "snippet": snippet}
    goose = " ".join(["An angry goose"] * 6)[:79]
    assert found[1]["id"] == "a#1"
    (other,) = found[2:]
    assert other.pop("snippet").startswith("An angry goose")
    assert other == {"id": "goose", "title": f"{goose}…", "url": ""}


@pytest.mark.parametrize("boost", [{}, {"passage": {"log": True, "weight": 5}}])
def test_a_floor_is_offered_and_search_says_when_the_best_hit_is_below_it_and_returns_the_rest(
    connect: Callable[..., httpx.Client], tmp_path: Path, boost: dict[str, Any]
) -> None:
    bundle = add_floor(write_bundle(tmp_path / "bundle", DOCUMENTS), {"hybrid": 0.5})
    manifest = read_manifest(bundle)
    write_manifest(bundle, replace(manifest, corpus_or_none=replace(manifest.corpus, boost=boost)))
    client = connect(bundle=bundle)
    found = content_of(call(client, "search", query="mortgage"))
    best = client.post("/similar", json={"text": "mortgage", "boost": {}}).json()["results"][0]["score"]
    assert found.pop("note") == f"nothing relevant: the best score {best:.2f} is below 0.50"
    assert [hit["id"] for hit in found["results"]]
    assert content_of(call(client, "search", query="the baker sold apples")).keys() == {"results"}
    assert tools_of(client)[0]["inputSchema"]["properties"]["min_score"]["enum"] == ["floor"]
    assert content_of(call(client, OWN, text="mortgage", min_score="floor"))["results"] == []


@pytest.mark.promise("ListArguments.offset")
def test_documents_are_listed_with_their_paths_and_titles_page_by_page(library: httpx.Client) -> None:
    found = content_of(call(library, "list_documents"))
    assert found == {"total": 1, "documents": [{"path": "a", "title": "About"}]}
    assert content_of(call(library, "list_documents", offset=1)) == {"total": 1, "documents": []}


@pytest.mark.promise("FetchArguments.id")
def test_fetch_returns_the_whole_document_of_a_passage(library: httpx.Client) -> None:
    metadata = json.loads(DOCUMENTS.metadata[1])
    text = "The baker opened the door.\n\nThe baker sold apples."
    expected = {"id": "a#2", "title": "Apples", "url": "https://example.org/a#2", "text": text, "metadata": metadata}
    assert content_of(call(library, "fetch", id="a#2")) == expected
    found = content_of(call(library, "fetch", id="goose"))
    assert (found["text"], found["metadata"], found["url"]) == (DOCUMENTS.texts[2], {}, "")


SECTIONS = {  # texts of the passages by their ids
    "guide.md#goose:1": "The angry goose chased the sailor. " * 6,
    "guide.md#goose:2": "The goose slept.",
    "guide.md#duck:1": "The duck crossed the frozen river. " * 6,
    "other.md#goose:1": "A baker painted the kitchen.",
}


@pytest.fixture(scope="module")
def guide(connect: Callable[..., httpx.Client], tmp_path_factory: pytest.TempPathFactory) -> httpx.Client:
    """The app over two documents."""
    metadata = []
    for number, id in enumerate(SECTIONS):
        path, anchor = id.partition(":")[0].split("#")
        fields = {"path": path, "url": f"{path}#{anchor}", "title": "Birds", "headings": ["Birds", anchor.title()]}
        metadata.append(json.dumps(fields | {"passage": number}))
    columns = {"path": "string", "url": "string", "title": "string", "headings": "list", "passage": "number"}
    corpus = Corpus([*SECTIONS.values()], [*SECTIONS], metadata, columns=columns, heading_prefix=True)
    return connect(bundle=write_bundle(tmp_path_factory.mktemp("guide") / "bundle", corpus))


def test_search_returns_sections_with_the_path_of_their_headings(guide: httpx.Client) -> None:
    found = content_of(call(guide, "search", query="angry goose"))["results"]
    assert [each["id"] for each in found[:1]] == ["guide.md#goose"]
    assert sorted(each["id"] for each in found) == ["guide.md#duck", "guide.md#goose", "other.md#goose"]
    assert (found[0]["title"], found[0]["headings"]) == ("Goose", ["Birds", "Goose"])


def test_a_section_that_several_documents_have_is_returned_once_with_its_places(
    connect: Callable[..., httpx.Client], tmp_path: Path
) -> None:
    section = {"title": "Birds", "headings": ["Birds", "A"], "passage": 1}
    fields = [{"path": f"{name}.md", "url": f"{name}.md#a"} | section for name in "xy"]
    columns = {"path": "string", "url": "string", "title": "string", "headings": "list", "passage": "number"}
    texts, ids = ["an angry goose"] * 2, ["x.md#a:1", "y.md#a:1"]
    corpus = Corpus(texts, ids, [json.dumps(each) for each in fields], columns=columns, heading_prefix=True)
    client = connect(bundle=write_bundle(tmp_path / "bundle", corpus))
    (found,) = content_of(call(client, "search", query="angry goose"))["results"]
    assert (found["id"], found["also_in"]) == ("x.md#a", [{"path": "y.md", "url": "y.md#a"}])


@pytest.mark.promise("FetchArguments.max_characters")
def test_fetch_returns_a_section_or_a_document_and_says_what_was_cut(guide: httpx.Client) -> None:
    first, second, third, _ = SECTIONS.values()
    section = content_of(call(guide, "fetch", id="guide.md#goose"))
    assert (section["title"], section["text"]) == ("Goose", f"{first}\n\n{second}")
    # without `passage`, which is the number of one passage
    expected = {"path": "guide.md", "url": "guide.md#goose", "title": "Birds", "headings": ["Birds", "Goose"]}
    assert section["metadata"] == expected
    for id in ("guide.md", "guide.md#goose:2"):
        whole = f"## Goose\n\n{first}\n\n{second}\n\n## Duck\n\n{third}"
        assert content_of(call(guide, "fetch", id=id))["text"] == whole
    short = content_of(call(guide, "fetch", id="guide.md#goose:2", max_characters=200))
    assert short["text"] == second
    assert short["cut"].startswith("16 of ")
    assert len(content_of(call(guide, "fetch", id="guide.md", max_characters=200))["text"]) == 200


@pytest.mark.promise("FetchArguments.before", "FetchArguments.after")
def test_fetch_returns_a_whole_section_between_the_passages_around_it(guide: httpx.Client) -> None:
    first, second, third, _ = SECTIONS.values()
    goose = content_of(call(guide, "fetch", id="guide.md#goose", before=1, after=1))
    assert (goose["before"], goose["text"]) == ([], f"{first}\n\n{second}")
    assert goose["after"] == [{"id": "guide.md#duck:1", "text": third}]
    duck = content_of(call(guide, "fetch", id="guide.md#duck", before=1, max_characters=200))
    assert duck["before"] == [{"id": "guide.md#goose:2", "text": second}]
    assert (duck["text"], duck["cut"].partition(";")[0]) == (third[:200], f"200 of {len(third)} characters")


@pytest.mark.promise("FetchArguments.id")
def test_an_id_that_cannot_be_used_is_answered_with_one_that_can(guide: httpx.Client) -> None:
    found = call(guide, "fetch", id="guide.md#swan")
    similar = call(guide, OWN, id="guide.md#goose")["content"][0]["text"]
    assert "expected the id of a text, such as 'guide.md#goose:1' of this section" in similar
    error = "id: found 'guide.md#swan', which 'guide.md' does not have; fetch 'guide.md', or search for a section"
    assert (found["isError"], found["content"][0]["text"]) == (True, error)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        (OWN, {}, "text: missing; expected a text or an id, or a filter, sort or facets to list texts; add one"),
        (
            OWN,
            {"text": "a", "filter": {"year": 1}},
            "filter: expected the name of a column, $and, $or or $not, found 'year'; "
            "the columns are: id (string), chapter (number), places (list), told (date), true (boolean), who (string)",
        ),
        (
            OWN,
            {"query": "a"},
            "query: extra inputs are not permitted; "
            "expected text, num_results, mode, filter, id, offset, group_by, sort, facets",
        ),
        (OWN, {"text": "a", "rerank": {"a": 1}}, "rerank.a: extra inputs are not permitted"),
        ("search", {"text": "goose"}, "query: field required; text: extra inputs are not permitted; expected query"),
        ("fetch", {"id": "nothing"}, "id: found 'nothing', expected the id of a result; search for one"),
        ("fetch", {"id": "a", "after": 11}, "after: input should be less than or equal to 10, found 11"),
    ],
)
def test_wrong_arguments_are_told_to_the_language_model(
    client: httpx.Client, name: str, arguments: dict[str, Any], error: str
) -> None:
    found = call(client, name, **arguments)
    assert found == {"content": [{"type": "text", "text": error}], "isError": True}


def test_arguments_are_an_object_or_left_out(client: httpx.Client) -> None:
    assert result(ask(client, message("tools/call", {"name": OWN, "arguments": None})))["isError"] is True
    found = error(ask(client, message("tools/call", {"name": OWN, "arguments": [1]})), 200, -32602)
    assert found["message"] == "params.arguments: expected an object, found [1]"


def test_a_server_beside_others_offers_only_the_tool_of_its_corpus(client: httpx.Client) -> None:
    alone = "/mcp?tools=corpus"
    assert [tool["name"] for tool in tools_of(client, alone)] == [OWN]
    assert call(client, OWN, alone, text="goose")["isError"] is False
    reply = ask(client, message("tools/call", {"name": "search"}), path=alone)
    found = error(reply, 200, -32602)
    assert found["message"] == f"params.name: found 'search', expected one of ['{OWN}']"


def test_an_unknown_choice_of_tools_is_refused(client: httpx.Client) -> None:
    for method in ("initialize", "tools/list"):
        reply = ask(client, message(method), path="/mcp?tools=Corpus")
        found = error(reply, 200, -32602)
        assert found["message"] == "?tools: found 'Corpus', expected corpus; leave it out for all tools"


@pytest.mark.parametrize(
    ("title", "file", "name"),
    [
        ("Python documentation", "docs", "search_python_documentation"),
        ("", "my.v2 data.csv", "search_my_v2_data"),
        ("東京", "x", "search_texts"),
    ],
)
def test_the_tool_is_named_after_the_title_or_the_file(manifest: Manifest, title: str, file: str, name: str) -> None:
    assert tool_name(replace(manifest.corpus, title=title, source=file)) == name


@pytest.mark.parametrize("path", ["", "/mcp"])
def test_clients_learn_who_issues_tokens_from_the_api_and_never_from_a_caller(
    answer: Callable[[object], dict[str, Any]], client: httpx.Client, path: str
) -> None:
    url, evil = f"{OAUTH_METADATA}{path}", {"x-jwt-issuer": "https://evil.example", "host": "evil.example"}
    for maker, domain in ((http_api, "r3pmxmplak.execute-api.eu-central-1.amazonaws.com"), (rest_api, "api.example")):
        event = maker("GET", url, None)
        event["requestContext"]["domainName"] = domain
        event["headers"] = event["headers"] | evil
        event.pop("multiValueHeaders", None)
        assert answer(event)["statusCode"] == 404
        found = answer(event | {"stageVariables": {ISSUER_VARIABLE: "https://issuer.example.com"}})
        assert json.loads(found["body"]) == {
            "resource": f"https://{domain}{path}",
            "authorization_servers": ["https://issuer.example.com"],
            "bearer_methods_supported": ["header"],
        }
        headers = {name: str(value) for name, value in (found.get("headers") or {}).items()}
        headers |= {name: value for name, (value,) in (found.get("multiValueHeaders") or {}).items()}
        assert headers["cache-control"] == "public, max-age=300"
    for others in (load_balancer, function_url):
        assert answer(others("GET", url, None))["statusCode"] == 404
    assert client.get(url, headers=evil).status_code == 404


def test_the_reranker_of_a_corpus_is_offered_as_an_object(bundle: Path) -> None:
    loaded = load(bundle)
    manifest = replace(loaded.manifest, rerank=RerankInfo("tiny", None, "0" * 64, 64, 0.5, "none"))
    offered = input_schema(replace(loaded, manifest=manifest))["properties"]["rerank"]
    assert offered == {"type": "object", "description": SimilarRequest.model_fields["rerank"].description}
