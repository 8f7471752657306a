"""The index against brute force: every row scored in float64, sorted."""

from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from semsearch.engine.bundle import StagesInfo
from semsearch.engine.hits import MOST_HITS, SAMPLE, Hit, largest
from semsearch.engine.quantization import Embeddings, dequantize, quantize
from semsearch.engine.semantic.index import (
    COUNTED_AT_ONCE,
    EXHAUSTIVE_ROWS,
    FEW_HITS,
    Index,
    count_differing,
    signs,
    unpack_signs,
)
from semsearch.engine.tensors import AnyArray
from tests.engine.test_quantization import unit_rows
from tests.page_cache import cached_pages, forget
from tests.project import needs_linux

STAGES = StagesInfo(candidates=2_000, rescored=300)
AWKWARD_DIM = 37  # a multiple of nothing that a CPU's instructions like


def index_of(embeddings: Embeddings) -> Index:
    """Return an index of these rows, as the export makes it."""
    codes, scales = quantize(embeddings)
    if len(codes) <= EXHAUSTIVE_ROWS:
        return Index(codes, scales)
    return Index(codes, scales, signs(codes).T, STAGES)


def brute_force(embeddings: Embeddings, query: Embeddings, top_k: int) -> list[Hit]:
    """Score every stored row in float64 and sort: no candidates, no rescoring."""
    scores = dequantize(*quantize(embeddings)).astype(np.float64) @ query.astype(np.float64)
    hits = (Hit(row, float(score)) for row, score in enumerate(scores))
    return sorted(hits, key=lambda hit: (-hit.score, hit.row))[:top_k]


def test_a_rough_search_misses_only_some_of_the_last_rows() -> None:
    embeddings = unit_rows(EXHAUSTIVE_ROWS + 1_001, 64, seed=5)
    index, query = index_of(embeddings[:-1]), embeddings[-1]
    rough, usual = (index.best(query, 200, rough=rough)[0].tolist() for rough in (True, False))
    assert len(rough) == 200
    assert [hit.row for hit in index.search(query, 200)] == usual
    assert rough[:FEW_HITS] == usual[:FEW_HITS]
    assert 150 < len({*rough} & {*usual}) < 200


@pytest.mark.parametrize("rows", [5_000, 12_000], ids=["every row's codes are scanned", "signs are scanned first"])
def test_recall_at_10_of_clustered_embeddings_is_99_of_100(rows: int) -> None:
    rng = np.random.default_rng(seed=13)
    centres = rng.standard_normal((50, 384))
    # 1.5: in tighter clusters the neighbours are nearer to each other than 8 bits can tell, whatever the search does
    near = centres[rng.integers(0, 50, rows + 200)] + 1.5 * rng.standard_normal((rows + 200, 384))
    embeddings = np.asarray(near / np.linalg.norm(near, axis=1, keepdims=True), np.float32)
    corpus, queries = embeddings[:rows], embeddings[rows:]
    index = index_of(corpus)
    exact = np.argsort(-(queries @ corpus.T), axis=1)[:, :10]
    found = [{hit.row for hit in index.search(query, 10)} for query in queries]
    assert np.mean([len(a & set(b)) / 10 for a, b in zip(found, exact.tolist(), strict=True)]) >= 0.99


def test_an_empty_index_has_no_hits_and_fewer_than_one_result_is_refused() -> None:
    (query,) = unit_rows(1, 8, seed=17)
    assert index_of(np.empty((0, 8), np.float32)).search(query, 3) == []
    index = index_of(unit_rows(3, 8, seed=18))
    assert len(index.search(query, 1)) == 1
    with pytest.raises(ValueError, match=r"^top_k 0 and query \(8,\); expected at least 1 and \(8,\)$"):
        index.search(query, 0)
    with pytest.raises(ValueError, match=r"^top_k 1 and query \(7,\); expected at least 1 and \(8,\)$"):
        index.search(query[1:], 1)
    with pytest.raises(ValueError, match=r"^allowed \(2,\); expected \(3,\)$"):
        index.search(query, 1, np.ones(2, np.bool_))


@given(seed=st.integers(0, 1 << 16), dim=st.integers(1, 50))
def test_scores_fall_and_stay_within_1(seed: int, dim: int) -> None:
    embeddings = unit_rows(60, dim, seed)
    embeddings[1] = -embeddings[0]
    scores = [hit.score for hit in index_of(embeddings).search(embeddings[0], 60)]
    assert scores == sorted(scores, reverse=True)
    assert -1 <= scores[-1] <= scores[0] <= 1


@pytest.mark.parametrize("rows", [100, EXHAUSTIVE_ROWS, EXHAUSTIVE_ROWS + 1_000])
def test_equal_rows_come_in_the_order_of_the_corpus(rows: int) -> None:
    index = index_of(np.repeat(unit_rows(1, 384, seed=1), rows, axis=0))
    for top_k in (1, 2, 3, 100):
        hits = index.search(unit_rows(1, 384, seed=2)[0], top_k)
        assert [hit.row for hit in hits] == list(range(top_k))
        assert len({hit.score for hit in hits}) == 1


@pytest.mark.parametrize("rows", [150, 2_000, EXHAUSTIVE_ROWS + 1_000])
@given(distinct=st.integers(1, 300), dim=st.sampled_from([3, AWKWARD_DIM]), seed=st.integers(0, 1 << 16))
@settings(max_examples=max(8, settings().max_examples // 10))  # each searches 17 times
def test_a_search_for_fewer_returns_the_first_of_one_for_more(rows: int, distinct: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    index = index_of(unit_rows(distinct, dim, seed)[rng.integers(0, distinct, rows)])
    query = unit_rows(1, dim, seed + 1)[0]
    most = index.search(query, FEW_HITS)
    assert most == sorted(most, key=lambda hit: (-hit.score, hit.row))
    for top_k in range(1, FEW_HITS):
        assert index.search(query, top_k) == most[:top_k]


def test_more_hits_than_the_stages_keep_for_few_are_all_found() -> None:
    embeddings = unit_rows(EXHAUSTIVE_ROWS + 1_001, 64, seed=6)
    top_k = STAGES.candidates + 500
    assert len(index_of(embeddings[:-1]).search(embeddings[-1], top_k)) == top_k


def test_an_index_without_signs_searches_all_rows(tmp_path: Path) -> None:
    embeddings = unit_rows(EXHAUSTIVE_ROWS + 1_000, 16, seed=13)
    codes, scales = quantize(embeddings)
    save_file({"codes": codes, "scales": scales}, tmp_path / "index.safetensors")
    index = Index.open(tmp_path / "index.safetensors", None)
    for query in unit_rows(5, 16, seed=14):
        assert [hit.row for hit in index.search(query, 10)] == [hit.row for hit in brute_force(embeddings, query, 10)]


@needs_linux("page cache")
def test_a_first_search_reads_the_signs_and_of_the_codes_only_those_of_few_rows(tmp_path: Path) -> None:
    codes, scales = quantize(unit_rows(60_000, 128, seed=23))
    path = tmp_path / "index.safetensors"
    save_file({"codes": codes, "scales": scales, "bits": np.ascontiguousarray(signs(codes).T)}, path)
    forget(path)
    if cached_pages(path).any():
        pytest.skip("this file system keeps its files in memory")
    index = Index.open(path, StagesInfo(candidates=500, rescored=100))
    assert len(index.search(unit_rows(1, 128, seed=24)[0], 10)) == 10
    pages = cached_pages(path)
    least = signs(codes).nbytes // PAGESIZE
    assert least <= np.count_nonzero(pages) <= least + 2 * 100 + 20 < len(pages) / 3


@given(
    rows=st.integers(1, 2_000),
    distinct=st.integers(1, 2_000),
    dim=st.sampled_from([1, AWKWARD_DIM, 100]),
    share=st.sampled_from([1, 0.5, 0.1, 0.01, 0.0001]),
    top_k=st.integers(1, MOST_HITS),
    seed=st.integers(0, 1 << 16),
)
def test_hits_are_those_of_brute_force(rows: int, distinct: int, dim: int, share: float, top_k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    embeddings = unit_rows(distinct, dim, seed)[rng.integers(0, distinct, rows)]
    allowed = rng.random(rows) < share
    query = unit_rows(1, dim, seed + 1)[0]
    hits = index_of(embeddings).search(query, top_k, None if share == 1 else allowed)
    every = brute_force(embeddings, query, rows)
    expected = [hit for hit in every if allowed[hit.row]][:top_k]
    assert len(hits) == min(top_k, np.count_nonzero(allowed))
    assert allowed[[hit.row for hit in hits]].all()
    np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in expected], atol=1e-5)
    scores = {hit.row: hit.score for hit in every}
    np.testing.assert_allclose([hit.score for hit in hits], [scores[hit.row] for hit in hits], atol=1e-5)


@pytest.mark.parametrize("excluded", [100, 2_000])
def test_without_the_rows_most_like_the_query_the_next_ones_are_found(excluded: int) -> None:
    rng = np.random.default_rng(34)
    # the signs of such rows tell them apart
    values = rng.standard_normal((20_005, 12)) @ rng.standard_normal((12, 384))
    embeddings = np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)
    codes, scales = quantize(embeddings[5:])
    index = Index(codes, scales, signs(codes).T, StagesInfo(candidates=200, rescored=100))
    for query in embeddings[:5]:
        assert index.search(query, 10) == index.search(query, 10, exact=True)
        allowed = np.ones(len(index), np.bool_)
        allowed[index.best(query, excluded, exact=True)[0]] = False
        assert index.search(query, 10, allowed) == index.search(query, 10, allowed, exact=True)


def test_of_few_allowed_rows_among_very_many_the_signs_are_compared() -> None:
    rng = np.random.default_rng(35)
    rows = 16 * (EXHAUSTIVE_ROWS + 1)
    values = (rng.standard_normal((rows + 5, 6)) @ rng.standard_normal((6, 32))).astype(np.float32)
    embeddings = values / np.linalg.norm(values, axis=1, keepdims=True)
    codes, scales = quantize(embeddings[5:])
    index = Index(codes, scales, signs(codes).T, StagesInfo(candidates=400, rescored=100))
    allowed = np.arange(rows) % 16 == 3
    for query in embeddings[:5]:
        assert index.search(query, 10, allowed) == index.search(query, 10, allowed, exact=True)


def test_eight_signs_are_a_byte_the_first_one_its_highest_bit() -> None:
    values = np.array([[0.5, -0.5, 0.0, 1e-9, -1e-9, 2.0, -3.0, 4.0, 5.0, -6.0]], np.float32)
    assert signs(values).view(np.uint8).tolist() == [[0b10010101, 0b10000000, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("dim", [1, 37, 64, 384, 1024])
def test_differing_signs_are_counted(dim: int) -> None:
    values = np.random.default_rng(seed=dim).standard_normal((300, dim))
    values[8] = -values[7]
    expected = ((values > 0) != (values[7] > 0)).sum(axis=1)
    words = signs(values)
    assert words.shape == (300, -(-dim // 64))
    np.testing.assert_array_equal(count_differing(words[7:8], words.T), expected)
    np.testing.assert_array_equal(unpack_signs(words, dim), values > 0)
    np.testing.assert_array_equal(unpack_signs(words.T[:, 3:5].T, dim), values[3:5] > 0)


def test_more_rows_are_counted_than_are_compared_at_once() -> None:
    words = np.random.default_rng(seed=3).integers(0, 1 << 63, (2, COUNTED_AT_ONCE + 5), np.uint64)
    expected = np.bitwise_count(words ^ words[:, -1:]).sum(axis=0)
    np.testing.assert_array_equal(count_differing(words[:, -1:].T, words), expected)


def first_of_sorted(values: AnyArray, count: int) -> list[int]:
    """Return the places of the largest values, of equal ones the first."""
    return sorted(np.lexsort((np.arange(len(values)), -values.astype(np.float64)))[:count].tolist())


@given(
    rows=st.integers(1, 20_000),
    share=st.floats(0, 1),
    levels=st.sampled_from([1, 2, 40, 100_000]),
    dtype=st.sampled_from([np.uint16, np.float32]),
    seed=st.integers(0, 1 << 16),
)
def test_the_largest_values_are_those_of_sorting(
    rows: int, share: float, levels: int, dtype: type[np.generic], seed: int
) -> None:
    values = np.random.default_rng(seed).integers(0, levels, rows).astype(dtype)
    count = max(1, int(share * rows))
    assert largest(values, count).tolist() == first_of_sorted(values, count)


@pytest.mark.parametrize("count", [10, 500])
def test_values_that_the_sample_misses_are_found(count: int) -> None:
    values = np.zeros(SAMPLE * 20, np.uint16)
    values[::20] = 7  # all that is sampled
    values[1 : 20 * count : 20] = 9
    assert largest(values, count).tolist() == first_of_sorted(values, count)
    falling = np.arange(SAMPLE * 20, 0, -1).astype(np.float32)
    falling[::20] += 1e6  # nearly nothing passes a threshold from these
    assert largest(falling, SAMPLE + count).tolist() == first_of_sorted(falling, SAMPLE + count)
