"""Recall counts what exact search would have found."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from export.index.recall import QUERIES, SEARCHES_AT_ONCE, Recall, neighbour_recall, sample_spans, search_exactly
from function.engine.bundle import StagesInfo
from function.engine.quantization import dequantize, quantize
from function.engine.semantic.binary import signs
from function.engine.semantic.index import Index
from tests.export.conftest import clustered_rows


class Forgetful:
    """An index that gives every hit but the best `missing`, and others instead."""

    def __init__(self, index: Index, missing: int) -> None:
        self.codes = index.codes
        self.index, self.missing = index, missing

    def search(self, query: NDArray[np.float32], top_k: int) -> list[Any]:
        return self.index.search(query, top_k + self.missing)[self.missing :]


@pytest.mark.parametrize(("missing", "recall"), [(0, 1.0), (1, 0.9), (4, 0.6), (10, 0.0)])
def test_recall_is_the_share_of_the_best_ten_that_are_hits_and_of_the_first(missing: int, recall: float) -> None:
    rows = clustered_rows(500)
    codes, scales = quantize(rows)
    index: Any = Forgetful(Index(codes, scales), missing)
    found = search_exactly(rows[:30], codes, scales).recall_of(index)
    assert found.at_10 == pytest.approx(recall, abs=0.01)
    assert found.first == (missing == 0)


def test_recall_equals_brute_force_where_the_signs_choose_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("export.index.recall.ROWS_AT_ONCE", 300)  # so that exact search goes in several parts
    rows = clustered_rows(2_000)
    codes, scales = quantize(rows)
    index = Index(codes, scales, signs(codes).T, StagesInfo(candidates=60, rescored=20))
    stored = dequantize(codes, scales).astype(np.float64)
    shares = []
    for query in rows[:50]:
        best = sorted(range(len(stored)), key=lambda row: -float(stored[row] @ query))[:10]
        shares.append(len({hit.row for hit in index.search(query, 10)} & set(best)) / 10)
    expected = sum(shares) / len(shares)
    assert 0.3 < expected < 0.99
    assert search_exactly(rows[:50], codes, scales).recall_of(index).at_10 == pytest.approx(expected, abs=0.005)


def test_texts_that_stand_in_the_corpus_twice_count_whichever_is_found() -> None:
    rows = np.repeat(clustered_rows(20), 30, axis=0)
    codes, scales = quantize(rows)
    assert search_exactly(rows[::30], codes, scales).recall_of(Index(codes, scales)) == Recall(1, 1)


def test_recall_of_fewer_than_ten_rows_counts_all_of_them() -> None:
    rows = clustered_rows(4)
    codes, scales = quantize(rows)
    assert search_exactly(rows, codes, scales).recall_of(Index(codes, scales)) == Recall(1, 1)


def test_neighbour_recall_counts_a_text_as_good_as_the_last_of_the_best() -> None:
    exact = np.array([[0.9, 0.8, 0.8, 0.1], [0.4, 0.3, 0.2, 0.1]], np.float32)
    found = np.array([[0.9, 0.1, 0.8, 0.2], [0.4, 0.1, 0.2, 0.3]], np.float32)
    assert neighbour_recall(exact, found, 2) == 0.75  # 0 and 2 of 0, 1, 2; 0 and 3 of 0, 1
    assert neighbour_recall(exact, exact, 2) == 1


def test_pages_that_searches_read_are_released_all_along(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[Any] = []
    rows = clustered_rows(500)
    codes, scales = quantize(rows)
    exact = search_exactly(rows[:35], codes, scales)
    monkeypatch.setattr("export.index.recall.release", released.append)
    exact.recall_of(Index(codes, scales))
    assert len(released) == 1 + 34 // SEARCHES_AT_ONCE
    assert all(each is codes for each in released)


def test_spans_are_three_to_eight_words_of_texts_that_are_evenly_spread() -> None:
    texts = [" ".join(f"w{row}x{word}" for word in range(20)) for row in range(2_000)]
    spans = sample_spans(texts)
    assert len(spans) == QUERIES
    assert {span in texts[int(span[1:].split("x")[0])] for span in spans} == {True}
    assert {len(span.split()) for span in spans} == {3, 4, 5, 6, 7, 8}
    assert {int(span.split()[0].split("x")[1]) for span in spans} == set(range(18))  # at any place of a text
    sources = [int(span[1:].split("x")[0]) for span in spans]
    assert (sources[0], sources[-1]) == (0, 1_999)
    assert set(np.diff(sources)) == {8, 9}
    assert sample_spans(texts) == spans


@pytest.mark.parametrize("text", ["two words", "word", "?"])
def test_a_short_text_is_a_query_as_a_whole(text: str) -> None:
    assert sample_spans([text, "other"])[0] == text


def test_a_span_of_a_text_without_blanks_is_some_of_its_characters() -> None:
    assert 3 <= len(sample_spans(["東京タワーは港区にあります"])[0]) <= 8
