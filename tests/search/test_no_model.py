"""Searches over a bundle without a model, whose callers bring the embeddings of their queries along."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semsearch import Search
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import NoModelError, load, load_bundle, require_embedder
from semsearch.search.query import Query, SearchError
from tests.no_model import ELSEWHERE
from tests.search.searching import find

GOOSE = "an angry goose"
NO_MODEL = f"^model: this bundle has none, its embeddings are made by {ELSEWHERE}; make them there$"


@pytest.fixture(scope="module")
def stories(no_model: Path) -> Search:
    return Search(no_model)


@pytest.fixture(scope="module")
def vector(embedder: Embedder) -> Any:
    """The embedding of GOOSE, as its owner makes it elsewhere."""
    return embedder.embed(embedder.tokenize([GOOSE], role="query"))[0]


@pytest.fixture(scope="module")
def with_model(bundle: Path) -> Search:
    """The bundle that the one without a model was made of."""
    return Search(bundle)


OF_ALL_MODES: list[dict[str, Any]] = [
    {},
    {"top_k": 3, "offset": 2},
    {"filter": {"chapter": {"$lt": 12}}},
    {"facets": ["who", "chapter"], "filter": {"true": True}},
    {"facets": ["who"], "facets_of": "results"},
    {"sort": {"chapter": "desc"}},
    {"group_by": "who", "group_size": 2},
    {"boost": {"chapter": {"log": True, "weight": 0.3}}},
    {"highlights": True, "include": ["source"]},
    {"exact": True},
    {"min_score": 0.2},
]


@pytest.mark.parametrize("arguments", OF_ALL_MODES, ids=str)
def test_each_search_finds_the_same_as_with_a_model(
    stories: Search, with_model: Search, vector: Any, arguments: dict[str, Any]
) -> None:
    pairs = [
        (stories.search(GOOSE, **arguments), with_model.search(GOOSE, mode="keyword", **arguments)),
        (stories.search(vector=vector, **arguments), with_model.search(vector=vector, **arguments)),
        (stories.search(GOOSE, vector=vector, **arguments), with_model.search(GOOSE, vector=vector, **arguments)),
        (stories.search(id="story-150", **arguments), with_model.search(id="story-150", **arguments)),
    ]
    for own, expected in pairs:
        assert own == expected
        assert (own.facets, own.total) == (expected.facets, expected.total)
        assert len(own) > 0


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_more_like_this_works_in_each_mode(stories: Search, with_model: Search, mode: Any) -> None:
    assert stories.search(id="story-150", mode=mode) == with_model.search(id="story-150", mode=mode)


def test_texts_are_listed_and_words_left_out(stories: Search, with_model: Search, vector: Any) -> None:
    listed: dict[str, Any] = {"filter": {"chapter": 5}, "sort": {"told": "desc"}}
    assert stories.search(**listed) == with_model.search(**listed)
    either: list[dict[str, Any]] = [{}, {"vector": vector}]
    for arguments in either:
        hits = stories.search(GOOSE, without=["goose"], **arguments)
        assert hits
        assert not [hit for hit in hits if "goose" in hit.text]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            Query(GOOSE, mode="semantic"),
            "mode: found 'semantic' with a text and no vector, but this bundle has no model",
        ),
        (Query(GOOSE, mode="hybrid"), "mode: found 'hybrid' with a text and no vector, but this bundle has no model"),
        (Query(GOOSE, queries="model"), "queries: found 'model', but this bundle has no model; leave it out"),
        (Query(filter={"chapter": 1}, queries="model"), "queries: found 'model', but this bundle has no model"),
        (
            Query(GOOSE, rerank=1),
            "rerank: found 1 candidates, but an index without a model has no reranker; leave it out",
        ),
        (
            Query(GOOSE, min_score="floor"),
            "min_score: found 'floor', but an index without a model has no measured floor",
        ),
        (Query(id="story-001", min_score="floor"), "min_score: found 'floor', but an index without a model has no"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_needs_a_model_is_refused_with_the_reason(no_model: Path, query: Query, message: str) -> None:
    with pytest.raises(SearchError) as raised:
        find(load(no_model), query)
    assert str(raised.value).startswith(message)


def test_a_text_alone_without_words_is_refused_with_what_to_send(no_model_no_words: Path, vector: Any) -> None:
    search = Search(no_model_no_words)
    with pytest.raises(
        ValueError, match=r"^text: found without a vector, .* neither a model nor keywords; send its embe"
    ):
        search.search(GOOSE)
    with pytest.raises(ValueError, match=r"^mode: found 'keyword', but this bundle has no keywords"):
        search.search(GOOSE, mode="keyword")
    assert search.search(GOOSE, vector=vector, highlights=True)[0].index == search.search(vector=vector)[0].index
    assert search.search(id="story-001")
    assert search.search(filter={"chapter": 1})


def test_a_misspelled_word_is_replaced_if_the_other_words_find_next_to_nothing(stories: Search) -> None:
    hits = stories.search("gooze")
    assert hits.corrected == {"gooze": ["goose"]}
    assert all("goose" in hit.text for hit in hits)
    # "the" and "river" find many texts, so the other word can be a correct one
    assert stories.search("planted along the gooze river").corrected == {}
    assert stories.search("gooze", correct=False) == []


def test_many_searches_are_those_of_one(stories: Search, vector: Any) -> None:
    texts = [GOOSE, "the baker"]
    assert stories.search_many(texts) == [stories.search(text) for text in texts]
    found = stories.search_many(texts, vectors=[vector, vector], top_k=3)
    assert found == [stories.search(text, vector=vector, top_k=3) for text in texts]
    assert stories.search_many(vectors=[vector]) == [stories.search(vector=vector)]
    with pytest.raises(ValueError, match=r"^mode: found 'semantic' with a text and no vector"):
        stories.search_many(texts, mode="semantic")


def test_texts_cannot_be_embedded_here(stories: Search, no_model: Path) -> None:
    for texts in ("goose", ["goose", "baker"]):
        with pytest.raises(ValueError, match=NO_MODEL):
            stories.embed(texts)
    with pytest.raises(NoModelError, match=NO_MODEL):
        require_embedder(load_bundle(no_model))


def test_a_search_says_what_the_bundle_holds(stories: Search, with_model: Search) -> None:
    assert repr(ELSEWHERE) in repr(stories)
    assert len(stories) == len(with_model)
    assert stories.columns == with_model.columns
    assert stories.get("story-150") == with_model.get("story-150")


def test_the_index_is_warmed_up_with_a_stored_embedding(no_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from semsearch.engine.semantic.index import Index

    searched = []
    search = Index.search

    def watched(self: Index, embedding: Any, *arguments: Any, **named: Any) -> Any:
        searched.append(embedding)
        return search(self, embedding, *arguments, **named)

    monkeypatch.setattr(Index, "search", watched)
    loaded = load_bundle(no_model)
    (embedding,) = searched
    np.testing.assert_array_equal(embedding, loaded.index.embedding(0))
    assert loaded.embedder is None
    loaded.open_all()
