"""The searches of one size of corpus, all in turn: this project's, plainer ones over its rows, and other libraries'."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.contest import Entry, Result, compare, running
from bench.environments import nearest_python
from bench.exact import Exact
from bench.nearest_peers import SCRIPT, Built, build, chosen_peers, fastest
from bench.passages import LOTS
from bench.scale_bundles import CODES, EMBEDDINGS, SCALES
from bench.searches import EXACT, FILTER, FORMER, HYBRID, KEYWORD, SCAN, SEMANTIC, STAGES
from export.index.recall import own_queries, search_exactly
from export.index.stages import choose_stages
from function.engine.bundle import INDEX, PASSAGES, read_manifest
from function.engine.embedder import Embedder
from function.engine.passages import Passages
from function.engine.quantization import Codes, Scales

ROWS = "rows"  # folder of the stored rows
TARGETS = (0.98, 0.99)  # recall@10 that the peers have to reach
SHARES = (0.5, 0.1, 0.01, 0.0001)  # of the passages, that filters keep
FILTERS = {share: f"{FILTER}{round(share * LOTS)}" for share in SHARES}
KINDS = {"search": [EXACT, FORMER, SCAN], "filters": list(FILTERS.values()), "modes": [KEYWORD, HYBRID]}  # by part


def search_in_turn(
    work: Path, bundle: Path, count: int, parts: Sequence[str], claims: list[str], options: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Return what was seen of each search over `count` passages, by its name; claims are texts that are not in them."""
    queries = write_queries(work / f"queries-{count}.npy", bundle, options.queries, claims)
    rows = work / ROWS
    embeddings, codes, scales = (np.load(rows / name, mmap_mode="r")[:count] for name in (EMBEDDINGS, CODES, SCALES))
    exact = Exact(np.load(queries), embeddings, search_exactly(np.load(queries), codes, scales).least)
    kinds = [SEMANTIC, *(kind for part, kinds in KINDS.items() if part in parts for kind in kinds)]
    kinds += with_less_recall(bundle, codes, scales) if "search" in parts else []
    arguments = (bundle, rows, queries)
    commands = {kind: [sys.executable, "-m", "bench.searches", kind, *map(str, arguments)] for kind in kinds}
    built: dict[str, Built] = {}
    if "peers" in parts and options.peers:
        python, embedded = nearest_python(work.parent), rows / EMBEDDINGS
        built = {name: build(python, work / "peers", name, embedded, count) for name in chosen_peers(options.peers)}
        for name, index in built.items():
            commands[name] = [str(python), "-m", SCRIPT, "search", name, str(index.path), str(queries)]
    with running(commands) as searchers:
        entries = {kind: Entry(searchers[kind]) for kind in kinds}
        for name in built:
            efforts = fastest(name, searchers[name], exact, options.queries, TARGETS)
            for target in TARGETS if len(set(map(tuple, efforts.values()))) > 1 else TARGETS[:1]:
                entries[f"{name} {target}"] = Entry(searchers[name], efforts[target])
        results = compare(entries, options.queries)
        not_whole = {*FILTERS.values(), KEYWORD, HYBRID}
        seen = {
            name: describe(entry, results[name], results[SEMANTIC], exact, name not in not_whole)
            for name, entry in entries.items()
        }
    for name, found in seen.items():
        if took := [index.took for peer, index in built.items() if peer == name.split()[0]]:
            found |= asdict(took[0])
    return seen


def with_less_recall(bundle: Path, codes: Codes, scales: Scales) -> list[str]:
    """Return the search whose stages go only as far as the lowest of TARGETS takes, if the bundle's go further.

    codes (rows, dim) int8 and scales (rows,) float32 are the bundle's rows in the order of the corpus.
    """
    described = read_manifest(bundle).index
    if described is None or described.stages is None or described.stages.lists == 1:
        return []
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    stages, _ = choose_stages(bundle / INDEX, described.stages.lists, exact, min(TARGETS))
    if stages in (None, described.stages):
        return []
    return [f"{STAGES}{stages.probed},{stages.candidates},{stages.rescored}"]


def describe(entry: Entry, result: Result, ours: Result, exact: Exact, is_whole: bool) -> dict[str, Any]:
    """Return what was seen of an entry; recall only where it searches the whole corpus by meaning (is_whole)."""
    described = {
        "effort": list(entry.effort),
        "p50": result.percentile(50),
        "p99": result.percentile(99),
        "times_ours": result.share_of(ours),
        "two_threads": result.two_threads(),
        "load_seconds": entry.searcher.load_seconds,
        "resident_megabytes": result.resident_megabytes,
        "own_megabytes": result.own_megabytes,
    }
    if not is_whole:
        return described
    own = len(result.rows)
    claims = entry.searcher.search(range(own, len(exact.queries)), entry.effort)
    return described | {"recall": exact.recall(result.rows), "recall_of_claims": exact.recall(claims.rows, own)}


def write_queries(path: Path, bundle: Path, count: int, claims: list[str]) -> Path:
    """Write `count` passages, evenly spread, and then all claims: embeddings, and texts beside them as JSON.

    Return the path of the embeddings, (queries, dim) float32.
    """
    passages = Passages(bundle / PASSAGES)
    rows = np.linspace(0, len(passages) - 1, count).astype(int)
    texts = [passages.text(row) for row in rows.tolist()] + claims
    embedder = Embedder.open(bundle, read_manifest(bundle).model)
    np.save(path, embedder.embed(embedder.tokenize(texts, role="query")))
    path.with_suffix(".json").write_text(json.dumps(texts), encoding="utf-8")
    return path
