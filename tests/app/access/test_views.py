"""A key with a filter: every reply is that of a bundle with only the texts that the filter keeps.

Two apps answer the same random requests for all routes. One has the texts of two tenants and a key that is bound to the
first; the other has only the first tenant's texts. The replies are the same, and none has a word of the other tenant.
`python -m pytest tests/app/access/test_views.py --hypothesis-profile=thorough` sends 10,000 requests instead of 250.
"""

import asyncio
import json
import random
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest

from semsearch.app.access.binding import bound_filter
from semsearch.app.access.views import MOST_VIEWS, Views
from semsearch.app.app import App
from semsearch.app.http import HttpError
from semsearch.app.mcp.messages import OAUTH_METADATA
from semsearch.app.settings import ApiKey, Settings, SettingsError, hash_key
from semsearch.engine.bundle import VectorsInfo, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import LoadedBundle, load
from semsearch.indexing.bundles import write_manifest
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import KeywordOptions
from semsearch.search.executor import Executor, finish
from semsearch.search.making import make_search
from semsearch.search.query import Query
from tests.app_fixtures import answering
from tests.function.events.event_makers import http_api, lattice, lattice_1
from tests.rerankers import add_reranker
from tests.world import write_bundle

KEY = "tenant-a-key-0123456789"
FILTER = {"tenant": "a"}
BOUND = Settings(api_keys=(ApiKey("a", hash_key(KEY), FILTER),))
COLUMNS = {"tenant": "string", "path": "string", "kind": "string", "year": "number", "told": "date", "tags": "list"}
OWN = ["baker", "sailor", "judge", "driver", "opened", "wooden", "door", "silver", "snow", "letter", "sunrise", "night"]
OTHER = ["ferry", "goose", "violinist", "mayor", "spoon", "kitchen", "joke", "radio", "sister", "sisters", "silly"]
SHARED = ["the", "market", "river"]
ROUTES = [
    *("/similar", "/similar", "/mcp", "/mcp", "/passages/", "/documents/", "/info", "/", "/health"),
    *("/v1/models", "/v1/models/any", "/predict", "/v1/embeddings", "/embed", "/similarity", "/tokenize", "/rerank"),
    *("/v1/rerank", "/v2/rerank", OAUTH_METADATA, "/nothing"),
]
MODES = ["semantic", "keyword", "hybrid", None]


def make_texts(tenants: str) -> Corpus:
    """Return texts of five words, so that their average length, which scores depend on, is that of every tenant."""
    chosen = random.Random(5)
    texts, ids, metadata = [], [], []
    for row in range(180):
        tenant, name = ("b", "other") if row % 3 else ("a", "own")
        word = chosen.choice(SHARED)  # the other tenant has it twice, so its impact is higher there
        words = [*chosen.sample(OTHER, 3), word, word] if row % 3 else [*chosen.sample(OWN, 4), word]
        if tenant not in tenants:
            continue
        texts.append(" ".join(words).capitalize() + ".")
        ids.append(f"both-{(row + 1) // 3}" if row % 9 in (2, 3) else f"{name}-{row}")  # both tenants have both-1
        extra = {"kind": f"{name}-{row % 4}", "year": row, "told": f"2024-01-{1 + row % 28:02}", "tags": [name, "x"]}
        metadata.append(json.dumps({"tenant": tenant, "path": f"{name}/{row // 9}.md"} | extra))
    return Corpus(texts, ids, metadata, columns=COLUMNS)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tenants")
    options = KeywordOptions(synonyms=[["baker", "ferry", "river"], ["goose", "sister", "snow"], ["silver", "kitchen"]])
    return {
        tenants: add_reranker(write_bundle(folder / tenants, make_texts(tenants), options)) for tenants in ("a", "ab")
    }


class ThreadExecutor(Executor):
    """Works in threads that do not have the context variables of the request, as the server does."""

    async def run(self, work: Callable[[], Any], *, rows: int | None = None) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, work)


@pytest.fixture(scope="module")
def clients(bundles: dict[str, Path], connect: Callable[..., httpx.Client], embedder: Embedder) -> list[httpx.Client]:
    """Clients of the first tenant: of the app with both tenants, and of the one with its own texts alone."""
    closed, own = ThreadExecutor(embedder), bundles["a"]
    clients = [connect(bundle=bundles["ab"], settings=BOUND, executor=closed), connect(bundle=own)]
    for client in clients:
        client.headers["authorization"] = f"Bearer {KEY}"
        client.get("/health")
    return clients


def misspelled(chosen: random.Random, word: str) -> str:
    place = chosen.randrange(len(word))
    return word[:place] + word[place + 1 :] if chosen.random() < 0.3 else word


def random_request(chosen: random.Random) -> tuple[str, str, dict[str, Any] | None]:
    """Return the method, the path and the body of a request, also for what only the other tenant has."""
    pick = chosen.choice

    def words() -> str:
        text = " ".join(misspelled(chosen, pick(OWN + OTHER + SHARED)) for _ in range(chosen.randint(1, 4)))
        text = text if chosen.random() < 0.7 else f"{text} {pick(OWN + OTHER + SHARED)[:2]}"  # unfinished
        return f'"{text}" {pick(SHARED)}' if chosen.random() < 0.1 else text

    def id() -> str:
        return pick([f"both-{chosen.randrange(60)}", f"own-{chosen.randrange(180)}", f"other-{chosen.randrange(180)}"])

    def search() -> dict[str, Any]:
        fields: dict[str, Any] = {"text": words()}
        if chosen.random() < 0.15:
            fields = {"id": id()}
        elif chosen.random() < 0.15:
            fields = {"facets": ["tenant"], "sort": {"year": "desc"}}
        optional = {
            "mode": pick(MODES),
            "num_results": pick([1, 3, 50]),
            "offset": pick([0, 2, 20]),
            "prefix": True,
            "correct": False,
            "exact": True,
            "highlights": True,
            "fusion_weight": pick([0, 0.3, 1]),
            "min_score": pick([0.0, 0.2]),
            "rerank": {"candidates": pick([3, 20])},
            "group_by": pick(["path", "kind", "tenant"]),
            "group_size": pick([1, 5]),
            "facets": [*{pick([*COLUMNS]), "tags"}],
            "sort": {pick(["year", "told", "kind"]): pick(["asc", "desc"])},
            "filter": pick(
                [
                    {"tenant": pick(["a", "b"])},
                    {"year": {"$gte": chosen.randrange(180)}},
                    {"$or": [{"tenant": "b"}, {"tags": pick(["own", "other", "x"])}]},
                    {"id": {"$startsWith": pick(["o", "both"])}},
                    {"kind": {"$exists": False}},
                    {"wrong": 1},
                ]
            ),
            "include": pick([["text"], ["metadata"], []]),
        }
        return fields | {name: value for name, value in optional.items() if chosen.random() < 0.2}

    tools: list[tuple[str, dict[str, Any]]] = [
        ("search", {"query": words()}),
        ("fetch", {"id": id()}),
        ("list_documents", {"offset": pick([0, 2])}),
        ("search_stories", search()),
    ]
    name, arguments = pick(tools)
    method = pick(["tools/list", "tools/call", "tools/call", "initialize"])
    inputs = {"inputs": pick(OWN + OTHER)}  # the reply shows the pieces of other words
    pair = [words(), id()]
    documents = {"query": words(), "documents": pair, "return_documents": True}
    bodies: dict[str, dict[str, Any]] = {
        "/similar": search(),
        "/mcp": {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": name, "arguments": arguments}},
        "/predict": {"text": words()},
        "/v1/embeddings": {"input": [words()], "model": "any"},
        "/embed": inputs,
        "/tokenize": inputs,
        "/similarity": {"inputs": {"source_sentence": words(), "sentences": pair}},
        "/rerank": {"query": words(), "texts": pair, "return_text": True},
        "/v1/rerank": documents,
        "/v2/rerank": documents,
    }
    path = pick(ROUTES)
    if path in bodies:
        return "POST", path, bodies[path]
    if path == "/passages/":
        path += id()
    elif path == "/documents/":
        page = f"?offset={pick([0, 1])}&num_results={pick([1, 100])}"
        path += f"{pick(['own', 'other'])}/{chosen.randrange(22)}.md{page}"
    return "GET", path, None


def comparable(reply: httpx.Response) -> Any:
    """Return the status and the content of a reply, without what an app of another bundle has in any case."""
    if "html" in reply.headers["content-type"]:
        return reply.status_code, reply.text
    content = reply.json()
    if "cold_start_milliseconds" in content:
        index = {name: content["index"][name] for name in ("rows", "columns", "title")}
        return reply.status_code, index, content["model"]
    if "components" in content:
        content["components"].pop("securitySchemes", None)
        content.pop("security", None)
        for methods in content["paths"].values():
            for operation in methods.values():
                operation.pop("security", None)
                for status in ("401", "503"):
                    operation["responses"].pop(status, None)
    return reply.status_code, content


def assert_alike(found: Any, expected: Any, where: str) -> None:
    """Compare two replies. Impacts are stored in 8 bit, so scores differ by half a percent at most.

    A reranked hit's `score` is divided by the spread of its candidates' scores, which makes the difference larger; its
    `scores` are not.
    """
    if isinstance(expected, float) and isinstance(found, float):
        is_stretched = '"rerank": {' in where and where.endswith(".score")
        assert found == pytest.approx(expected, rel=5e-3, abs=5e-2 if is_stretched else 5e-3), where
    elif isinstance(expected, dict) and isinstance(found, dict):
        assert [*found] == [*expected], where
        for name, value in expected.items():
            assert_alike(found[name], value, f"{where}.{name}")
    elif isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        assert len(found) == len(expected), where
        has_scores = where.endswith("results") and expected and "score" in expected[0]
        if has_scores and [each["index"] for each in found] != [each["index"] for each in expected]:
            # texts whose scores differ by less than the rounding can change places
            found, expected = (sorted(each["score"] for each in several) for several in (found, expected))
        for number, value in enumerate(expected):
            assert_alike(found[number], value, f"{where}.{number}")
    elif isinstance(expected, str) and expected.startswith("{") and where.endswith("text"):
        assert_alike(json.loads(found), json.loads(expected), where)
    else:
        assert found == expected, where


def test_every_reply_is_that_of_a_bundle_with_only_the_tenants_texts(clients: list[httpx.Client]) -> None:
    chosen = random.Random(36)
    for number in range(5 * hypothesis.settings().max_examples):
        method, path, body = random_request(chosen) if number else ("GET", "/openapi.json", None)
        asked = f"{number}: {method} {path} {json.dumps(body)}"
        limited, alone = (client.request(method, path, json=body) for client in clients)
        sent = {*re.findall(r"[\w-]+", asked.lower())}
        text = "" if path == "/" else limited.text.lower()  # the page has words of its own, and must only be equal
        shown = {*re.findall(r"[\w-]+", text)}
        hidden = {word for word in shown - sent if word in OTHER or word.startswith("other-")} - {"other-passages"}
        assert hidden == set(), asked
        assert_alike(comparable(limited), comparable(alone), asked)


def test_a_tokens_claim_limits_as_a_keys_filter_does(bundles: dict[str, Path], make_app: Callable[..., App]) -> None:
    claims: Any = {"sub": "someone", "custom:tenant": "a"}
    settings = Settings(jwt_filter="custom:tenant=tenant")
    with answering(make_app(bundle=bundles["ab"], settings=settings)) as answer:
        event = http_api("POST", "/similar", json.dumps({"facets": ["tenant"]}))
        event["requestContext"]["authorizer"] = {"jwt": {"claims": claims}}
        assert json.loads(answer(event)["body"])["facets"] == {"tenant": [{"value": "a", "count": 60}]}
        claims["custom:tenant"] = "nobody"
        assert json.loads(answer(event)["body"])["total"] == 0
        del claims["custom:tenant"]
        assert answer(event)["statusCode"] == answer(http_api("GET", "/info", None))["statusCode"] == 403
        assert answer(http_api("GET", "/health", None))["statusCode"] == 200
        assert answer(http_api("GET", OAUTH_METADATA, None))["statusCode"] == 404  # needs no token


@pytest.mark.parametrize(
    ("value", "found"),
    [
        *((value, "is a list") for value in ("[a b]", "[a]", "[]", ["a"])),  # an HTTP API sends a list as text
        *((value, "has no claim") for value in ("", None, 5, {"a": 1})),
    ],
)
def test_a_claim_that_is_not_one_text_is_refused_instead_of_finding_nothing(
    bundles: dict[str, Path], make_app: Callable[..., App], value: object, found: str
) -> None:
    claim = "https://login.example.com/claims/tenant"
    with answering(make_app(bundle=bundles["ab"], settings=Settings(jwt_filter=f"{claim}=tenant"))) as answer:
        event = http_api("POST", "/similar", json.dumps({"text": "baker"}))
        event["requestContext"]["authorizer"] = {"jwt": {"claims": {claim: value}}}
        reply = answer(event)
        error = json.loads(reply["body"])["error"]
        assert (reply["statusCode"], claim in error, found in error) == (403, True, True)


@pytest.mark.parametrize("make", [lattice, lattice_1])
def test_filters_of_keys_and_tokens_hold_behind_vpc_lattice(
    bundles: dict[str, Path], make_app: Callable[..., App], make: Callable[..., dict[str, Any]]
) -> None:
    event = make("POST", "/similar", json.dumps({"facets": ["tenant"]}))
    with answering(make_app(bundle=bundles["ab"], settings=BOUND)) as answer:
        event["headers"]["authorization"] = f"Bearer {KEY}"
        assert json.loads(answer(event)["body"])["facets"] == {"tenant": [{"value": "a", "count": 60}]}
    with answering(make_app(bundle=bundles["ab"], settings=Settings(jwt_filter="tenant=tenant"))) as answer:
        assert answer(event)["statusCode"] == 403  # VPC Lattice verifies no tokens


def test_a_bundle_that_a_filter_does_not_fit_shows_nothing(
    bundle: Path, bundles: dict[str, Path], embedder: Embedder
) -> None:
    """A newer bundle from S3 can lack the column."""
    current = [load(bundles["ab"], embedder)]
    executor = Executor(embedder)
    views = Views(lambda: current[0], make_search(current[0], executor), executor)
    token = bound_filter.set(FILTER)
    view = views.current()
    assert isinstance(view, LoadedBundle)
    assert (view.rows, views.current() is view) == (60, True)
    current[0] = load(bundle, embedder)
    with pytest.raises(HttpError) as caught:
        views.current()
    assert (caught.value.status_code, "chapter" in caught.value.detail) == (503, False)
    assert caught.value.reason.startswith("a filter over tenant does not fit the columns id, ")
    bound_filter.set(None)
    assert views.current() is current[0]
    bound_filter.reset(token)


def test_views_stay_open_until_there_are_too_many_newer_ones(bundles: dict[str, Path], embedder: Embedder) -> None:
    whole, executor = load(bundles["a"], embedder), Executor(embedder)
    views = Views(lambda: whole, make_search(whole, executor), executor)

    def view(year: int) -> object:
        token = bound_filter.set({"year": {"$gte": year}})
        try:
            return views.current()
        finally:
            bound_filter.reset(token)

    first, *others = [view(year) for year in range(MOST_VIEWS)]
    assert view(0) is first
    view(MOST_VIEWS)
    assert view(1) is others[0]
    assert view(0) is not first


def test_a_switch_to_texts_in_s3_vectors_closes_the_view(
    bundles: dict[str, Path], embedder: Embedder, tmp_path: Path
) -> None:
    whole = load(bundles["ab"], embedder)
    current, executor = [whole], Executor(embedder)
    views = Views(lambda: current[0], make_search(whole, executor), executor)
    token = bound_filter.set(FILTER)
    assert finish(views.search(Query("the baker"), lambda phase: None)).results
    current[0] = load(remote_copy(bundles["ab"], tmp_path / "remote"), embedder)
    for use in (views.current, lambda: finish(views.search(Query("the baker"), lambda phase: None))):
        with pytest.raises(HttpError, match="its filter needs texts in the bundle, found them in S3 Vectors") as caught:
            use()
        assert caught.value.status_code == 503
    bound_filter.reset(token)


def test_texts_in_s3_vectors_are_closed_to_bound_keys_and_tokens_from_the_start(
    make_app: Callable[..., App], bundles: dict[str, Path], tmp_path: Path
) -> None:
    remote = remote_copy(bundles["ab"], tmp_path / "remote")
    with pytest.raises(SettingsError, match="JWT_FILTER: the texts are in S3 Vectors, expected in the bundle"):
        make_app(bundle=remote, settings=Settings(jwt_filter="tenant=tenant"))
    event = http_api("POST", "/similar", '{"text": "the baker"}')
    event["headers"]["authorization"] = f"Bearer {KEY}"
    with answering(make_app(bundle=remote, settings=BOUND)) as answer:
        assert answer(event)["statusCode"] == 503


def remote_copy(bundle: Path, folder: Path) -> Path:
    """Return a bundle whose manifest says that its texts are in S3 Vectors."""
    shutil.copytree(bundle, folder)
    manifest = read_manifest(folder)
    vectors = VectorsInfo("bucket", "index", "eu-central-1", "0" * 16)
    write_manifest(folder, replace(manifest, corpus_or_none=replace(manifest.corpus, vectors=vectors)))
    return folder


def test_code_outside_of_the_request_gets_no_bundle(bundles: dict[str, Path], embedder: Embedder) -> None:
    """A thread of an executor does not know the filter."""
    whole, executor = load(bundles["ab"], embedder), Executor(embedder)
    views = Views(lambda: whole, make_search(whole, executor), executor)
    token = bound_filter.set(FILTER)
    with ThreadPoolExecutor(1) as thread:
        assert isinstance(thread.submit(views.current).exception(), LookupError)
    bound_filter.reset(token)
