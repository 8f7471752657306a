"""The routes of rerank, against scores that are computed without the graph: order, forms of the replies, and limits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from semsearch.app.settings import Settings
from tests.rerankers import MOST_TOKENS, expected_logit

QUERY = "an angry goose"
TEXTS = [
    "The ferry painted the door",
    "an angry goose won first prize",
    "the goose",
    "An old sailor painted the mayor's kitchen door bright yellow",
    "an angry goose lost an angry goose",
]
LONG = "goose " * MOST_TOKENS
ROUTES = {"/rerank": "texts", "/v1/rerank": "documents", "/v2/rerank": "documents"}
DOCUMENTS = ["/v1/rerank", "/v2/rerank"]


@pytest.fixture(scope="module")
def reranking(connect: Callable[..., httpx.Client], rerank_bundle: Path) -> httpx.Client:
    return connect(bundle=rerank_bundle)


def post(client: httpx.Client, path: str, texts: Any = TEXTS, **body: object) -> Any:
    reply = client.post(path, json={"query": QUERY, ROUTES[path]: texts} | body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def error(client: httpx.Client, path: str, status: int, texts: Any = TEXTS, **body: object) -> str:
    """Return the message of an error, in the form of the route's API."""
    reply = client.post(path, json={"query": QUERY, ROUTES[path]: texts} | body)
    fields = {"/rerank": ["error", "error_type"], "/v1/rerank": ["detail"], "/v2/rerank": ["message"]}[path]
    assert (reply.status_code, list(reply.json())) == (status, fields), reply.text
    return str(reply.json()[fields[0]])


def ranks(client: httpx.Client, path: str, texts: Any = TEXTS, **body: object) -> list[tuple[int, float]]:
    """Return the place and the score of each text, as any of the routes returns them."""
    found = post(client, path, texts, **body)
    results = found if path == "/rerank" else found["results"]
    return [(each["index"], each["score" if path == "/rerank" else "relevance_score"]) for each in results]


def expected(texts: list[str] = TEXTS) -> list[tuple[int, float]]:
    logits = [(place, expected_logit(QUERY, text)) for place, text in enumerate(texts)]
    return sorted(logits, key=lambda each: -each[1])


def check_ranks(found: list[tuple[int, float]], wanted: list[tuple[int, float]]) -> None:
    assert [place for place, _ in found] == [place for place, _ in wanted]
    np.testing.assert_allclose([score for _, score in found], [score for _, score in wanted], rtol=1e-4)


@pytest.mark.promise(
    "RerankRequest.query", "RerankRequest.texts", "DocumentsRequest.query", "DocumentsRequest.documents"
)
@pytest.mark.parametrize("path", ROUTES)
def test_texts_come_best_first_with_the_sigmoid_of_their_logits(reranking: httpx.Client, path: str) -> None:
    wanted = [(place, 1 / (1 + np.exp(-logit))) for place, logit in expected()]
    assert [place for place, _ in wanted] != list(range(len(TEXTS)))
    check_ranks(ranks(reranking, path), wanted)


@pytest.mark.promise("RerankRequest.raw_scores")
def test_raw_scores_are_the_logits(reranking: httpx.Client) -> None:
    check_ranks(ranks(reranking, "/rerank", raw_scores=True), expected())


@pytest.mark.promise("RerankRequest.return_text")
def test_tei_returns_texts_on_request(reranking: httpx.Client) -> None:
    assert {tuple(each) for each in post(reranking, "/rerank")} == {("index", "score")}
    assert [(each["index"], each["text"]) for each in post(reranking, "/rerank", return_text=True)] == [
        (place, TEXTS[place]) for place, _ in expected()
    ]


@pytest.mark.promise("DocumentsRequest.return_documents")
def test_jina_returns_documents_unless_told_otherwise_and_cohere_on_request(reranking: httpx.Client) -> None:
    for path, default in zip(DOCUMENTS, (True, False), strict=True):
        for wanted in (None, True, False):
            results = post(reranking, path, return_documents=wanted)["results"]
            texts = [each.get("document", {}).get("text") for each in results]
            has_texts = default if wanted is None else wanted
            assert texts == [TEXTS[place] if has_texts else None for place, _ in expected()]


@pytest.mark.promise("DocumentsRequest.top_n")
@pytest.mark.parametrize("path", DOCUMENTS)
def test_top_n_limits_the_results(reranking: httpx.Client, path: str) -> None:
    every = ranks(reranking, path)
    for top_n, count in ((1, 1), (2.0, 2), (5, 5), (1_000_000, 5), (None, 5)):
        assert ranks(reranking, path, top_n=top_n) == every[:count]


@pytest.mark.promise("DocumentsRequest.documents", "TextObject.text")
@pytest.mark.parametrize("path", DOCUMENTS)
def test_documents_may_be_objects(reranking: httpx.Client, path: str) -> None:
    objects = [{"text": text, "id": place} if place % 2 else text for place, text in enumerate(TEXTS)]
    assert post(reranking, path, objects) == post(reranking, path, TEXTS)
    assert error(reranking, path, 422, [{"title": "goose"}]) == "documents.0.text: field required"


@pytest.mark.promise("DocumentsRequest.model")
def test_the_replies_count_the_tokens_and_jinas_names_the_model_that_ran(reranking: httpx.Client) -> None:
    jina = post(reranking, "/v1/rerank", ["goose", "the goose"], model="jina-reranker-v2")
    assert (jina["model"], jina["object"]) == ("tests/shared-words", "list")
    tokens = (1 + 3 + 1 + 1 + 1) + (1 + 3 + 1 + 2 + 1)  # [CLS] and two [SEP]; the query is read with each
    assert jina["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens, "truncated_texts": 0}
    cohere = post(reranking, "/v2/rerank", ["goose", "the goose"], model="rerank-v3.5")
    assert cohere["meta"] == {"api_version": {"version": "2"}, "tokens": {"input_tokens": tokens}}


def test_a_long_text_is_truncated_and_cohere_and_jina_say_so(reranking: httpx.Client) -> None:
    room = MOST_TOKENS - 3 - 3
    for path in ROUTES:
        cut, fitting = ranks(reranking, path, [LONG, "goose " * room])
        assert cut[1] == fitting[1]
    assert post(reranking, "/v2/rerank", ["goose", LONG, "the", LONG])["meta"]["warnings"] == [
        "documents 1, 3: there were too many tokens, so the model did not read the end of the document or of the query"
    ]
    assert post(reranking, "/v1/rerank", ["goose", LONG, "the", LONG])["usage"]["truncated_texts"] == 2


@pytest.mark.promise("RerankRequest.truncate", "RerankRequest.truncation_direction")
def test_truncate_false_refuses_a_long_text(reranking: httpx.Client) -> None:
    assert error(reranking, "/rerank", 422, ["goose", LONG], truncate=False) == (
        "texts.1: more tokens than the model reads, with truncate false, expected at most 40 with those of the query; "
        "shorten the text, or let it be truncated"
    )
    assert len(post(reranking, "/rerank", ["goose", "goose " * 34], truncate=False)) == 2
    assert "truncation_direction" in error(reranking, "/rerank", 422, truncation_direction="left")


@pytest.mark.promise("DocumentsRequest.max_tokens_per_doc")
@pytest.mark.parametrize("path", DOCUMENTS)
def test_max_tokens_per_doc_limits_the_tokens_of_each_document(reranking: httpx.Client, path: str) -> None:
    texts = [LONG, "the goose won first prize", "goose"]
    found = ranks(reranking, path, texts, max_tokens_per_doc=2)
    assert found == ranks(reranking, path, ["goose goose", "the goose", "goose"])
    for most in (4096, MOST_TOKENS, None):  # the model reads no more
        assert ranks(reranking, path, texts, max_tokens_per_doc=most) == ranks(reranking, path, texts)


def test_without_a_reranker_the_reply_is_424(client: httpx.Client) -> None:
    for path in ROUTES:
        assert (
            error(client, path, 424) == "rerank: this bundle has no reranker; index the texts again with --rerank MODEL"
        )


@pytest.mark.promise(
    "RerankRequest.query", "RerankRequest.texts", "DocumentsRequest.query", "DocumentsRequest.documents"
)
def test_empty_fields_are_a_400_for_tei_and_a_422_for_the_others(reranking: httpx.Client) -> None:
    for path, field in ROUTES.items():
        empty = 400 if path == "/rerank" else 422
        assert error(reranking, path, empty, []).startswith(f"{field}: list should have at least 1 item")
        assert error(reranking, path, empty, query="").startswith("query: string should have at least 1 character")
        assert error(reranking, path, 422, "goose").startswith(f"{field}: ")
        assert len(ranks(reranking, path, [" ", "goose"], query=" ", unknown=5)) == 2  # clients send blank texts too


def test_texts_characters_and_tokens_are_limited(connect: Callable[..., httpx.Client], rerank_bundle: Path) -> None:
    client = connect(bundle=rerank_bundle, settings=Settings(max_texts=4, max_tokens=30))
    for path, field in ROUTES.items():
        assert len(ranks(client, path, ["goose"] * 4)) == 4
        assert error(client, path, 422, ["goose"] * 5) == f"{field}: 5 texts, at most 4; send fewer"
        assert error(client, path, 413, ["goose"] * 4, query="q" * 150) == (
            f"{field}: 620 characters, because the query counts with each text, at most 480; "
            "send fewer or shorter texts"
        )
        assert "32 tokens in 4 texts, at most 30" in error(client, path, 413, ["goose goose"] * 4)
