"""A program that states every argument: `make check` runs mypy over it, and a wrong name is an error of mypy there."""

import ast
import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch import Hits, IndexSummary, Search, index


def index_with_every_argument(rows: list[dict[str, object]], folder: Path) -> IndexSummary:
    return index(
        rows,
        folder,
        title="Coats",
        description="All of them.",
        text_column=["name", "about"],
        id_column="sku",
        column={"price": "number"},
        separator=";",
        decimal_comma=True,
        base_url="https://example.com/",
        anchors="mkdocs",
        exclude=("404.html",),
        ignore=True,
        follow_symlinks=False,
        drafts=False,
        strict=True,
        split=True,
        passage_tokens=100,
        overlap=10,
        keywords=True,
        stem="german",
        title_column="name",
        language_column="language",
        synonyms=[["sofa", "couch"]],
        fusion="convex",
        fusion_weight=0.5,
        boost={"price": {"log": True, "weight": 0.1}},
        model="MODEL",
        revision="main",
        pooling="mean",
        dimensions=64,
        query_prompt="query: ",
        document_prompt="passage: ",
        similarity="cosine",
        calibration=folder / "calibration.csv",
        calibration_column="text",
        cache=False,
        rerank="RERANKER",
        rerank_revision="main",
        rerank_weight=0.3,
        queries="table",
        questions=folder / "questions.jsonl",
        learn=True,
        update=folder,
        mode="upsert",
        ray="auto",
        device="cuda:1",
        dtype="float16",
        embeddings=folder / "embeddings.npy",
        progress=False,
    )


def search_with_every_argument(search: Search) -> Hits:
    return search.search(
        "coat",
        top_k=3,
        mode="hybrid",
        filter={"price": {"$lt": 100}},
        sort={"price": "asc"},
        facets=["brand"],
        facets_of="results",
        offset=10,
        min_score=0.1,
        group_by="brand",
        group_size=2,
        highlights=True,
        include=["text"],
        fusion_weight=0.5,
        prefix=True,
        correct=False,
        without=["red"],
        queries="model",
        boost={},
        rerank=20,
        exact=True,
        id="c-1",
    )


def wrong_names(search: Search, folder: Path) -> None:
    search.search("coat", topk=3)  # type: ignore[call-arg]
    search.similar_to("c-1", limt=3)  # type: ignore[call-arg]
    search.search("coat", mode="words")  # type: ignore[arg-type]
    index([], folder, titel="Coats")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("program", "function"), [(index_with_every_argument, index), (search_with_every_argument, Search.search)]
)
def test_the_program_states_every_argument(program: Callable[..., object], function: Callable[..., object]) -> None:
    (call,) = [node for node in ast.walk(ast.parse(inspect.getsource(program))) if isinstance(node, ast.Call)]
    positional = {"data", "out", "self", "text"}
    assert {each.arg for each in call.keywords} == inspect.signature(function).parameters.keys() - positional
