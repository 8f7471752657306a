"""Searches in processes of their own, compared in turn, and exact search, which says how many they find."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bench.answering import timed
from bench.contest import Entry, Result, Searcher, compare, running
from bench.exact import Exact
from bench.former_search import scan_all, scan_signs, sign_bits
from bench.nearest_peers import fastest
from bench.scale_bundles import write_stored_rows
from bench.searches import EXACT, FORMER, HYBRID, KEYWORD, SCAN, SEMANTIC
from export.corpus import Corpus
from export.index.recall import TOP_K, neighbour_recall
from function.engine.hybrid import fuse
from function.engine.loading import load_bundle
from function.engine.quantization import Embeddings, dequantize, quantize

QUERIES = 12


def random_rows(count: int, dim: int = 64) -> Embeddings:
    rows = np.random.default_rng(5).standard_normal((count, dim)).astype(np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.fixture(scope="module")
def queries(bundle: Path, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queries") / "queries.npy"
    embedder = load_bundle(bundle).embedder
    np.save(path, embedder.embed(embedder.tokenize(corpus.texts[:QUERIES], role="query")))
    path.with_suffix(".json").write_text(json.dumps(corpus.texts[:QUERIES]))
    return path


@pytest.fixture(scope="module")
def searchers(bundle: Path, queries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Searcher]]:
    rows = tmp_path_factory.mktemp("rows")
    write_stored_rows(rows, bundle)
    kinds = (SEMANTIC, EXACT, KEYWORD, HYBRID, FORMER, SCAN)
    with running(
        {kind: [sys.executable, "-m", "bench.searches", kind, bundle, rows, queries] for kind in kinds}
    ) as all_of:
        yield all_of


def test_every_kind_of_search_in_a_process_returns_what_the_engine_returns(
    searchers: dict[str, Searcher], bundle: Path, corpus: Corpus, queries: Path
) -> None:
    loaded, embedded = load_bundle(bundle), np.load(queries)
    keywords = loaded.keywords
    assert keywords is not None
    matches = [keywords.match(text) for text in corpus.texts[:QUERIES]]
    expected = {
        SEMANTIC: [loaded.index.search(query, TOP_K) for query in embedded],
        EXACT: [loaded.index.search(query, TOP_K, exact=True) for query in embedded],
        KEYWORD: [match.best(TOP_K) for match in matches],
        HYBRID: [
            fuse(loaded.index, query, match, keywords.info, TOP_K)
            for query, match in zip(embedded, matches, strict=True)
        ],
    }
    for kind, hits in expected.items():
        answer = searchers[kind].search(range(QUERIES))
        assert answer.rows == [[hit.row for hit in own] for own in hits]
        assert len(answer.milliseconds) == QUERIES
    for kind in (FORMER, SCAN):
        assert [rows[0] for rows in searchers[kind].search(range(QUERIES)).rows] == list(range(QUERIES))


def test_a_contest_asks_every_entry_for_every_query_once(searchers: dict[str, Searcher]) -> None:
    entries = {kind: Entry(searchers[kind]) for kind in (SEMANTIC, KEYWORD)}
    results = compare(entries, QUERIES, rounds=3)
    for kind, result in results.items():
        assert result.rows == searchers[kind].search(range(QUERIES)).rows
        assert (len(result.milliseconds), len(result.round_medians), len(result.seconds_on_two_threads)) == (12, 3, 3)
        assert result.resident_megabytes > result.own_megabytes > 0


def test_ratios_are_medians_over_the_rounds() -> None:
    ours = Result([1.0, 1.0, 2.0, 2.0, 4.0, 4.0], [1.0, 2.0, 4.0], [0.001, 0.002, 0.008])
    other = Result([3.0] * 6, [3.0, 3.0, 3.0], [0.006] * 3)
    assert other.share_of(ours) == 1.5
    assert ours.two_threads() == 0.5
    assert ours.percentile(50) == 2.0


def test_two_threads_answer_in_the_order_of_the_queries() -> None:
    seen = timed(lambda number: [number, number + 1], [4, 2, 9], threads=2)
    assert seen["rows"] == [[4, 5], [2, 3], [9, 10]]


def test_a_search_process_that_does_not_start_is_an_error(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemExit, match="the search process ended"),
        running({"broken": [sys.executable, "-c", "raise SystemExit(2)"]}),
    ):
        pass


def test_recall_counts_equal_scores_in_any_order_and_no_rows_that_do_not_exist() -> None:
    rows = random_rows(300)
    rows[200:211] = rows[7]  # twelve equal rows, two more than the best ten have room for
    exact = Exact(rows[[7, 20]], rows, np.sort(rows[[7, 20]] @ rows.T, axis=1)[:, -TOP_K])
    best = np.argsort(-(rows[[7, 20]] @ rows.T), axis=1)[:, :TOP_K]
    assert exact.recall(best.tolist()) == 1.0
    assert exact.recall([list(range(201, 211)), best[1].tolist()]) == 1.0
    assert exact.recall([[7, -1, 4294967295, 8], best[1].tolist()]) == 0.55
    assert exact.recall([best[1].tolist()], first=1) == 1.0


def test_the_former_search_and_the_scan_find_the_nearest_rows() -> None:
    codes, scales = quantize(random_rows(6_000))
    queries = random_rows(6_020)[6_000:]
    exact = queries @ dequantize(codes, scales).T
    former, scan = np.zeros_like(exact), np.zeros_like(exact)
    for number, query in enumerate(queries):
        former[number, scan_signs(query, codes, scales, sign_bits(codes), TOP_K)] = 1
        scan[number, scan_all(query, codes, scales, TOP_K)] = 1
    assert neighbour_recall(exact, former, TOP_K) > 0.9
    assert neighbour_recall(exact, scan, TOP_K) > 0.9


class Fake:
    """A searcher whose recall and seconds are its effort's."""

    def search(self, queries: range, effort: tuple[int, int]) -> "Fake":
        self.rows, self.seconds = [list(range(effort[0]))], effort[1]
        return self


def test_a_peer_is_searched_with_its_fastest_settings_that_reach_the_recall(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.eye(20, dtype=np.float32)
    query = np.linspace(1, 0.1, 20, dtype=np.float32)[np.newaxis]  # so that the rows are in order
    exact = Exact(query, rows, query[:, TOP_K - 1])
    groups = [[(5, 1), (9, 6), (10, 9), (10, 1)], [(9, 5), (10, 20)]]
    monkeypatch.setattr("bench.nearest_peers.EFFORTS", {"peer": groups})
    assert fastest("peer", Fake(), exact, 1, (0.9, 1.0)) == {0.9: (9, 5), 1.0: (10, 9)}  # type: ignore[arg-type]
    monkeypatch.setattr("bench.nearest_peers.EFFORTS", {"peer": [[(5, 1), (7, 2), (6, 3)]]})
    assert fastest("peer", Fake(), exact, 1, (0.9,)) == {0.9: (7, 2)}  # type: ignore[arg-type]
