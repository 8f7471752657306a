"""Recall counts what exact search would have found."""

from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semsearch.engine.bundle import StagesInfo
from semsearch.engine.quantization import Codes, Scales, dequantize, quantize
from semsearch.engine.semantic.index import Index, signs
from semsearch.indexing.vectors.indexer import write_index_file
from semsearch.indexing.vectors.recall import (
    LEAST,
    QUERIES,
    RESCORED,
    ROWS,
    SPANS,
    ExactSearch,
    Recall,
    choose_stages,
    neighbour_recall,
    sample_rows,
    sample_spans,
    search_exactly,
    search_samples,
)
from tests.export_fixtures import clustered_rows


def test_recall_equals_brute_force_where_the_signs_choose_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semsearch.indexing.vectors.recall.SEARCHED_AT_ONCE", 300 * 48)  # several parts of 300 rows
    rows = clustered_rows(2_000)
    codes, scales = quantize(rows)
    index = Index(codes, scales, signs(codes).T, StagesInfo(candidates=60, rescored=20))
    stored = dequantize(codes, scales).astype(np.float64)
    queries = clustered_rows(50, seed=8)
    shares, firsts = [], []
    for query in queries:
        best = sorted(range(len(stored)), key=lambda row: -float(stored[row] @ query))[:10]
        found = [hit.row for hit in index.search(query, 10)]
        shares.append(len({*found} & {*best}) / 10)
        firsts.append(found[0] == best[0])
    recall = search_exactly(queries, codes, scales).recall_of(index)
    assert 0.3 < recall.at_10 < 0.99
    assert 0.3 < recall.first < 0.99
    assert recall.at_10 == pytest.approx(np.mean(shares), abs=0.005)
    assert recall.first == pytest.approx(np.mean(firsts), abs=0.025)


@pytest.mark.parametrize(("rows", "copies"), [(20, 30), (4, 1)], ids=["many copies", "fewer than ten rows"])
def test_recall_counts_copies_as_found_and_at_most_all_rows(rows: int, copies: int) -> None:
    embeddings = clustered_rows(rows)
    codes, scales = quantize(np.repeat(embeddings, copies, axis=0))
    assert search_exactly(embeddings, codes, scales).recall_of(Index(codes, scales)) == Recall(1, 1)


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


@pytest.fixture(scope="module")
def clustered() -> tuple[Codes, Scales]:
    return quantize(clustered_rows(10_000))


@pytest.fixture(scope="module")
def easy(clustered: tuple[Codes, Scales]) -> ExactSearch:
    """The exact search for rows of the corpus."""
    return search_exactly(sample_rows(*clustered)[::5], *clustered)


@pytest.fixture(scope="module")
def hard(clustered: tuple[Codes, Scales]) -> ExactSearch:
    """The exact search for queries that are hardly more like one row than like another."""
    queries = clustered_rows(10_000, seed=8)[:100]
    return search_exactly(queries, *clustered)


def test_a_recall_reaches_another_one_if_neither_share_is_less() -> None:
    recall = Recall(0.9, 0.8)
    assert recall.reaches(recall)
    assert recall.reaches(Recall(0.8, 0.7))
    assert not recall.reaches(Recall(0.91, 0.8))
    assert not recall.reaches(Recall(0.9, 0.81))


def test_without_a_model_a_row_is_no_neighbour_of_its_own_and_mixtures_are_queries() -> None:
    codes, scales = quantize(clustered_rows(7))
    unit = dequantize(codes, scales)
    found = search_samples(None, codes, scales)
    products = unit @ unit.T
    others = [np.sort(np.delete(products[row], row))[::-1] for row in range(7)]
    np.testing.assert_allclose(found["neighbours"].scores, others, atol=1e-6)
    sums = 2 * unit + unit[[4, 5, 6, 0, 1, 2, 3]]
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    np.testing.assert_allclose(found["mixtures"].scores, -np.sort(-(sums @ unit.T), axis=1), atol=1e-6)
    assert all(each.recall_of(Index(codes, scales)) == Recall(1, 1) for each in found.values())


def test_without_a_model_one_row_has_no_recall_and_two_have() -> None:
    codes, scales = quantize(clustered_rows(2))
    assert search_samples(None, codes[:1], scales[:1]) == {}
    assert [each.scores.shape for each in search_samples(None, codes, scales).values()] == [(2, 1), (2, 2)]


def test_the_narrowest_stages_are_chosen(clustered: tuple[Codes, Scales], easy: ExactSearch, tmp_path: Path) -> None:
    path = tmp_path / "index.safetensors"
    stages, found = write_index_file(path, *clustered, {ROWS: easy})
    assert stages is not None
    assert found == {ROWS: easy.recall_of(Index.open(path, stages))}
    assert found[ROWS].reaches(LEAST)
    narrower = max([width for width in RESCORED if width < stages.rescored], default=20)
    assert not easy.recall_of(Index.open(path, StagesInfo(stages.candidates, narrower))).reaches(LEAST)


def test_the_worse_of_two_kinds_of_queries_decides(
    clustered: tuple[Codes, Scales], easy: ExactSearch, hard: ExactSearch, tmp_path: Path
) -> None:
    path, least = tmp_path / "index.safetensors", Recall(0.8, 0.5)
    write_index_file(path, *clustered, {ROWS: easy})
    narrow = choose_stages(path, {ROWS: easy}, least)
    assert narrow is not None
    for both in ({ROWS: easy, SPANS: hard}, {ROWS: hard, SPANS: easy}):
        stages = choose_stages(path, both, least)
        assert stages is not None
        assert astuple(stages) > astuple(narrow)
        assert hard.recall_of(Index.open(path, stages)).reaches(least)


FEW = dict.fromkeys([500, 700, 1_000, 1_400, 2_000, 2_800, 4_000, 5_600], 0.9)


@pytest.mark.parametrize(
    ("at_10", "first", "rescored", "chosen"),
    [
        ({}, {}, {}, (500, 100)),
        # the first stage leaves some recall for the second one
        ({500: 0.994, 700: 0.995, 1_000: 0.9954, 1_400: 0.9955}, {}, {100: 0.9949, 140: 0.995}, (1_400, 140)),
        ({}, {500: 0.9949, 700: 0.995}, {}, (700, 100)),
        (FEW, {}, {}, (8_000, 100)),
        (FEW | {8_000: 0.9}, {}, {}, None),
        ({}, {}, dict.fromkeys([100, 140, 200, 280], 0.9), (500, 400)),
    ],
)
def test_stages_are_chosen_one_after_the_other(
    at_10: dict[int, float],
    first: dict[int, float],
    rescored: dict[int, float],
    chosen: tuple[int, int] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def recall_of(stages: StagesInfo) -> Recall:
        reached = min(at_10.get(stages.candidates, 1.0), rescored.get(stages.rescored, 1.0))
        return Recall(reached, first.get(stages.candidates, 1.0))

    monkeypatch.setattr("semsearch.indexing.vectors.recall.Index", SimpleNamespace(open=lambda path, stages: stages))
    exact: Any = {ROWS: SimpleNamespace(recall_of=recall_of), SPANS: SimpleNamespace(recall_of=lambda _: Recall(1, 1))}
    assert choose_stages(Path(), exact) == (chosen and StagesInfo(*chosen))


def test_the_share_of_near_texts_is_that_of_equal_scores() -> None:
    exact = np.array([[0.9, 0.8, 0.8, 0.1], [0.1, 0.2, 0.3, 0.4]], np.float32)
    found = np.array([[0.9, 0.1, 0.8, 0.2], [0.4, 0.3, 0.2, 0.1]], np.float32)
    assert neighbour_recall(exact, exact, 2) == 1
    assert neighbour_recall(exact, found, 2) == 0.5  # both of the first query, of which two are equally good
    assert neighbour_recall(exact, found[:, ::-1], 1) == 0.5


def test_rows_are_queries_of_unit_length_and_zeros_stay_zeros() -> None:
    codes = np.array([[3, 4], [0, 0], [0, -7]], np.int8)
    found = sample_rows(codes, np.array([1, 1, 0.5], np.float32))
    np.testing.assert_allclose(found, np.array([[0.6, 0.8], [0, 0], [0, -1]]), atol=1e-6)
    assert len(sample_rows(np.ones((251, 1), np.int8), np.ones(251, np.float32))) == QUERIES
