"""An index of many rows in lists, against brute force over the same rows."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from export.index.index_file import write_index_file
from export.index.lists import AXES, principal_axes
from function.engine.bundle import StagesInfo
from function.engine.quantization import Embeddings, dequantize, quantize
from function.engine.ranking import find_groups, find_page
from function.engine.semantic.index import FEW_HITS, MOST_HITS, ROWS_PER_HIT, Hit, Index
from function.engine.semantic.ivf import Entries, Lists
from function.engine.tensors import TensorsError
from tests.column_files import column_of

ROWS, DIM = 20_000, 96


@pytest.fixture(scope="module")
def embeddings() -> Embeddings:
    """Return rows in 300 clusters, the last ones equal to the first."""
    chance = np.random.default_rng(seed=7)
    values = chance.standard_normal((300, DIM))[chance.integers(300, size=ROWS)]
    values += 0.9 * chance.standard_normal((ROWS, DIM))
    rows = np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)
    rows[-50:] = rows[:50]
    return rows


@pytest.fixture(scope="module")
def path(embeddings: Embeddings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists") / "index.safetensors"


@pytest.fixture(scope="module")
def index(embeddings: Embeddings, path: Path) -> Index:
    """Return the index that the export makes of these rows if lists are worth it from 10,000 rows on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("export.index.index_file.LEAST_ROWS_OF_LISTS", 10_000)
        stages, recall = write_index_file(path, *quantize(embeddings))
    assert stages is not None
    assert 1 < stages.probed < stages.lists
    assert recall >= 0.99
    return Index.open(path, stages)


@pytest.fixture(scope="module")
def stored(embeddings: Embeddings) -> NDArray[np.float64]:
    """Return the rows as the index stores them."""
    return dequantize(*quantize(embeddings)).astype(np.float64)


@pytest.fixture(scope="module")
def queries(embeddings: Embeddings) -> Embeddings:
    """Return twenty queries between two rows each."""
    values = embeddings[1_000:1_020] + embeddings[2_000:2_020] / 2
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


def mean_found(index: Index, stored: NDArray[np.float64], allowed: NDArray[np.bool_]) -> float:
    """Return how many of the ten best allowed rows a search finds on average; it must find ten allowed rows."""
    found = []
    for query in stored[::200].astype(np.float32):
        hits = index.search(query, 10, allowed)
        assert len({hit.row for hit in hits if allowed[hit.row]}) == 10
        best = np.sort(stored[allowed] @ query)[-10]
        found.append(sum(hit.score >= best - 2e-6 for hit in hits))
    return float(np.mean(found))


def test_nearly_all_of_the_ten_best_rows_are_found(index: Index, stored: NDArray[np.float64]) -> None:
    rows = stored[::100].astype(np.float32)
    least = np.sort(stored @ rows.T, axis=0)[-10] - 1e-6
    found = [sum(hit.score >= low for hit in index.search(row, 10)) for row, low in zip(rows, least, strict=True)]
    assert np.mean(found) >= 9.8


def test_hits_are_rows_of_the_corpus_with_their_scores(
    index: Index, stored: NDArray[np.float64], queries: Embeddings
) -> None:
    for query in queries:
        hits = index.search(query, 10)
        rows = np.array([hit.row for hit in hits])
        np.testing.assert_allclose([hit.score for hit in hits], stored[rows] @ query, atol=2e-6)
        assert index.scores(query, rows).tolist() == [hit.score for hit in hits]


def test_an_exact_search_finds_what_brute_force_finds(
    index: Index, stored: NDArray[np.float64], queries: Embeddings
) -> None:
    for query in queries:
        best = -np.sort(-(stored @ query))
        for top_k in (1, 10, 100):
            hits = index.search(query, top_k, exact=True)
            np.testing.assert_allclose([hit.score for hit in hits], best[:top_k], atol=2e-6)


def test_equal_rows_come_in_the_order_of_the_corpus(index: Index, embeddings: Embeddings) -> None:
    for row in range(50):
        for exact in (False, True):
            first, second, *_ = index.search(embeddings[row], 5, exact=exact)
            assert (first.row, second.row) == (row, ROWS - 50 + row)
            assert first.score == second.score


def test_a_search_for_fewer_returns_the_first_of_a_search_for_more(index: Index, queries: Embeddings) -> None:
    for query in queries:
        most = index.search(query, FEW_HITS)
        for top_k in range(1, FEW_HITS):
            assert index.search(query, top_k) == most[:top_k]


def test_a_search_for_more_hits_than_its_lists_hold_takes_more_lists(index: Index, queries: Embeddings) -> None:
    for top_k in (MOST_HITS, ROWS // 2, ROWS):
        hits = index.search(queries[0], top_k)
        assert len({hit.row for hit in hits}) == top_k


def test_all_rows_are_found_even_if_a_search_reads_one_list_at_first(
    index: Index, path: Path, queries: Embeddings
) -> None:
    narrow = Index.open(path, StagesInfo(len(load_file(path)["centroids"]), 1, 500, 100))
    for top_k in (MOST_HITS, ROWS // 4, ROWS // 2):
        allowed = np.arange(ROWS) % 2 == 0
        for mask in (None, allowed):
            assert len({hit.row for hit in narrow.search(queries[0], top_k, mask)}) == top_k


def test_a_search_for_many_hits_reads_more_lists_and_several_rows_for_each_hit(
    index: Index, path: Path, queries: Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, nearest = len(load_file(path)["centroids"]), Lists.nearest
    asked: list[tuple[int, int]] = []

    def count(of: Lists, query: Embeddings, count: int) -> Entries:
        entries = nearest(of, query, count)
        asked.append((count, len(entries)))
        return entries

    monkeypatch.setattr(Lists, "nearest", count)
    Index.open(path, StagesInfo(lists, 1, 500, 100)).search(queries[0], 10)
    assert asked[-1][1] >= 2 * ROWS_PER_HIT * FEW_HITS
    asked.clear()
    Index.open(path, StagesInfo(lists, lists // 10, 500, 100)).search(queries[0], 4 * MOST_HITS)
    assert asked[0][0] == 4 * (lists // 10)


def test_of_more_equal_rows_than_candidates_the_first_ones_are_found(tmp_path: Path, embeddings: Embeddings) -> None:
    rows = embeddings[:12_000].copy()
    equal = np.arange(len(rows)) % 4 == 1
    rows[equal] = rows[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("export.index.index_file.LEAST_ROWS_OF_LISTS", 10_000)
        stages, _ = write_index_file(tmp_path / "index.safetensors", *quantize(rows))
    assert stages is not None
    assert stages.candidates < np.count_nonzero(equal)
    hits = Index.open(tmp_path / "index.safetensors", stages).search(rows[1], FEW_HITS)
    assert [hit.row for hit in hits] == np.flatnonzero(equal)[:FEW_HITS].tolist()


def test_signs_of_few_allowed_rows_are_compared_if_they_are_too_many_to_score(
    index: Index, stored: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("function.engine.semantic.index.EXHAUSTIVE_ROWS", 100)
    monkeypatch.setattr(Lists, "nearest", None)  # an error if it were called
    assert mean_found(index, stored, np.arange(ROWS) % 20 == 0) >= 9


@given(share=st.sampled_from([0.1, 0.01, 0.0001]), seed=st.integers(0, 1 << 16), top_k=st.integers(1, 100))
def test_hits_among_few_allowed_rows_are_those_of_brute_force(
    index: Index, stored: NDArray[np.float64], share: float, seed: int, top_k: int
) -> None:
    allowed = np.random.default_rng(seed).random(ROWS) < share
    query = stored[seed % ROWS].astype(np.float32)
    hits = index.search(query, top_k, allowed)
    assert allowed[[hit.row for hit in hits]].all()
    best = -np.sort(-(stored[allowed] @ query))[:top_k]
    np.testing.assert_allclose([hit.score for hit in hits], best, atol=2e-6)


@pytest.mark.parametrize("share", [0.9, 0.5])
def test_nearly_all_of_the_best_among_many_allowed_rows_are_found(
    index: Index, stored: NDArray[np.float64], share: float
) -> None:
    assert mean_found(index, stored, np.random.default_rng(seed=5).random(ROWS) < share) >= 9.7


def test_rows_far_from_the_query_are_found_if_only_they_are_allowed(
    index: Index, stored: NDArray[np.float64], queries: Embeddings
) -> None:
    found = []
    for query in queries:
        scores = stored @ query
        allowed = scores < np.median(scores)
        hits = index.search(query, 10, allowed)
        assert len({hit.row for hit in hits if allowed[hit.row]}) == 10
        found.append(min(hit.score for hit in hits) - np.sort(scores[allowed])[-10])
    assert np.mean(found) >= -0.01


def test_a_file_with_lists_is_refused_if_the_manifest_states_none(index: Index, path: Path) -> None:
    with pytest.raises(TensorsError, match="run `python -m export` again"):
        Index.open(path, None)


@pytest.mark.parametrize(
    "name",
    [
        "axes",
        "centroids",
        "centroids.scales",
        "lists.offsets",
        "lists.rows",
        "lists.places",
        "entries.places",
        "places.entries",
    ],
)
def test_a_file_without_a_part_of_its_lists_is_refused(index: Index, path: Path, name: str, tmp_path: Path) -> None:
    tensors = load_file(path)
    stages = StagesInfo(len(tensors["centroids"]), 1, 100, 100)
    assert len(Index.open(path, stages)) == ROWS
    del tensors[name]
    save_file(tensors, tmp_path / "index.safetensors")
    with pytest.raises(TensorsError, match="run `python -m export` again"):
        Index.open(tmp_path / "index.safetensors", stages)


def test_an_older_file_with_each_row_in_one_list_is_searched_too(
    index: Index, stored: NDArray[np.float64], path: Path, tmp_path: Path
) -> None:
    tensors = load_file(path)
    numbers = np.repeat(np.arange(len(tensors["centroids"])), np.diff(tensors["lists.offsets"].astype(int)))
    del tensors["entries.places"]
    entries = tensors.pop("places.entries")
    tensors["bits"] = tensors["bits"][entries]
    counts = np.bincount(numbers[entries], minlength=len(tensors["centroids"]))
    tensors["lists.offsets"] = np.cumsum([0, *counts], dtype=np.uint32)
    save_file(tensors, tmp_path / "index.safetensors")
    lists = len(tensors["centroids"])
    older = Index.open(tmp_path / "index.safetensors", StagesInfo(lists, lists // 2, 4_000, 400))
    rows = stored[::400].astype(np.float32)
    allowed = np.arange(ROWS) % 2 == 0
    for row in rows:
        for mask in (None, allowed):
            assert older.search(row, 10, mask, exact=True) == index.search(row, 10, mask, exact=True)
    least = np.sort(stored @ rows.T, axis=0)[-10] - 1e-6
    found = [sum(hit.score >= low for hit in older.search(row, 10)) for row, low in zip(rows, least, strict=True)]
    assert np.mean(found) >= 9.8


def test_lists_are_compared_along_the_axes_in_which_centroids_differ_most() -> None:
    rng = np.random.default_rng(seed=9)
    centroids = rng.standard_normal((500, 300)).astype(np.float32)
    centroids[:, 10] *= 9
    axes = principal_axes(centroids)
    assert axes.shape == (300, AXES)
    np.testing.assert_allclose(axes.T @ axes, np.eye(AXES), atol=1e-5)
    assert abs(axes[10, 0]) > 0.99


def test_a_search_without_a_filter_reads_the_lists_once(
    index: Index, stored: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    nearest, asked = Lists.nearest, []

    def count(lists: Lists, query: Embeddings, count: int) -> Entries:
        asked.append(count)
        return nearest(lists, query, count)

    monkeypatch.setattr(Lists, "nearest", count)
    for query in stored[::200].astype(np.float32):
        index.search(query, 10)
    assert len(asked) == len(stored[::200])
    assert len(set(asked)) == 1


def test_pages_and_groups_of_an_approximate_search_continue_each_other(index: Index, queries: Embeddings) -> None:
    column = column_of([f"document {row % 900}" for row in range(ROWS)], "string")

    def find(count: int, mask: NDArray[np.bool_] | None) -> list[Hit]:
        return index.search(queries[0], count, mask)

    rows = [hit.row for offset in range(0, 400, 40) for hit in find_page(find, offset, 40)]
    assert rows[:40] == [hit.row for hit in find(40, None)]
    assert len(set(rows)) == len(rows) == 400
    exact = {hit.row for hit in index.search(queries[0], 400, exact=True)}
    assert len(exact.intersection(rows)) > 0.8 * len(exact)
    groups = [group for offset in range(0, 100, 20) for group in find_groups(find, column, None, offset, 20, 3)]
    assert len({group.value for group in groups}) == len(groups) == 100
    assert {f"document {hit.row % 900}" for hit in groups[7].hits} == {groups[7].value}
    assert [len({hit.row for hit in group.hits}) for group in groups] == [3] * 100
