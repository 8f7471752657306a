"""Recall counts what exact search would have found."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from export.recall import LEAST_RECALL, measure_own_recall, measure_recall, neighbour_recall
from function.engine.index import EXHAUSTIVE_ROWS, Index, signs
from function.engine.quantization import dequantize, quantize
from tests.export.conftest import clustered_rows


class Forgetful:
    """An index that gives every hit but the best `missing`, and others instead."""

    def __init__(self, index: Index, missing: int) -> None:
        self.index, self.missing = index, missing

    def search(self, query: NDArray[np.float32], top_k: int) -> list[Any]:
        return self.index.search(query, top_k + self.missing)[self.missing :]


@pytest.mark.parametrize(("missing", "recall"), [(0, 1.0), (1, 0.9), (4, 0.6), (10, 0.0)])
def test_recall_is_the_share_of_the_best_ten_that_are_hits(missing: int, recall: float) -> None:
    rows = clustered_rows(500)
    codes, scales = quantize(rows)
    index: Any = Forgetful(Index(codes, scales, signs(codes)), missing)
    assert measure_recall(rows[:30], codes, scales, index) == pytest.approx(recall, abs=0.01)


def test_recall_equals_brute_force_where_the_signs_choose_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    from function.engine import index as index_module

    monkeypatch.setattr(index_module, "EXHAUSTIVE_ROWS", 100)
    monkeypatch.setattr(index_module, "CANDIDATES", 60)
    monkeypatch.setattr(index_module, "RESCORED", 20)
    monkeypatch.setattr("export.recall.ROWS_AT_ONCE", 300)  # so that exact search goes in several parts
    rows = clustered_rows(2_000)
    codes, scales = quantize(rows)
    index = Index(codes, scales, signs(codes))
    stored = dequantize(codes, scales).astype(np.float64)
    shares = []
    for query in rows[:50]:
        best = sorted(range(len(stored)), key=lambda row: -float(stored[row] @ query))[:10]
        shares.append(len({hit.row for hit in index.search(query, 10)} & set(best)) / 10)
    expected = sum(shares) / len(shares)
    assert 0.3 < expected < 0.99
    assert measure_recall(rows[:50], codes, scales, index) == pytest.approx(expected, abs=0.005)


def test_texts_that_stand_in_the_corpus_twice_count_whichever_is_found() -> None:
    rows = np.repeat(clustered_rows(20), 30, axis=0)
    codes, scales = quantize(rows)
    assert measure_recall(rows[::30], codes, scales, Index(codes, scales, signs(codes))) == 1


def test_recall_of_fewer_than_ten_rows_counts_all_of_them() -> None:
    rows = clustered_rows(4)
    codes, scales = quantize(rows)
    assert measure_recall(rows, codes, scales, Index(codes, scales, signs(codes))) == 1


def test_an_index_asked_for_its_own_rows_tells_whether_the_signs_choose_well() -> None:
    codes, scales = quantize(clustered_rows(EXHAUSTIVE_ROWS + 2_000))
    assert measure_own_recall(codes, scales, signs(codes)) >= LEAST_RECALL
    codes, scales = quantize(clustered_rows(EXHAUSTIVE_ROWS + 2_000, offset=0.3))
    assert measure_own_recall(codes, scales, signs(codes)) < 0.9
    assert measure_own_recall(codes, scales, None) >= LEAST_RECALL


def test_neighbour_recall_counts_a_text_as_good_as_the_last_of_the_best() -> None:
    exact = np.array([[0.9, 0.8, 0.8, 0.1], [0.4, 0.3, 0.2, 0.1]], np.float32)
    found = np.array([[0.9, 0.1, 0.8, 0.2], [0.4, 0.1, 0.2, 0.3]], np.float32)
    assert neighbour_recall(exact, found, 2) == 0.75  # 0 and 2 of 0, 1, 2; 0 and 3 of 0, 1
    assert neighbour_recall(exact, exact, 2) == 1
