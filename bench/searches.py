"""Search a bundle in a process of its own, one query after the other: the project's side of `bench.contest`.

The queries were embedded before; the file of their texts is what keyword search reads.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.answering import Search, answer
from bench.former_search import scan_all, scan_signs, sign_bits
from bench.scale_bundles import CODES, SCALES
from function.engine.bundle import INDEX, StagesInfo, read_manifest
from function.engine.hybrid import fuse
from function.engine.loading import LoadedBundle, load_bundle
from function.engine.metadata.filters import allowed_rows
from function.engine.quantization import Embeddings
from function.engine.semantic.index import Hit, Index

TOP_K = 10
SEMANTIC, EXACT, KEYWORD, HYBRID = "semantic", "exact", "keyword", "hybrid"
FORMER, SCAN = "former", "scan"
FILTER = "lot<"  # before the number of lots, of 10,000, that a filter keeps
STAGES = "stages:"  # before other widths of the stages than the bundle's: probed, candidates, rescored


def main() -> int:
    """Open what is searched, then answer."""
    parser = argparse.ArgumentParser("python -m bench.searches", description=__doc__)
    parser.add_argument("kind", help="how to search")
    parser.add_argument("bundle", type=Path)
    parser.add_argument(
        "rows", type=Path, help="folder of the stored rows, for searches that the bundle does not offer"
    )
    parser.add_argument("queries", type=Path, help="queries.npy; their texts are beside it in queries.json")
    options = parser.parse_args()
    queries = np.load(options.queries)
    texts = json.loads(options.queries.with_suffix(".json").read_text(encoding="utf-8"))
    begin = time.perf_counter()
    if options.kind in (FORMER, SCAN):
        described = read_manifest(options.bundle).index
        assert described is not None
        search = search_rows(options.kind, options.rows, described.rows, queries)
    else:
        search = search_bundle(options.kind, load_bundle(options.bundle), queries, texts)
    answer(lambda effort: search, time.perf_counter() - begin)
    return 0


def search_bundle(kind: str, bundle: LoadedBundle, queries: Embeddings, texts: Sequence[str]) -> Search:
    """Return the search that a request of this kind does, without embedding the query and reading the passages."""
    index, keywords = bundle.index, bundle.keywords
    assert keywords is not None
    if kind == SEMANTIC:
        return rows_of(lambda number: index.search(queries[number], TOP_K))
    if kind == EXACT:
        return rows_of(lambda number: index.search(queries[number], TOP_K, exact=True))
    if kind.startswith(STAGES):
        index = with_stages(bundle, kind)
        return rows_of(lambda number: index.search(queries[number], TOP_K))
    if kind == KEYWORD:
        return rows_of(lambda number: keywords.match(texts[number]).best(TOP_K))
    if kind == HYBRID:
        return rows_of(lambda number: fuse(index, queries[number], keywords.match(texts[number]), keywords.info, TOP_K))
    columns, condition = bundle.columns, {"lot": {"$lt": int(kind.removeprefix(FILTER))}}
    return rows_of(lambda number: index.search(queries[number], TOP_K, allowed_rows(condition, columns)))


def with_stages(bundle: LoadedBundle, kind: str) -> Index:
    """Open a bundle's index with the widths of the stages that a kind names."""
    assert bundle.manifest.index is not None
    assert bundle.manifest.index.stages is not None
    probed, candidates, rescored = map(int, kind.removeprefix(STAGES).split(","))
    return Index.open(
        bundle.folder / INDEX, StagesInfo(bundle.manifest.index.stages.lists, probed, candidates, rescored)
    )


def search_rows(kind: str, folder: Path, count: int, queries: Embeddings) -> Search:
    """Return a search over the first `count` stored rows that is there to be compared with."""
    codes, scales = (np.load(folder / name, mmap_mode="r")[:count] for name in (CODES, SCALES))
    if kind == SCAN:
        return lambda number: scan_all(queries[number], codes, scales, TOP_K).tolist()
    bits = sign_bits(codes)
    return lambda number: scan_signs(queries[number], codes, scales, bits, TOP_K).tolist()


def rows_of(search: Callable[[int], list[Hit]]) -> Search:
    """Return the search that returns the rows of these hits."""
    return lambda number: [hit.row for hit in search(number)]


if __name__ == "__main__":
    sys.exit(main())
