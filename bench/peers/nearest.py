"""The peers of `scale`, run in their own environment: other libraries' indexes over the same rows.

    python -m bench.peers.nearest build NAME INDEX ROWS.npy COUNT
    python -m bench.peers.nearest search NAME INDEX QUERIES.npy
    python -m bench.peers.nearest import NAME                       prints the milliseconds of the import

Rows and queries are (n, dim) float32. An index is built on both cores and searched on the cores that it is asked for.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.answering import Effort, Search, answer

TOP_K = 10
MOST_LISTS = 2_048
CORES = 2
ROWS_AT_ONCE = 65_536
LINKS, BUILD_EFFORT = 32, 128  # of HNSW, in both libraries


def lists(rows: int) -> int:
    """Return how many lists an index of so many rows has: a power of two, up to four times the root of the rows."""
    return int(min(MOST_LISTS, 2 ** int(np.log2(4 * rows**0.5))))


class Faiss:
    """An index that faiss's index_factory makes."""

    def __init__(self, factory: str) -> None:
        import faiss

        self.faiss, self.factory = faiss, factory

    def build(self, rows: Any, path: Path) -> None:
        """Train, fill and write the index."""
        self.faiss.omp_set_num_threads(CORES)
        factory = self.factory.format(lists=lists(len(rows)))
        index = self.faiss.index_factory(rows.shape[1], factory, self.faiss.METRIC_INNER_PRODUCT)
        if "HNSW" in factory:
            index.hnsw.efConstruction = BUILD_EFFORT
        if not index.is_trained:
            index.train(np.ascontiguousarray(rows))
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            index.add(np.ascontiguousarray(rows[begin : begin + ROWS_AT_ONCE]))
        self.faiss.write_index(index, str(path))

    def open(self, path: Path, queries: Any) -> Callable[[Effort], Search]:
        """Read the index; an effort is nprobe and k_factor, or efSearch, or nothing."""
        self.faiss.omp_set_num_threads(1)
        index = self.faiss.read_index(str(path))
        lists_of = index.base_index if "Refine" in self.factory else index

        def with_effort(effort: Effort) -> Search:
            if "HNSW" in self.factory:
                index.hnsw.efSearch = effort[0]
            elif "IVF" in self.factory:
                self.faiss.extract_index_ivf(lists_of).nprobe = effort[0]
            if "Refine" in self.factory:
                index.k_factor = effort[1]
            return lambda number: index.search(queries[number : number + 1], TOP_K)[1][0]

        return with_effort


def in_bytes(rows: Any) -> Any:
    """Return rows in 8 bit, (n, dim) int8, each with its largest value as 127: the cosine needs no scales."""
    return np.rint(rows * (127 / np.abs(rows).max(axis=1, keepdims=True))).astype(np.int8)


class Usearch:
    """usearch's HNSW over 8-bit rows; they are in 8 bit before it gets them, because its own steps are too coarse."""

    def __init__(self) -> None:
        import usearch.index

        self.usearch = usearch.index

    def build(self, rows: Any, path: Path) -> None:
        """Fill and write the index."""
        index = self.usearch.Index(
            ndim=rows.shape[1], metric="cos", dtype="i8", connectivity=LINKS // 2, expansion_add=BUILD_EFFORT
        )
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            part = in_bytes(rows[begin : begin + ROWS_AT_ONCE])
            index.add(np.arange(begin, begin + len(part)), part, threads=CORES)
        index.save(str(path))

    def open(self, path: Path, queries: Any) -> Callable[[Effort], Search]:
        """Read the index; an effort is expansion_search."""
        index = self.usearch.Index.restore(str(path))

        def with_effort(effort: Effort) -> Search:
            index.expansion_search = effort[0]
            return lambda number: index.search(in_bytes(queries[number : number + 1])[0], TOP_K, threads=1).keys

        return with_effort


class Rabitq:
    """rabitqlib's IVF with codes of 8 bit."""

    def __init__(self) -> None:
        import rabitqlib

        self.rabitqlib = rabitqlib

    def build(self, rows: Any, path: Path) -> None:
        """Cluster, fill and write the index."""
        count, dim = rows.shape
        rows = np.ascontiguousarray(rows)
        clusters = self.rabitqlib.RaBitQKMeans(dim, lists(count), num_threads=CORES)
        clusters.train(rows)
        index = self.rabitqlib.IvfIndex(dim, count, lists(count), 8, "ip")
        index.build(rows, clusters.centroids, clusters.assignments, num_threads=CORES)
        index.save(str(path))

    def open(self, path: Path, queries: Any) -> Callable[[Effort], Search]:
        """Read the index; an effort is nprobe."""
        index = self.rabitqlib.IvfIndex.load(str(path))

        def with_effort(effort: Effort) -> Search:
            return lambda number: index.search(queries[number : number + 1], TOP_K, effort[0])[0][0]

        return with_effort


class Numpy:
    """A float32 matrix in memory and a product with all of it."""

    def build(self, rows: Any, path: Path) -> None:
        """Write the rows."""
        np.save(path.with_suffix(".npy"), rows)
        path.with_suffix(".npy").rename(path)

    def open(self, path: Path, queries: Any) -> Callable[[Effort], Search]:
        """Read the rows."""
        rows = np.load(path)

        def search(number: int) -> Any:
            scores = rows @ queries[number]
            best = np.argpartition(scores, len(scores) - TOP_K)[-TOP_K:]
            return best[np.argsort(-scores[best])]

        return lambda effort: search


PEERS: dict[str, Callable[[], Any]] = {
    "numpy": Numpy,
    "faiss-flat": lambda: Faiss("Flat"),
    "faiss-ivf-sq8": lambda: Faiss("IVF{lists},SQ8"),
    "faiss-ivf-pq": lambda: Faiss("IVF{lists},PQ96x4fs,Refine(SQ8)"),
    "faiss-ivf-rabitq": lambda: Faiss("IVF{lists},RaBitQfs,Refine(SQ8)"),
    "faiss-hnsw": lambda: Faiss(f"HNSW{LINKS},Flat"),
    "usearch-hnsw": Usearch,
    "rabitqlib-ivf": Rabitq,
}


def main(command: str, name: str, *arguments: str) -> None:
    """Run one command."""
    begin = time.perf_counter()
    peer = PEERS[name]()
    imported = time.perf_counter()
    if command == "import":
        print((imported - begin) * 1e3)
    elif command == "build":
        peer.build(np.load(arguments[1], mmap_mode="r")[: int(arguments[2])], Path(arguments[0]))
    else:
        with_effort = peer.open(Path(arguments[0]), np.load(arguments[1]))
        answer(with_effort, time.perf_counter() - imported)


if __name__ == "__main__":
    main(*sys.argv[1:])
