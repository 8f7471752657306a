"""Semantic search compared with libraries that search a memory-mapped file: faiss and usearch.

All search the same rows, on one thread, with the fastest settings that reach RECALL. They take turns, query by query.
The queries are four words of passages of the corpus, and claims of SciFact. The indexes of the libraries are kept.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from bench import DATA, WORK, Missing
from bench.scale import SIZES, make_queries
from bench.tables import make_provenance, report
from bench.work import SEED, TOP_K, read_scifact
from semsearch.engine.bundle import INDEX, check_bundle
from semsearch.engine.quantization import dequantize
from semsearch.engine.semantic.index import Index
from semsearch.indexing.vectors.recall import ExactSearch, Recall, choose_stages, search_exactly

PACKAGES = "faiss-cpu==1.15.1 usearch==2.26.6"  # installed beside the bench's, for this measurement alone
OURS = "this project"
RECALL = 0.98  # recall@10 that each search must reach
ROUNDS = 2  # searches for each query
ROWS_AT_ONCE = 65_536
LISTS_PER_ROOT = 4  # lists of faiss for each unit of the square root of the rows
TRAINED = 50  # rows for each list that faiss learns from
PROBES = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024)
RESCORED = (5, 10, 20, 40)  # rows that are scored again, for each hit
EXPANSIONS = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)

Find = Callable[[Any], Any]  # query (dim,) -> rows (10,)
Settings = tuple[int, ...]
Searches = Iterator[tuple[Settings, Find]]


def nearest(*, rows: int = SIZES[-1], work: Path = WORK, data: Path = DATA) -> None:
    """How long a search takes beside other libraries that search a mapped file.

    Args:
        rows: the size of `scale` whose bundle is searched.
    """
    if not (find_spec("faiss") and find_spec("usearch")):
        raise Missing(f"faiss or usearch is not installed; run `pip install {PACKAGES}`")
    bundle = work.absolute() / "scale" / f"passages-{rows}"
    if not bundle.exists():
        raise Missing(f"{bundle}: there is no such bundle; run `python -m bench scale` first")
    manifest = check_bundle(bundle)
    if manifest.corpus_or_none is None or manifest.corpus_or_none.stages is None:
        raise Missing(f"{bundle}: has no stages, so every search is exact; choose more rows")
    claims = list(read_scifact(data).queries.values())
    queries = np.concatenate(list(make_queries(bundle, claims)[1].values()))
    index = Index.open(bundle / INDEX, manifest.corpus_or_none.stages)
    exact = search_exactly(queries, *index.codes_of(np.arange(len(index))))
    own = Index.open(bundle / INDEX, choose_stages(bundle / INDEX, {"queries": exact}, Recall(RECALL, 0)))
    searches: dict[str, Find] = {OURS: lambda query: own.best(query, TOP_K)[0]}
    seen: dict[str, dict[str, Any]] = {OURS: {"recall": exact.recall_of(own).at_10}}
    for name, make in PEERS.items():
        file = bundle.with_name(f"{name.replace(', ', '-')}-{manifest.files[INDEX].sha256[:12]}.index")
        settings, searches[name], reached = fastest(make(index, file), exact, index)
        seen[name] = {"recall": reached, "settings": settings}
    milliseconds: dict[str, list[float]] = {name: [] for name in searches}
    for query in np.tile(queries, (ROUNDS, 1)):
        for name, search in searches.items():
            begin = time.perf_counter()
            search(query)
            milliseconds[name].append((time.perf_counter() - begin) * 1e3)
    for name, times in milliseconds.items():
        seen[name] |= {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}
    own_median = seen[OURS]["p50"]
    cells = [
        (name, f"{each['recall']:.4f}", f"{each['p50']:.2f}", f"{each['p99']:.2f}", f"{each['p50'] / own_median:.2f}")
        for name, each in seen.items()
    ]
    source = make_provenance(
        f"{len(index):,} texts, {len(queries) - len(claims)} of them and {len(claims)} claims as queries"
    )
    report("nearest", ("search", "recall@10", "p50 ms", "p99 ms", "p50 / this project's"), cells, seen, source)


def blocks(index: Index) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a bundle in the order of its corpus, (n, dim) float32, with the number of the first."""
    for begin in range(0, len(index), ROWS_AT_ONCE):
        yield begin, dequantize(*index.codes_of(np.arange(begin, min(begin + ROWS_AT_ONCE, len(index)))))


def in_faiss(index: Index, path: Path, description: str, sample: Any) -> str:
    """Return the path of a faiss index of these rows, built on all cores unless it was built before."""
    import faiss

    if not path.exists():
        faiss.omp_set_num_threads(len(os.sched_getaffinity(0)))
        made = faiss.index_factory(index.dim, description, faiss.METRIC_INNER_PRODUCT)
        made.train(sample)
        for _, rows in blocks(index):
            made.add(rows)
        faiss.write_index(made, f"{path}.part")
        Path(f"{path}.part").rename(path)
    faiss.omp_set_num_threads(1)
    return str(path)


def ivf_pq(index: Index, path: Path) -> Searches:
    """Yield searches of faiss's lists of product-quantized rows, whose best are compared again in 8 bit."""
    import faiss

    lists = int(LISTS_PER_ROOT * len(index) ** 0.5)
    chosen = np.random.default_rng(SEED).permutation(len(index))[: TRAINED * lists]
    sample = dequantize(*index.codes_of(np.sort(chosen)))
    lists_file = in_faiss(index, path, f"IVF{lists},PQ{index.dim // 4}", sample)
    rows_file = in_faiss(index, path.with_suffix(".sq8"), "SQ8", sample)
    coarse = faiss.read_index(lists_file, faiss.IO_FLAG_MMAP)
    fine = faiss.read_index(rows_file, faiss.IO_FLAG_MMAP_IFC)
    both = faiss.IndexRefine(coarse, fine)
    for factor, probes in product(RESCORED, PROBES):

        def search(query: Any, factor: int = factor, probes: int = probes) -> Any:
            coarse.nprobe, both.k_factor = probes, factor
            return both.search(query[np.newaxis], TOP_K)[1][0]

        yield (factor, probes), search


def usearch_graph(index: Index, path: Path) -> Searches:
    """Yield searches of usearch's graph (HNSW) over rows in 8 bit."""
    from usearch.index import Index as Graph

    if not path.exists():
        made = Graph(ndim=index.dim, metric="cos", dtype="i8")
        for begin, rows in blocks(index):
            made.add(np.arange(begin, begin + len(rows)), in_bytes(rows))
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


PEERS = {"faiss, IVF-PQ": ivf_pq, "usearch, HNSW": usearch_graph}


def fastest(searches: Searches, exact: ExactSearch, index: Index) -> tuple[Settings, Find, float]:
    """Return the settings, search and recall of the fastest that reaches RECALL, or comes closest."""
    seen = []
    enough = set[Settings]()  # settings[:-1] that reached recall: more effort is only slower
    for settings, search in searches:
        if settings[:-1] in enough:
            continue
        begin = time.perf_counter()
        found = [search(query) for query in exact.queries]
        seconds, reached = time.perf_counter() - begin, recall_of(found, exact, index)
        seen.append((max(0, RECALL - reached), seconds, settings, search, reached))
        if reached >= RECALL:
            enough.add(settings[:-1])
    _, _, settings, search, reached = min(seen, key=lambda one: one[:2])
    return settings, search, reached


def recall_of(found: Sequence[Any], exact: ExactSearch, index: Index) -> float:
    """Return the share of the ten best rows of each query that are among its found rows, (10,) or fewer.

    faiss returns -1 instead of a row that it did not find.
    """
    hits = 0
    for query, rows, least in zip(exact.queries, found, exact.scores[:, -1], strict=True):
        known = np.asarray(rows, np.int64)
        hits += int(np.count_nonzero(index.scores(query, known[known >= 0]) >= least - 1e-5))
    return hits / (TOP_K * len(exact.queries))
