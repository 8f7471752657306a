"""The queries that `scale` and `nearest` search for, and a process of its own that searches a bundle in every way.

Recall depends on the queries. A passage is the easiest query for its own corpus, and a text of another field the
hardest; a few words of a passage are most like what people type. `scale` runs this module for each size. The ways to
search take turns, round by round: a machine's speed changes while it measures, and then all are slowed alike. The
module imports only the engine, whose memory it measures.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from semsearch.engine.bundle import PASSAGES, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.hybrid import fuse
from semsearch.engine.loading import LoadedBundle, load_bundle
from semsearch.engine.metadata.filters import allowed_rows
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import Embeddings

WHOLE, WORDS, HALVES = "passages", "four words of a passage", "half of a passage's words, shuffled"
CLAIMS = "claims of SciFact"  # texts of another field, none of which is in a corpus
SEED = 7
TOP_K = 10
ROUNDS = 6
SEMANTIC, EXACT, KEYWORD, HYBRID = "semantic", "exact", "keyword", "hybrid"
FILTER = "lot<"  # precedes the number of lots, of 10,000, that a filter keeps
# filters by the share of rows that they keep
FILTERS = {share: f"{FILTER}{round(share * 10_000)}" for share in (0.5, 0.1, 0.01, 0.0001)}
Search = Callable[[int], object]  # searches for the query with this number


def make_queries(bundle: Path, count: int, claims: Sequence[str]) -> dict[str, list[str]]:
    """Return queries by their kind: `count` made from passages of a bundle, evenly spread, and all claims."""
    passages, chance = Passages(bundle / PASSAGES), random.Random(SEED)
    texts = [passages.text(row) for row in np.linspace(0, len(passages) - 1, count).astype(int).tolist()]
    found: dict[str, list[str]] = {WHOLE: texts, WORDS: [], HALVES: [], CLAIMS: list(claims)}
    for words in map(str.split, texts):
        first = chance.randint(0, max(0, len(words) - 4))
        found[WORDS].append(" ".join(words[first : first + 4]))
        found[HALVES].append(" ".join(chance.sample(words, -(-len(words) // 2))))
    return found


def write_queries(path: Path, bundle: Path, queries: Mapping[str, Sequence[str]]) -> Path:
    """Write the embeddings of queries by kind, (n, dim) float32, as .npz, and the texts beside them as JSON.

    Return the path of the embeddings.
    """
    embedder = Embedder.open(bundle, read_manifest(bundle).model)
    embeddings = {kind: embedder.embed(embedder.tokenize(texts, role="query")) for kind, texts in queries.items()}
    np.savez(path, **embeddings)  # type: ignore[arg-type] # its stub takes the names for those of its options
    path.with_suffix(".json").write_text(json.dumps(queries), encoding="utf-8")
    return path


def main(folder: Path, path: Path, count: int) -> None:
    """Search and print what was measured as JSON: percentiles of milliseconds by kind, and megabytes of memory.

    folder has the bundle; path is queries.npz, and their texts are beside it in queries.json.
    """
    with np.load(path) as file:
        queries = dict(file)
    texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    bundle = load_bundle(folder)
    searches = make_searches(bundle, queries, texts)
    time_all(searches[SEMANTIC], range(count))
    memory = resident_megabytes()
    milliseconds = take_turns(searches, count)
    found = {
        kind: {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}
        for kind, times in milliseconds.items()
    }
    print(json.dumps(found | {SEMANTIC: found[SEMANTIC] | memory}))


def make_searches(
    bundle: LoadedBundle, queries: Mapping[str, Embeddings], texts: Mapping[str, Sequence[str]]
) -> dict[str, Search]:
    """Return the searches of requests by kind, without embedding the query and reading the passages.

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
        HYBRID: lambda number: fuse(index, main[number], keywords.match(words[number]), keywords.info, TOP_K).hits(),
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
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
