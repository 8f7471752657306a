"""Searches by an embedding that the caller brings along, with and without a text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from semsearch import Search
from semsearch.engine.loading import load, require_texts
from tests.promises.conftest import SHELF, ids_of

Mode = Literal["semantic", "keyword", "hybrid"]
TEXT, OTHER = SHELF[2]["text"], SHELF[4]["text"]


@pytest.mark.parametrize("scale", [1, 1e-300, 1e300, -1])
@pytest.mark.parametrize("mode", ["semantic"])
@pytest.mark.promise("vector")
def test_a_vector_of_any_length_finds_what_brute_force_finds(shelf: Search, mode: Mode, scale: float) -> None:
    unit = shelf.embed(OTHER)
    index = require_texts(load(Path(shelf._place))).index
    scores = np.sign(scale) * np.stack([index.embedding(row) for row in range(len(SHELF))]) @ unit
    hits = shelf.search(vector=unit.astype(np.float64) * scale, top_k=len(SHELF))
    assert [hit.index for hit in hits] == np.argsort(-scores, kind="stable").tolist()
    assert [hit.score for hit in hits] == pytest.approx(sorted(scores.tolist(), reverse=True), abs=1e-5)
    assert ids_of(shelf.search(vector=unit * np.sign(scale), mode=mode)) == ids_of(hits[:5])


@pytest.mark.parametrize("mode", ["hybrid"])
@pytest.mark.promise("vector")
def test_with_a_text_the_vector_is_the_meaning_and_the_text_the_words(shelf: Search, mode: Mode) -> None:
    vector = shelf.embed(OTHER)
    by_vector, by_words = (shelf.search(OTHER, mode="semantic"), shelf.search(TEXT, mode="keyword"))
    found = shelf.search(TEXT, vector=vector, top_k=len(SHELF))
    semantic = {hit.id: hit.score for hit in by_vector}
    keyword = {hit.id: hit.score for hit in by_words}
    parts = {hit.id: hit.scores or {} for hit in found}
    assert {id: parts[id]["semantic"] for id in semantic} == pytest.approx(semantic, abs=1e-6)
    assert {id: parts[id]["keyword"] for id in keyword} == pytest.approx(keyword, abs=1e-6)
    assert ids_of(shelf.search(TEXT, vector=vector, mode=mode, top_k=len(SHELF))) == ids_of(found)


@pytest.mark.promise("vector")
def test_a_vector_is_searched_by_meaning_with_pages_filters_groups_and_facets(shelf: Search) -> None:
    vector = shelf.embed(TEXT)
    hits = shelf.search(TEXT, mode="semantic", top_k=len(SHELF))
    for arguments in (
        {"top_k": 3, "offset": 2},
        {"filter": {"genre": "novel"}, "facets": ["lent"]},
        {"group_by": "genre", "group_size": 2},
        {"sort": {"copies": "desc"}, "include": []},
        {"min_score": hits[3].score},
        {"boost": {"lent": {"equals": True, "weight": 1}}},
        {"exact": True},
    ):
        expected = shelf.search(TEXT, mode="semantic", **arguments)
        found = shelf.search(vector=vector, **arguments)
        assert found == expected
        assert (found.facets, found.total) == (expected.facets, expected.total)


@pytest.mark.promise("vector")
def test_the_snippets_of_a_vector_are_the_beginnings_of_the_texts(shelf: Search) -> None:
    (hit,) = shelf.search(vector=shelf.embed(TEXT), top_k=1, highlights=True)
    assert hit.snippet is not None
    assert (hit.text, hit.snippet["start"], hit.highlights) == (TEXT, 0, [])


@pytest.mark.promise("vector")
def test_several_vectors_find_what_each_finds(shelf: Search) -> None:
    vectors = shelf.embed([TEXT, OTHER])
    assert shelf.search_many(vectors=vectors, top_k=2) == [shelf.search(vector=each, top_k=2) for each in vectors]
    both = shelf.search_many([OTHER, TEXT], vectors=vectors.tolist())
    assert both == [shelf.search(OTHER, vector=vectors[0]), shelf.search(TEXT, vector=vectors[1])]
    assert shelf.search_many(vectors=vectors[:0]) == []
    with pytest.raises(ValueError, match=r"^vectors: found 2 for 1 texts, expected one for each"):
        shelf.search_many([TEXT], vectors=vectors)
    with pytest.raises(TypeError, match="unexpected keyword argument 'vector'"):
        shelf.search_many([TEXT], vector=vectors[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "a"}, "id: found 'a' with a vector, expected one of them; "),
        ({"queries": "model"}, "queries: found 'model' with a vector, expected one of them; "),
        ({"mode": "keyword"}, "mode: found 'keyword' with a vector, expected 'semantic' or 'hybrid'; "),
        (
            {"mode": "keyword", "text": "goose"},
            "mode: found 'keyword' with a vector, expected 'semantic' or 'hybrid'; ",
        ),
        ({"mode": "hybrid"}, "mode: found 'hybrid' with a vector alone, expected 'semantic'; "),
        ({"without": ["goose"]}, "without: found "),
    ],
)
@pytest.mark.promise("vector")
def test_a_field_that_needs_a_text_or_another_query_is_refused(
    shelf: Search, arguments: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        shelf.search(**{"vector": shelf.embed(TEXT), **arguments})


@pytest.mark.promise("vector")
def test_a_reranker_needs_a_text_beside_a_vector(reranked: Search) -> None:
    vector = reranked.embed("goose")
    with pytest.raises(ValueError, match=r"^rerank: found 3 with a vector alone, expected none; "):
        reranked.search(vector=vector, rerank=3)
    assert reranked.search("goose", vector=vector, rerank=3) == reranked.search("goose", rerank=3)


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1.0] * 47, "found 47 numbers, expected 48; "),
        ([1.0] * 49, "found 49 numbers, expected 48; "),
        ([0.0] * 48, "found only zeros, "),
        ([], "list should have at least 1 item"),
        ([1.0] * 4_097, "list should have at most 4096 items"),
        ([float("nan")] * 48, "found .*, expected finite numbers in one dimension"),
        ([float("inf")] * 48, "found .*, expected finite numbers in one dimension"),
        ([[1.0] * 48], "found .*, expected finite numbers in one dimension"),
        ("goose", "found goose, expected finite numbers in one dimension"),
    ],
)
@pytest.mark.promise("vector")
def test_what_is_no_direction_of_the_index_is_refused(shelf: Search, vector: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^vector: {message}"):
        shelf.search(vector=vector)


@pytest.mark.parametrize("kind", [list, tuple, np.float32, np.float16, "tensor"])
@pytest.mark.promise("vector")
def test_a_vector_can_be_what_models_return(shelf: Search, kind: Any) -> None:
    unit = shelf.embed(TEXT)
    vector: Any = kind(unit.tolist()) if kind in (list, tuple) else unit if kind == "tensor" else unit.astype(kind)
    if kind == "tensor":
        vector = pytest.importorskip("torch").from_numpy(unit)
    assert ids_of(shelf.search(vector=vector, top_k=1)) == ["c"]
