"""The peers of `nearest`, run in their environment: indexes of other libraries over a bundle's rows, searched mapped.

    python -m bench.peers.nearest BUNDLE QUERIES.npy FOLDER RECALL ROUNDS

Queries are (n, dim) float32. The indexes are kept in the folder. Prints JSON: for each search its recall@10, what it was
searched with, and the milliseconds of each query on one thread. The searches take turns, query by query.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from export.index.index_file import choose_stages
from export.index.recall import ExactSearch, search_exactly
from function.engine.bundle import INDEX, read_manifest
from function.engine.quantization import dequantize
from function.engine.semantic.index import Index

TOP_K = 10
ROWS_AT_ONCE = 65_536
LISTS_PER_ROOT = 4  # lists of faiss for each unit of the square root of the rows, as its documentation recommends
TRAINED = 50  # rows for each list that faiss learns from
LINKS, BUILD_EFFORT = 32, 128  # of HNSW
PROBES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024)
RESCORED = (5, 10, 20, 40)  # rows that are compared again, for each hit
EXPANSIONS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)

Search = Callable[[Any], Any]  # query (dim,) -> rows (10,)
Effort = tuple[int, ...]
Searches = Iterator[tuple[Effort, Search]]  # each with the effort that it takes


def blocks(index: Index) -> Iterator[Any]:
    """Yield the rows of a bundle in the order of its corpus, (n, dim) float32."""
    for begin in range(0, len(index), ROWS_AT_ONCE):
        yield dequantize(*index.codes_of(np.arange(begin, min(begin + ROWS_AT_ONCE, len(index)))))


def ivf_pq(index: Index, path: Path) -> Searches:
    """Yield searches of faiss's lists of product-quantized rows, whose best are compared again in 8 bit."""
    import faiss

    rescored = path.with_suffix(".rescored")
    if not path.exists():
        lists = int(LISTS_PER_ROOT * len(index) ** 0.5)
        coarse = faiss.index_factory(index.dim, f"IVF{lists},PQ{index.dim // 4}", faiss.METRIC_INNER_PRODUCT)
        fine = faiss.IndexScalarQuantizer(index.dim, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
        chosen = np.random.default_rng(7).permutation(len(index))[: TRAINED * lists]
        sample = dequantize(*index.codes_of(np.sort(chosen)))
        for one in (coarse, fine):
            one.train(sample)
            for rows in blocks(index):
                one.add(rows)
        faiss.write_index(fine, str(rescored))
        faiss.write_index(coarse, str(path))
    faiss.omp_set_num_threads(1)
    coarse = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    fine = faiss.read_index(str(rescored), faiss.IO_FLAG_MMAP_IFC)
    both = faiss.IndexRefine(coarse, fine)
    for factor, probes in product(RESCORED, PROBES):

        def search(query: Any, factor: int = factor, probes: int = probes) -> Any:
            coarse.nprobe, both.k_factor = probes, factor
            return both.search(query[np.newaxis], TOP_K)[1][0]

        yield (factor, probes), search


def faiss_graph(index: Index, path: Path) -> Searches:
    """Yield searches of faiss's graph (HNSW) over rows in 8 bit."""
    import faiss

    if not path.exists():
        graph = faiss.index_factory(index.dim, f"HNSW{LINKS},SQ8", faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = BUILD_EFFORT
        graph.train(next(blocks(index)))
        for rows in blocks(index):
            graph.add(rows)
        faiss.write_index(graph, str(path))
    faiss.omp_set_num_threads(1)
    graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    for expansion in EXPANSIONS:

        def search(query: Any, expansion: int = expansion) -> Any:
            graph.hnsw.efSearch = expansion
            return graph.search(query[np.newaxis], TOP_K)[1][0]

        yield (expansion,), search


def usearch_graph(index: Index, path: Path) -> Searches:
    """Yield searches of usearch's graph (HNSW) over rows in 8 bit, which it gets in 8 bit: its own steps are coarse."""
    from usearch.index import Index as Graph

    if not path.exists():
        graph = Graph(ndim=index.dim, metric="cos", dtype="i8", connectivity=LINKS // 2, expansion_add=BUILD_EFFORT)
        for number, rows in enumerate(blocks(index)):
            graph.add(np.arange(len(rows)) + number * ROWS_AT_ONCE, in_bytes(rows))
        graph.save(str(path))
    graph = Graph.restore(str(path), view=True)
    for expansion in EXPANSIONS:

        def search(query: Any, expansion: int = expansion) -> Any:
            graph.expansion_search = expansion
            return graph.search(in_bytes(query[np.newaxis])[0], TOP_K, threads=1).keys

        yield (expansion,), search


def in_bytes(rows: Any) -> Any:
    """Return rows in 8 bit, (n, dim) int8, each with its largest value as 127: the cosine needs no scales."""
    return np.rint(rows * (127 / np.abs(rows).max(axis=1, keepdims=True))).astype(np.int8)


PEERS = {"faiss-ivf-pq": ivf_pq, "faiss-hnsw-sq8": faiss_graph, "usearch-hnsw-i8": usearch_graph}


def fastest(searches: Searches, exact: ExactSearch, index: Index, recall: float) -> tuple[Effort, Search, float]:
    """Return the fastest of the searches that reach this recall, and its recall; the last one if none does."""
    seen = []
    group: int | None = None  # of the efforts that differ in their last part only; their recall grows
    for effort, search in searches:
        if len(effort) > 1 and group == effort[0]:
            continue
        search(exact.queries[0])
        begin = time.perf_counter()
        found = [search(query) for query in exact.queries]
        seconds = time.perf_counter() - begin
        reached = recall_of(found, exact, index)
        seen.append((reached < recall, seconds if reached >= recall else -reached, effort, search, reached))
        if reached >= recall:
            group = effort[0]
            if len(effort) == 1:
                break
    _, _, effort, search, reached = min(seen, key=lambda one: one[:2])
    return effort, search, reached


def recall_of(found: Sequence[Any], exact: ExactSearch, index: Index) -> float:
    """Return the share of the found rows, of each query (10,), whose scores are among the ten best."""
    scores = [index.scores(query, np.asarray(rows, np.intp)) for query, rows in zip(exact.queries, found, strict=True)]
    return float(np.mean(np.array(scores) >= exact.least[:, np.newaxis] - 1e-5))


def main(bundle: str, queries: str, folder: str, recall: str, rounds: str) -> None:
    """Print what was measured."""
    path, info = Path(bundle) / INDEX, read_manifest(Path(bundle)).index
    assert info is not None and info.stages is not None
    index = Index.open(path, info.stages)
    exact = search_exactly(np.load(queries), *index.codes_of(np.arange(len(index))))
    stages, reached = choose_stages(path, info.stages.lists, exact, float(recall))
    own = Index.open(path, stages)
    searches: dict[str, Search] = {"this project": lambda query: own.best(query, TOP_K)[0]}
    seen: dict[str, Any] = {"this project": {"recall": reached, "effort": str(stages)}}
    for name, make in PEERS.items():
        effort, searches[name], reached = fastest(
            make(index, Path(folder) / f"{name}-{len(index)}.index"), exact, index, float(recall)
        )
        seen[name] = {"recall": reached, "effort": effort}
    milliseconds: dict[str, list[float]] = {name: [] for name in searches}
    for query in np.tile(exact.queries, (int(rounds), 1)):
        for name, search in searches.items():
            begin = time.perf_counter()
            search(query)
            milliseconds[name].append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({name: seen[name] | {"milliseconds": milliseconds[name]} for name in searches}))


if __name__ == "__main__":
    main(*sys.argv[1:])
