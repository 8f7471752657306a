"""POST /similar: the texts most like these words, compared with scoring every text in the test."""

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from semsearch.engine.bundle import INDEX, MANIFEST, Manifest, StagesInfo, describe_file, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.semantic.index import signs
from semsearch.indexing.corpus import Corpus
from semsearch.search.query import Query
from semsearch.search.request import SimilarRequest

WORDS = "The judge lost her yellow radio on the ferry"


def similar(client: httpx.Client, text: str, **more: object) -> dict[str, Any]:
    reply = client.post("/similar", json={"text": text, **more})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@pytest.mark.parametrize("row", [0, 7, 199])
def test_a_text_of_the_corpus_finds_itself_first_and_unescaped(client: httpx.Client, corpus: Corpus, row: int) -> None:
    reply = client.post("/similar", json={"text": corpus.texts[row]})
    first = reply.json()["results"][0]
    assert (first["index"], first["id"], first["text"]) == (row, corpus.ids[row], corpus.texts[row])
    assert f'"text":"{corpus.texts[row]}"' in reply.content.decode()  # row 7 has other scripts
    assert first["metadata"] == json.loads(corpus.metadata[row])
    assert first["score"] == pytest.approx(1, abs=1e-4)


def test_the_results_are_those_of_scoring_every_text(client: httpx.Client, embedder: Embedder, corpus: Corpus) -> None:
    embeddings = embedder.embed(embedder.tokenize([*corpus.texts, WORDS])).astype(np.float64)
    scores = embeddings[:-1] @ embeddings[-1]
    results = similar(client, WORDS, num_results=10, mode="semantic")["results"]
    # stored rows are 8 bit: each score may be off by the step of a value, so texts nearer than that may change places
    np.testing.assert_allclose([one["score"] for one in results], np.sort(scores)[::-1][:10], atol=0.01)
    np.testing.assert_allclose([one["score"] for one in results], [scores[one["index"]] for one in results], atol=0.01)


@pytest.mark.parametrize("num_results", [2.0, 100])
def test_as_many_results_come_as_are_asked_for(client: httpx.Client, num_results: float) -> None:
    results = similar(client, WORDS, num_results=num_results)["results"]
    assert len({result["index"] for result in results}) == len(results) == num_results


def test_the_words_get_the_models_prompt_for_queries(
    connect: Callable[..., httpx.Client], client: httpx.Client, bundle: Path, manifest: Manifest
) -> None:
    model = replace(manifest.model, prompts={"query": "the angry goose ", "document": "ferry ferry "})
    prompted = connect(embedder=Embedder.open(bundle, model))
    expected = similar(client, "the angry goose sold apples", mode="semantic")
    assert (
        similar(prompted, "sold apples", mode="semantic") == expected != similar(client, "sold apples", mode="semantic")
    )


@pytest.mark.promise("exact")
@pytest.mark.parametrize(
    ("mode", "query", "found"),
    [
        ("semantic", {"text": "music", "mode": "semantic"}, 1),
        ("hybrid", {"text": "music", "mode": "hybrid"}, 8),
        ("id", {"id": "story-007"}, 20),  # all rows are scanned, because the nearest one, the text itself, is excluded
    ],
)
def test_an_exact_search_returns_what_the_stages_would_miss(
    connect: Callable[..., httpx.Client], bundle_copy: Path, mode: str, query: dict[str, Any], found: int
) -> None:
    tensors = load_file(bundle_copy / INDEX)
    save_file(tensors | {"bits": np.ascontiguousarray(signs(tensors["codes"]).T)}, bundle_copy / INDEX)
    manifest = read_manifest(bundle_copy)
    assert manifest.corpus_or_none is not None
    narrow = replace(manifest.corpus_or_none, stages=StagesInfo(candidates=1, rescored=1))
    files = manifest.files | {INDEX: describe_file(bundle_copy / INDEX)}
    (bundle_copy / MANIFEST).write_text(replace(manifest, corpus_or_none=narrow, files=files).to_json())
    client = connect(bundle=bundle_copy)
    for exact, count in (({}, found), ({"exact": False}, found), ({"exact": True}, 20)):
        reply = client.post("/similar", json={"num_results": 20} | query | exact)
        assert len(reply.json()["results"]) == count


def test_a_reply_has_what_was_asked_for_and_nothing_else(client: httpx.Client) -> None:
    reply = similar(client, WORDS, group_by="who", facets=["places"], highlights=True, num_results=2)
    assert reply.keys() == {"results", "truncated", "facets", "total"}
    result = reply["results"][0]
    plain = {"index", "id", "score", "scores", "text", "metadata"}
    assert result.keys() == plain | {"highlights", "snippet", "group", "other_passages"}
    assert result["other_passages"][0].keys() == plain | {"highlights", "snippet"}
    assert reply["facets"] == {"places": [{"value": "sea", "count": 120}, {"value": "village", "count": 60}]}
    assert reply["total"] == 200


def test_the_fields_of_a_request_are_those_of_a_query() -> None:
    # `evaluate` alone sets the weight of the reranker, and MCP alone folds copies
    others = {"rerank_weight", "folds_copies"}
    assert SimilarRequest.model_fields.keys() == {field.name for field in fields(Query)} - others


def test_a_result_has_its_row_its_id_its_score_and_the_parts_that_were_asked_for(client: httpx.Client) -> None:
    for parts in ([], ["text"]):
        keys = {"index", "id", "score", "scores", *parts}
        expected = [{key: hit[key] for key in keys} for hit in similar(client, WORDS)["results"]]
        assert similar(client, WORDS, include=parts)["results"] == expected
