"""Hybrid search orders the best of both searches by both scores, each as its own search gives it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.hybrid import FEW_RESULTS, FUSED_CANDIDATES, fuse
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.quantization import Embeddings, quantize
from semsearch.engine.semantic.index import Index
from semsearch.indexing.keywords import KeywordOptions
from tests.bundle_files import write_keywords
from tests.engine.test_quantization import unit_rows

ROWS, DIM = 1_000, 32


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Keywords, Embeddings]:
    """Random rows and texts, more of both than either search proposes; and a query."""
    random, rows = np.random.default_rng(7), unit_rows(ROWS + 1, DIM, seed=7)
    codes, scales = quantize(rows[:-1])
    texts = [" ".join(f"w{word}" for word in random.geometric(0.2, 8)) for _ in range(ROWS)]
    path = tmp_path_factory.mktemp("hybrid") / "keywords.safetensors"
    return Index(codes, scales), write_keywords(path, texts, KeywordOptions(stemming=None)), rows[-1]


def parts(
    index: Index, keywords: Keywords, query: Embeddings, text: str, candidates: int = FUSED_CANDIDATES
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the two scores of the rows that either search proposes, from the searches themselves."""
    semantic = {hit.row: hit.score for hit in index.search(query, ROWS)}
    keyword = {hit.row: hit.score for hit in keywords.match(text).best(ROWS)}
    proposed = {*list(semantic)[:candidates], *list(keyword)[:candidates]}
    return {row: semantic[row] for row in proposed}, {row: keyword.get(row, 0.0) for row in proposed}


@pytest.mark.parametrize("text", ["w3 w9", "w3 w9 zebra"])
@pytest.mark.parametrize("weight", [0.0, 0.3, 0.6, 1.0])
def test_the_score_is_the_weighted_sum_of_the_cosine_and_of_bm25_divided_by_what_is_attainable_or_its_best(
    world: tuple[Index, Keywords, Embeddings], weight: float, text: str
) -> None:
    index, keywords, query = world
    semantic, keyword = parts(index, keywords, query, text)
    most = [max(hit.score for hit in keywords.match(word).best(ROWS)) for word in ("w3", "w9")]
    unknown = 1.5 * np.log1p((ROWS + 0.5) / 0.5) if "zebra" in text else 0.0
    divisor = max(max(keyword.values()), 0.7 * (sum(most) + unknown))
    assert bool(divisor > max(keyword.values())) == ("zebra" in text)
    expected = {row: weight * semantic[row] + (1 - weight) * keyword[row] / divisor for row in semantic}
    hits = fuse(index, query, keywords.match(text), replace(keywords.info, fusion_weight=weight), 100).hits()
    assert len(hits) == 100
    np.testing.assert_allclose([hit.score for hit in hits], sorted(expected.values(), reverse=True)[:100], atol=1e-5)
    for hit in hits:
        assert hit.scores is not None
        assert hit.score == pytest.approx(expected[hit.row], abs=1e-5)
        assert hit.scores["semantic"] == pytest.approx(semantic[hit.row], abs=1e-6)
        assert hit.scores["keyword"] == pytest.approx(keyword[hit.row], abs=1e-6)


def test_many_hits_are_the_best_of_twice_as_many_candidates(world: tuple[Index, Keywords, Embeddings]) -> None:
    index, keywords, query = world
    text = "w1 w2 w3 w4"  # words of nearly all rows
    semantic, keyword = parts(index, keywords, query, text, 500)
    weight, divisor = keywords.info.fusion_weight, max(keyword.values())
    expected = [weight * semantic[row] + (1 - weight) * keyword[row] / divisor for row in semantic]
    hits = fuse(index, query, keywords.match(text), keywords.info, 250).hits()
    np.testing.assert_allclose([hit.score for hit in hits], sorted(expected, reverse=True)[:250], atol=1e-5)


@pytest.mark.parametrize("top_k", [FEW_RESULTS, 100])
def test_a_filter_without_the_best_row_keeps_the_scores(world: tuple[Index, Keywords, Embeddings], top_k: int) -> None:
    index, keywords, query = world
    matches = keywords.match("w12 w20")
    allowed = np.ones(ROWS, np.bool_)
    allowed[matches.best_rows(1)] = False
    scores = {hit.row: hit.score for hit in fuse(index, query, matches, keywords.info, ROWS).hits()}
    hits = fuse(index, query, matches, keywords.info, top_k, allowed).hits()
    assert [hit.score for hit in hits] == [scores[hit.row] for hit in hits]
    assert fuse(index, query, keywords.match("w12 w20", allowed), keywords.info, top_k).hits() == hits


@pytest.mark.parametrize("top_k", [1, FEW_RESULTS, 100])
def test_exact_finds_the_best_of_all_rows(world: tuple[Index, Keywords, Embeddings], top_k: int) -> None:
    """In the middle of both orders there are rows whose sum is among the best."""
    index, keywords, query = world
    cosines = -index.scores(query, np.arange(ROWS))  # opposite to the words: the best by one are the last by the other
    opposite = -query
    random = np.random.default_rng(9)
    allowed = random.random(ROWS) < 0.9
    found = []
    for number in range(20):
        matches = keywords.match(" ".join(f"w{word}" for word in random.integers(1, 12, 3)))
        mask = allowed if number % 2 else None
        everything = fuse(index, opposite, matches, keywords.info, ROWS, mask).hits()
        assert len(everything) == (ROWS if mask is None else np.count_nonzero(allowed))
        assert all(hit.scores is not None and hit.scores["semantic"] == cosines[hit.row] for hit in everything)
        assert fuse(index, opposite, matches, keywords.info, top_k, mask, exact=True).hits() == everything[:top_k]
        found.append(fuse(index, opposite, matches, keywords.info, top_k, mask).hits() == everything[:top_k])
    assert not all(found) or top_k < 100  # otherwise the test needs no exact search


@pytest.mark.parametrize("weight", [0.1, 0.6])  # few rows are enough for most queries and not for all
def test_ten_results_are_those_of_more_semantic_rows(world: tuple[Index, Keywords, Embeddings], weight: float) -> None:
    index, keywords, _ = world
    info = replace(keywords.info, fusion_weight=weight)
    for number, query in enumerate(unit_rows(60, DIM, seed=8)):
        matches = keywords.match(f"w{1 + number % 12} w{1 + number % 7}")
        many = fuse(index, query, matches, info, FEW_RESULTS + 1).hits()
        allowed = np.isin(np.arange(ROWS), [hit.row for hit in many[::2]]) | (np.arange(ROWS) % 2 == 0)
        filtered = fuse(index, query, matches, info, FEW_RESULTS + 1, allowed).hits()
        for top_k in (1, FEW_RESULTS):
            assert fuse(index, query, matches, info, top_k).hits() == many[:top_k]
            assert fuse(index, query, matches, info, top_k, allowed).hits() == filtered[:top_k]


def test_without_a_known_word_the_order_is_that_of_the_meaning(world: tuple[Index, Keywords, Embeddings]) -> None:
    index, keywords, query = world
    hits = fuse(index, query, keywords.match("zebra"), keywords.info, 10).hits()
    assert [hit.row for hit in hits] == [hit.row for hit in index.search(query, 10)]


def test_only_allowed_rows_with_the_quoted_words_are_found(world: tuple[Index, Keywords, Embeddings]) -> None:
    index, keywords, query = world
    allowed = np.arange(ROWS) % 7 == 0
    hits = fuse(index, query, keywords.match('"w9" w3', allowed), keywords.info, 100).hits()
    expected = {int(row) for row in keywords.rows_of("w9") if row % 7 == 0}
    assert {hit.row for hit in hits} == expected


def test_equal_texts_are_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    texts = ["goose", "ferry", "goose", "goose"]
    keywords = write_keywords(tmp_path / "keywords.safetensors", texts, KeywordOptions())
    vectors = np.eye(4, dtype=np.float32)
    index = Index(*quantize(vectors[[0, 1, 0, 0]]))
    hits = fuse(index, vectors[0], keywords.match("goose"), keywords.info, 4).hits()
    assert [hit.row for hit in hits] == [0, 2, 3, 1]
    assert len({hit.score for hit in hits[:3]}) == 1
