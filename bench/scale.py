"""From 30,000 to a million passages: search, filters, keywords, hybrid search, cold starts and an index made again.

The passages are headlines, titles of papers, first halves of the sentences of their abstracts, and such sentences. All
are embedded once, which takes about an hour for a million, and their embeddings are kept in `--work`. Each size is the
first of these passages, indexed with the kept embeddings.

`python -m bench.scale BUNDLE QUERIES` is the process that searches one bundle on one thread. The ways to search take
turns, round by round: a machine's speed changes while it measures, and then all are slowed alike.
"""

import csv
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from bench import DATA, PROJECT, WORK
from bench.tables import make_provenance, report
from bench.work import ONE_THREAD, QUERY_WORDS, SEED, TOP_K, make_once, read_headlines, read_papers, read_scifact
from semsearch.engine.bundle import INDEX, KEYWORDS, PASSAGES, check_bundle, read_manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.hybrid import fuse
from semsearch.engine.loading import LoadedBundle, load_bundle
from semsearch.engine.metadata.filters import allowed_rows
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import Index
from semsearch.indexing.vectors.recall import search_exactly

SIZES = (30_000, 194_182, 1_000_000)  # 194,182: all headlines
LOTS = 10_000  # each passage has one of these lots, so that a filter can keep any share of the corpus
LEAST_CHARACTERS = 20  # shorter sentences are mostly the ends of formulas
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
QUERIES = 600  # passages of each corpus of which some words are searched for
WORDS, CLAIMS = "four words of a passage", "claims of SciFact"  # claims are texts of another field
ROUNDS = 6
EXACT, KEYWORD, HYBRID = "exact", "keyword", "hybrid"
# filters by the share of rows that they keep
FILTERS = {share: f"a filter keeps {100 * share:.4g} %" for share in (0.5, 0.01, 0.0001)}
Figures = Mapping[str, Any]  # what was measured at one size
Find = Callable[[int], object]  # searches for the query with this number


def scale(*, sizes: Sequence[int] = SIZES, starts: int = 5, work: Path = WORK, data: Path = DATA) -> None:
    """How search, filters, keywords, starts and an index made again grow from 30,000 to a million texts.

    Args:
        sizes: passages of each bundle.
        starts: cold starts of each size.
    """
    from bench import cold_start

    folder = work.absolute() / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    claims = list(read_scifact(data).queries.values())
    description = write_corpora(folder, data, sizes)
    seen: dict[str, dict[str, Any]] = {}
    for size in sorted(sizes, reverse=True):
        bundle = folder / f"passages-{size}"
        found = seen[str(size)] = {"seconds": index_again(folder, bundle, max(sizes))}
        found["bytes"] = {name: file.bytes for name, file in read_manifest(bundle).files.items()}
        found["searches"] = search_in_turn(bundle, claims)
        print(f"searched {size:,} passages", flush=True)
    functions = {size: cold_start.make_function(work.absolute(), folder / f"passages-{size}") for size in seen}
    for cache in cold_start.available_states():
        measured = cold_start.measure(work.absolute(), functions, starts, cache)
        for name, own in measured.items():
            seen[name].setdefault("starts", {})[cache] = asdict(own)
    by_size = {str(size): seen[str(size)] for size in sorted(sizes)}
    report("scale", *table(by_size), {"sizes": by_size}, make_provenance(description))


def write_corpora(folder: Path, data: Path, sizes: Sequence[int]) -> str:
    """Write passages-SIZE.csv for each size, with the columns text and lot; return in words what the passages are."""
    chance = random.Random(SEED)
    rows = [(text, chance.randrange(LOTS)) for text in islice(read_passages(data), max(sizes))]
    for size in sizes:
        with (folder / f"passages-{size}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "lot"), *rows[:size]])
    return f"up to {len(rows):,} headlines, titles, halves of sentences of abstracts, and such sentences"


def read_passages(data: Path) -> Iterator[str]:
    """Yield different passages: headlines, titles, first halves of sentences, which embed fast, and whole sentences."""
    passages = dict.fromkeys(read_headlines(data))
    papers = list(read_papers(data))
    passages |= dict.fromkeys(paper["title"] for paper in papers)
    sentences = [each for paper in papers for each in END_OF_SENTENCE.split(paper["abstract"])]
    halves = [" ".join(words[: len(words) // 2]) for words in map(str.split, sentences)]
    passages |= dict.fromkeys(each for each in halves + sentences if len(each) >= LEAST_CHARACTERS)
    yield from passages


def index_again(folder: Path, bundle: Path, largest: int) -> float:
    """Index the passages of a bundle with kept embeddings, and return the seconds.

    The first time, all passages are embedded; the bundle with all embeddings is updated if the code changed.
    """

    def index(out: Path, size: int, *options: str | Path) -> None:
        corpus = folder / f"passages-{size}.csv"
        command: list[str | Path] = [sys.executable, "-m", "semsearch", "index", corpus, "--column", "lot=number"]
        subprocess.run([*command, "--replace", "--out", out, *options], cwd=PROJECT, check=True)

    embedded = make_once(folder / f"embedded-{largest}", lambda out: index(out, largest), is_kept=True)
    begin = time.perf_counter()
    index(bundle, int(bundle.name.partition("-")[2]), "--update", embedded)
    return time.perf_counter() - begin


def make_queries(bundle: Path, claims: Sequence[str]) -> tuple[dict[str, list[str]], dict[str, Embeddings]]:
    """Return queries by their kind, and their embeddings: QUERIES made from evenly spread passages, and the claims."""
    passages, chance = Passages(bundle / PASSAGES), random.Random(SEED)
    texts: dict[str, list[str]] = {WORDS: [], CLAIMS: list(claims)}
    for row in np.linspace(0, len(passages) - 1, QUERIES).astype(int).tolist():
        words = passages.text(row).split()
        first = chance.randint(0, max(0, len(words) - QUERY_WORDS))
        texts[WORDS].append(" ".join(words[first : first + QUERY_WORDS]))
    embedder = Embedder.open(bundle, read_manifest(bundle).model)
    return texts, {kind: embedder.embed(embedder.tokenize(each, role="query")) for kind, each in texts.items()}


def search_in_turn(bundle: Path, claims: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return what was measured of each kind of search and of queries in a bundle; claims are not in it."""
    texts, embeddings = make_queries(bundle, claims)
    queries = bundle.with_name(f"queries-{bundle.name}.npz")
    np.savez(queries, **embeddings)  # type: ignore[arg-type] # its stub takes the names for those of its options
    queries.with_suffix(".json").write_text(json.dumps(texts), encoding="utf-8")
    command: list[str | Path] = [sys.executable, "-m", "bench.scale", bundle, queries]
    done = subprocess.run(command, cwd=PROJECT, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, check=True)
    seen: dict[str, dict[str, float]] = json.loads(done.stdout)
    described = check_bundle(bundle).corpus_or_none
    assert described is not None  # check_bundle checked it
    index = Index.open(bundle / INDEX, described.stages)
    for kind, each in embeddings.items():
        recall = search_exactly(each, *index.codes_of(np.arange(described.rows))).recall_of(index)
        seen[kind] |= {"recall": recall.at_10, "first": recall.first}
    return seen


def main(folder: Path, path: Path) -> None:
    """Search and print what was measured as JSON: percentiles of milliseconds by kind, and megabytes of memory.

    folder has the bundle; path is queries.npz, and their texts are beside it in queries.json.
    """
    with np.load(path) as file:
        queries = dict(file)
    texts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    searches = make_searches(load_bundle(folder), queries, texts[WORDS])
    count = len(texts[WORDS])
    time_all(searches[WORDS], range(count))
    memory = resident_megabytes()
    milliseconds: dict[str, list[float]] = {kind: [] for kind in searches}
    size = count // ROUNDS
    for search in searches.values():  # the first measured round then finds everything in memory
        time_all(search, range(size))
    for number in range(ROUNDS):
        for kind, search in searches.items():
            milliseconds[kind] += time_all(search, range(number * size, (number + 1) * size))
    found = {
        kind: {"p50": float(np.percentile(times, 50)), "p99": float(np.percentile(times, 99))}
        for kind, times in milliseconds.items()
    }
    print(json.dumps(found | {WORDS: found[WORDS] | memory}))


def make_searches(bundle: LoadedBundle, queries: Mapping[str, Embeddings], texts: Sequence[str]) -> dict[str, Find]:
    """Return the searches of requests by kind, without embedding the query and reading the passages.

    Semantic search takes the queries of each kind, under the name of the kind; all others take WORDS, which are texts.
    """
    index, keywords, columns = bundle.index, bundle.keywords, bundle.columns
    assert keywords is not None
    words = queries[WORDS]

    def of_kind(kind: str) -> Find:
        return lambda number: index.search(queries[kind][number % len(queries[kind])], TOP_K)

    def filtered(share: float) -> Find:
        condition = {"lot": {"$lt": round(share * LOTS)}}
        return lambda number: index.search(words[number], TOP_K, allowed_rows(condition, columns))

    return {
        **{kind: of_kind(kind) for kind in queries},
        EXACT: lambda number: index.search(words[number], TOP_K, exact=True),
        **{kind: filtered(share) for share, kind in FILTERS.items()},
        KEYWORD: lambda number: keywords.match(texts[number]).best(TOP_K),
        HYBRID: lambda number: fuse(index, words[number], keywords.match(texts[number]), keywords.info, TOP_K).hits(),
    }


def time_all(search: Find, numbers: Sequence[int]) -> list[float]:
    """Return the milliseconds of each search."""
    milliseconds = []
    for number in numbers:
        begin = time.perf_counter()
        search(number)
        milliseconds.append((time.perf_counter() - begin) * 1e3)
    return milliseconds


def resident_megabytes() -> dict[str, float]:
    """Return the memory of this process: in all, and without the pages of files that it maps."""
    found = dict(re.findall(r"^(VmRSS|RssAnon):\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE))
    return {"resident_megabytes": int(found["VmRSS"]) / 1024, "own_megabytes": int(found["RssAnon"]) / 1024}


def table(seen: Mapping[str, Figures]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return a column for each size and the rows of what was measured, the answers to most questions first."""
    lines: list[tuple[str, Callable[[Figures], str]]] = [
        ("search p50, p99 ms, one thread", lambda size: _times(size, WORDS)),
        (f"recall@10, first hit: {WORDS}", lambda size: _recall(size, WORDS)),
        (f"recall@10, first hit: {CLAIMS}", lambda size: _recall(size, CLAIMS)),
        *((f"{kind} p50, p99 ms", lambda size, kind=kind: _times(size, kind)) for kind in (EXACT, KEYWORD, HYBRID)),
        ("INIT ms, page cache warm", lambda size: _init(size, "warm")),
        ("INIT ms, page cache dropped", lambda size: _init(size, "dropped")),
        ("resident MB after the searches (of mapped files)", _resident),
        ("seconds to index again, with its embeddings", lambda size: f"{size['seconds']:,.0f}"),
        ("index, passages, keywords on disk MB", _megabytes),
        *((f"{kind}: p50, p99 ms", lambda size, kind=kind: _times(size, kind)) for kind in FILTERS.values()),
    ]
    rows = [(label, *(figure(size) for size in seen.values())) for label, figure in lines]
    return ["passages", *(f"{int(size):,}" for size in seen)], rows


def _times(size: Figures, kind: str) -> str:
    found = size["searches"][kind]
    return f"{found['p50']:.2f}, {found['p99']:.2f}"


def _recall(size: Figures, kind: str) -> str:
    found = size["searches"][kind]
    return f"{found['recall']:.3f}, {found['first']:.3f}"


def _init(size: Figures, cache: str) -> str:
    return f"{statistics.median(size['starts'][cache]['init']):,.0f}" if cache in size["starts"] else ""


def _resident(size: Figures) -> str:
    found = size["searches"][WORDS]
    mapped = found["resident_megabytes"] - found["own_megabytes"]
    return f"{found['resident_megabytes']:,.0f} ({mapped:,.0f})"


def _megabytes(size: Figures) -> str:
    return ", ".join(f"{size['bytes'][name] / 1e6:,.1f}" for name in (INDEX, PASSAGES, KEYWORDS))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
