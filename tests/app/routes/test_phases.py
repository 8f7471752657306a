"""The phases of a request that Server-Timing names, on each route that does more than one thing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

SENTENCES = {"source_sentence": "goose", "sentences": ["ferry"]}
RERANKED = ["parse", "rerank", "reply", "total"]
EMBEDDED = ["parse", "embed", "reply", "total"]


@pytest.fixture(scope="module")
def reranking(connect: Callable[..., httpx.Client], rerank_bundle: Path) -> httpx.Client:
    client = connect(bundle=rerank_bundle)
    client.get("/health")
    return client


@pytest.mark.parametrize(
    ("path", "body", "phases"),
    [
        ("/embed", {"inputs": "goose"}, EMBEDDED),
        ("/similarity", {"inputs": SENTENCES}, EMBEDDED),
        ("/tokenize", {"inputs": "goose"}, ["parse", "tokenize", "reply", "total"]),
        ("/v1/embeddings", {"input": "goose", "encoding_format": "base64"}, EMBEDDED),
        ("/rerank", {"query": "goose", "texts": ["ferry"]}, RERANKED),
        ("/v1/rerank", {"query": "goose", "documents": ["ferry"]}, RERANKED),
        ("/v2/rerank", {"query": "goose", "documents": ["ferry"]}, RERANKED),
        ("/similar", {"text": "goose", "mode": "semantic"}, ["parse", "embed", "search", "reply", "total"]),
        ("/similar", {"id": "story-001"}, ["parse", "search", "reply", "total"]),
    ],
)
def test_each_phase_is_told(reranking: httpx.Client, path: str, body: dict[str, Any], phases: list[str]) -> None:
    timing = reranking.post(path, json=body).headers["server-timing"]
    assert [phase.partition(";")[0] for phase in timing.split(", ")] == phases
