"""A search with rerank against its definition, written out over the same search without rerank, in each mode."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semsearch.engine.loading import load_bundle
from semsearch.indexing.corpus import Corpus
from semsearch.search.query import Query, SearchError
from semsearch.search.results import Found
from tests.rerankers import add_reranker, expected_logit
from tests.search.searching import find

TEXT = "the angry goose lost a silver key in the snow"
MODES = ("semantic", "keyword", "hybrid")
WEIGHT = 0.4
CANDIDATES = 20
EVERY = 100  # results of a search without rerank that has all that the tests look at

Search = Callable[[Query], Found]
Results = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def search(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Search:
    copy = shutil.copytree(bundle, tmp_path_factory.mktemp("reranked") / "bundle")
    reranked = load_bundle(add_reranker(copy, WEIGHT))
    return lambda query: find(reranked, query)


def stretch(values: list[float]) -> list[float]:
    return [(value - min(values)) / (max(values) - min(values)) for value in values]


def expected(plain: Results, text: str = TEXT) -> list[tuple[int, float]]:
    """Return the row and the blended score of each result of a search without rerank, in the new order."""
    best, behind = plain[:CANDIDATES], plain[CANDIDATES:]
    first = [result["score"] for result in best]
    logits = [expected_logit(text, result["text"]) for result in best]
    scores = [
        WEIGHT * logit + (1 - WEIGHT) * score for logit, score in zip(stretch(logits), stretch(first), strict=True)
    ]
    order = sorted(range(len(best)), key=lambda place: -scores[place])
    after = [(result["score"] - min(first)) / (max(first) - min(first)) for result in behind]
    ordered = [(best[place]["index"], scores[place]) for place in order]
    return ordered + [(result["index"], score) for result, score in zip(behind, after, strict=True)]


def assert_same(found: Results, wanted: list[tuple[int, float]]) -> None:
    assert [result["index"] for result in found] == [row for row, _ in wanted]
    np.testing.assert_allclose([result["score"] for result in found], [score for _, score in wanted], atol=1e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("condition", [None, {"chapter": {"$lt": 9}}])
def test_candidates_are_ordered_by_both_scores(search: Search, mode: str, condition: dict[str, Any] | None) -> None:
    plain = Query(TEXT, EVERY, mode, filter=condition)
    wanted = expected(search(plain).results)
    found = search(replace(plain, num_results=40, rerank=CANDIDATES))
    assert_same(found.results, wanted[:40])
    assert [result["index"] for result in found.results] != [result["index"] for result in search(plain).results[:40]]
    assert found.scores[0] <= 1
    assert found.scores == sorted(found.scores, reverse=True)


@pytest.mark.parametrize("mode", MODES)
def test_scores_have_those_of_the_mode_and_the_probability_of_the_reranker(search: Search, mode: str) -> None:
    plain = {result["index"]: result for result in search(Query(TEXT, EVERY, mode)).results}
    found = search(Query(TEXT, 30, mode, rerank=CANDIDATES)).results
    for place, result in enumerate(found):
        before = plain[result["index"]]
        scores = before.get("scores", {}) | {mode: before["score"]}
        if place < CANDIDATES:
            probability = 1 / (1 + np.exp(-expected_logit(TEXT, result["text"])))
            assert result["scores"].pop("rerank") == pytest.approx(probability, abs=1e-4)
        assert result["scores"] == scores


@pytest.mark.parametrize("mode", MODES)
def test_pages_continue_each_other(search: Search, mode: str) -> None:
    query = Query(TEXT, 7, mode, rerank=CANDIDATES)
    pages = [search(replace(query, offset=offset)).results for offset in (0, 7, 14, 21, 28)]
    assert [each for page in pages for each in page] == search(replace(query, num_results=35)).results


@pytest.mark.parametrize("mode", MODES)
def test_min_score_is_compared_with_the_score_of_the_mode(search: Search, mode: str) -> None:
    plain = search(Query(TEXT, EVERY, mode))
    least = plain.scores[11]
    kept = [result for result, score in zip(plain.results, plain.scores, strict=True) if score >= least]
    assert len(kept) < CANDIDATES
    found = search(Query(TEXT, 50, mode, rerank=CANDIDATES, min_score=least)).results
    assert_same(found, expected(kept))


def test_the_text_of_an_id_is_the_query(search: Search, corpus: Corpus) -> None:
    plain = search(Query(num_results=EVERY, id="story-042")).results
    found = search(Query(num_results=40, id="story-042", rerank=CANDIDATES)).results
    assert_same(found, expected(plain, corpus.texts[42])[:40])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query(TEXT, rerank=5, sort={"chapter": "asc"}), "sort: found with rerank, expected one of them"),
        (Query(filter={}, rerank=5), "rerank: found 5 without a text, expected a text or an id; add one of them"),
    ],
)
def test_fields_that_do_not_go_with_it_are_refused(search: Search, query: Query, message: str) -> None:
    with pytest.raises(SearchError, match=message):
        search(query)


def test_without_a_candidate_nothing_is_found(search: Search) -> None:
    assert search(Query("zebra", mode="keyword", rerank=5)).results == []


def test_a_bundle_without_a_reranker_refuses_it(bundle: Path) -> None:
    with pytest.raises(SearchError, match="rerank: found 5 candidates, but this bundle has no reranker; leave it out"):
        find(load_bundle(bundle), Query(TEXT, rerank=5))
