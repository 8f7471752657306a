"""The peers of `nearest`, run in their environment: indexes of other libraries over a bundle's rows, searched mapped.

    python -m bench.peers.nearest BUNDLE QUERIES.npz FOLDER RECALL ROUNDS

Queries are arrays of (n, dim) float32. The indexes are kept in the folder. Prints JSON: for each search its recall@10,
its settings, and the milliseconds of each query on one thread. The searches take turns, query by query.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from export.index.index_file import choose_stages
from export.index.recall import ExactSearch, Recall, search_exactly
from function.engine.bundle import INDEX, read_manifest
from function.engine.quantization import dequantize
from function.engine.semantic.index import Index

TOP_K = 10
ROWS_AT_ONCE = 65_536
LISTS_PER_ROOT = 4  # lists of faiss for each unit of the square root of the rows
TRAINED = 50  # rows for each list that faiss learns from
LINKS = 32  # M of faiss's graph; all other settings of a build are the library's own defaults
PROBES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024)
RESCORED = (5, 10, 20, 40)  # rows that are compared again, for each hit
EXPANSIONS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)

Search = Callable[[Any], Any]  # query (dim,) -> rows (10,)
Settings = tuple[int, ...]
Searches = Iterator[tuple[Settings, Search]]


def blocks(index: Index) -> Iterator[Any]:
    """Yield the rows of a bundle in the order of its corpus, (n, dim) float32."""
    for begin in range(0, len(index), ROWS_AT_ONCE):
        yield dequantize(*index.codes_of(np.arange(begin, min(begin + ROWS_AT_ONCE, len(index)))))


def in_faiss(index: Index, path: Path, description: str, sample: Any) -> Path:
    """Return the path of a faiss index of these rows, built on all cores unless it was built before."""
    import faiss

    if not path.exists():
        faiss.omp_set_num_threads(os.cpu_count())
        made = faiss.index_factory(index.dim, description, faiss.METRIC_INNER_PRODUCT)
        made.train(sample)
        for rows in blocks(index):
            made.add(rows)
        faiss.write_index(made, f"{path}.part")
        Path(f"{path}.part").rename(path)
    faiss.omp_set_num_threads(1)
    return path


def ivf_pq(index: Index, path: Path) -> Searches:
    """Yield searches of faiss's lists of product-quantized rows, whose best are compared again in 8 bit."""
    import faiss

    lists = int(LISTS_PER_ROOT * len(index) ** 0.5)
    chosen = np.random.default_rng(7).permutation(len(index))[: TRAINED * lists]
    sample = dequantize(*index.codes_of(np.sort(chosen)))
    codes = in_faiss(index, path, f"IVF{lists},PQ{index.dim // 4}", sample)
    coarse = faiss.read_index(str(codes), faiss.IO_FLAG_MMAP)
    fine = faiss.read_index(str(in_faiss(index, path.with_suffix(".sq8"), "SQ8", sample)), faiss.IO_FLAG_MMAP_IFC)
    both = faiss.IndexRefine(coarse, fine)
    for factor, probes in product(RESCORED, PROBES):

        def search(query: Any, factor: int = factor, probes: int = probes) -> Any:
            coarse.nprobe, both.k_factor = probes, factor
            return both.search(query[np.newaxis], TOP_K)[1][0]

        yield (factor, probes), search


def faiss_graph(index: Index, path: Path) -> Searches:
    """Yield searches of faiss's graph (HNSW) over rows in 8 bit."""
    import faiss

    built = in_faiss(index, path, f"HNSW{LINKS},SQ8", next(blocks(index)))
    graph = faiss.read_index(str(built), faiss.IO_FLAG_MMAP_IFC)
    for expansion in EXPANSIONS:

        def search(query: Any, expansion: int = expansion) -> Any:
            graph.hnsw.efSearch = expansion
            return graph.search(query[np.newaxis], TOP_K)[1][0]

        yield (expansion,), search


def usearch_graph(index: Index, path: Path) -> Searches:
    """Yield searches of usearch's graph (HNSW) over rows in 8 bit."""
    from usearch.index import Index as Graph

    if not path.exists():
        made = Graph(ndim=index.dim, metric="cos", dtype="i8")
        for number, rows in enumerate(blocks(index)):
            made.add(np.arange(len(rows)) + number * ROWS_AT_ONCE, in_bytes(rows))
        made.save(f"{path}.part")
        Path(f"{path}.part").rename(path)
    graph = Graph.restore(str(path), view=True)
    for expansion in EXPANSIONS:

        def search(query: Any, expansion: int = expansion) -> Any:
            graph.expansion_search = expansion
            return graph.search(in_bytes(query[np.newaxis])[0], TOP_K, threads=1).keys

        yield (expansion,), search


def in_bytes(rows: Any) -> Any:
    """Return rows in 8 bit, (n, dim) int8, each with its largest value as 127: usearch's own steps are coarser."""
    return np.rint(rows * (127 / np.abs(rows).max(axis=1, keepdims=True))).astype(np.int8)


PEERS = {"faiss, IVF-PQ": ivf_pq, "faiss, HNSW": faiss_graph, "usearch, HNSW": usearch_graph}


def fastest(
    searches: Searches, exact: ExactSearch, index: Index, recall: float
) -> tuple[float, Settings, Search, float]:
    """Return the seconds, settings, search and recall of the fastest that reaches this recall, or comes closest."""
    seen = []
    enough = set[Settings]()  # settings[:-1] that reached recall: more effort is only slower
    for settings, search in searches:
        if settings[:-1] in enough:
            continue
        begin = time.perf_counter()
        found = [search(query) for query in exact.queries]
        seconds, reached = time.perf_counter() - begin, recall_of(found, exact, index)
        seen.append((seconds, settings, search, reached))
        if reached >= recall:
            enough.add(settings[:-1])
    return min(seen, key=lambda one: (max(0, recall - one[3]), one[0]))


def recall_of(found: Sequence[Any], exact: ExactSearch, index: Index) -> float:
    """Return the share of the ten best rows of each query that are among its found rows, (10,) or fewer.

    faiss returns -1 instead of a row that it did not find.
    """
    hits = 0
    for query, rows, least in zip(exact.queries, found, exact.scores[:, -1], strict=True):
        known = np.asarray(rows, np.int64)
        hits += int(np.count_nonzero(index.scores(query, known[known >= 0]) >= least - 1e-5))
    return hits / (TOP_K * len(exact.queries))


def main(bundle: str, queries: str, folder: str, recall: str, rounds: str) -> None:
    """Print what was measured."""
    manifest = read_manifest(Path(bundle))
    assert manifest.index is not None
    assert manifest.index.stages is not None  # bench/scale/nearest.py checked it
    path = Path(bundle) / INDEX
    index = Index.open(path, manifest.index.stages)
    with np.load(queries) as kinds:
        embeddings = np.concatenate(list(kinds.values()))
    exact = search_exactly(embeddings, *index.codes_of(np.arange(len(index))))
    chosen = choose_stages(path, {"queries": exact}, Recall(float(recall), 0))
    own = Index.open(path, chosen)
    reached = exact.recall_of(own).at_10
    searches: dict[str, Search] = {"this project": lambda query: own.best(query, TOP_K)[0]}
    seen: dict[str, Any] = {"this project": {"recall": reached, "settings": str(chosen)}}
    for name, make in PEERS.items():
        file = Path(folder) / f"{name.replace(', ', '-')}-{manifest.files[INDEX].sha256[:12]}.index"
        _, settings, searches[name], reached = fastest(make(index, file), exact, index, float(recall))
        seen[name] = {"recall": reached, "settings": settings}
    milliseconds: dict[str, list[float]] = {name: [] for name in searches}
    for query in np.tile(exact.queries, (int(rounds), 1)):
        for name, search in searches.items():
            begin = time.perf_counter()
            search(query)
            milliseconds[name].append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({name: seen[name] | {"milliseconds": milliseconds[name]} for name in searches}))


if __name__ == "__main__":
    main(*sys.argv[1:])
