"""Search a bundle in every way in turn, round by round, in a process of its own: what `scale` runs for each size.

A machine's speed changes while it measures; taking turns, all ways are slowed alike. The queries were embedded before.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bench.scale.queries import WORDS
from function.engine.hybrid import fuse
from function.engine.loading import LoadedBundle, load_bundle
from function.engine.metadata.filters import allowed_rows
from function.engine.quantization import Embeddings

TOP_K = 10
ROUNDS = 6
SEMANTIC, EXACT, KEYWORD, HYBRID = "semantic", "exact", "keyword", "hybrid"
FILTER = "lot<"  # precedes the number of lots, of 10,000, that a filter keeps
FILTERS = {share: f"{FILTER}{round(share * 10_000)}" for share in (0.5, 0.1, 0.01, 0.0001)}  # by the share they keep
Search = Callable[[int], object]  # searches for the query with this number


def main() -> int:
    """Search and print what was measured as JSON: percentiles of milliseconds by kind, and megabytes of memory."""
    parser = argparse.ArgumentParser("python -m bench.scale.searches", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("queries", type=Path, help="queries.npz; their texts are beside it in queries.json")
    parser.add_argument("count", type=int, help="queries to search for with each kind of search")
    options = parser.parse_args()
    with np.load(options.queries) as file:
        queries = dict(file)
    texts = json.loads(options.queries.with_suffix(".json").read_text(encoding="utf-8"))
    begin = time.perf_counter()
    bundle = load_bundle(options.bundle)
    load_seconds = time.perf_counter() - begin
    searches = make_searches(bundle, queries, texts)
    time_all(searches[SEMANTIC], range(options.count))
    memory = {"load_seconds": load_seconds} | resident_megabytes()
    milliseconds = take_turns(searches, options.count)
    found = {
        kind: {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}
        for kind, times in milliseconds.items()
    }
    print(json.dumps(found | {SEMANTIC: found[SEMANTIC] | memory}))
    return 0


def make_searches(
    bundle: LoadedBundle, queries: Mapping[str, Embeddings], texts: Mapping[str, Sequence[str]]
) -> dict[str, Search]:
    """Return the searches that requests of each kind do, without embedding the query and reading the passages.

    Semantic search takes queries of each kind, under the name of the kind; all others take WORDS.
    """
    index, keywords, columns = bundle.index, bundle.keywords, bundle.columns
    assert keywords is not None
    main, words = queries[WORDS], texts[WORDS]

    def of_kind(kind: str) -> Search:
        return lambda number: index.search(queries[kind][number % len(queries[kind])], TOP_K)

    def filtered(lots: int) -> Search:
        condition = {"lot": {"$lt": lots}}
        return lambda number: index.search(main[number], TOP_K, allowed_rows(condition, columns))

    return {
        SEMANTIC: of_kind(WORDS),
        EXACT: lambda number: index.search(main[number], TOP_K, exact=True),
        **{kind: filtered(int(kind.removeprefix(FILTER))) for kind in FILTERS.values()},
        KEYWORD: lambda number: keywords.match(words[number]).best(TOP_K),
        HYBRID: lambda number: fuse(index, main[number], keywords.match(words[number]), keywords.info, TOP_K),
        **{kind: of_kind(kind) for kind in queries},
    }


def take_turns(searches: dict[str, Search], count: int) -> dict[str, list[float]]:
    """Return the milliseconds of each search for queries 0 to `count`, by kind; a round has an equal part of them."""
    size = count // ROUNDS
    for search in searches.values():  # the first measured round then finds everything in memory
        time_all(search, range(size))
    milliseconds: dict[str, list[float]] = {kind: [] for kind in searches}
    for number in range(ROUNDS):
        for kind, search in searches.items():
            milliseconds[kind] += time_all(search, range(number * size, (number + 1) * size))
    return milliseconds


def time_all(search: Search, numbers: Sequence[int]) -> list[float]:
    """Return the milliseconds of each search."""
    milliseconds = []
    for number in numbers:
        begin = time.perf_counter()
        search(number)
        milliseconds.append((time.perf_counter() - begin) * 1e3)
    return milliseconds


def resident_megabytes() -> dict[str, float]:
    """Return the memory of this process: in all, and without the pages of files that it maps."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    kilobytes = {
        name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if "kB" in value
    }
    return {"resident_megabytes": kilobytes["VmRSS"] / 1024, "own_megabytes": kilobytes["RssAnon"] / 1024}


if __name__ == "__main__":
    sys.exit(main())
