"""How close 8 bit stays to float32 (benchmarks, neighbours, batches), and how long a text takes.

SciFact and STSBenchmark hardly change with the precision of a model; a headline's ten nearest neighbours show more. For
the milliseconds, the models embed one text on one thread in turn: a model that runs alone in a loop keeps its weights
in the processor's caches, and a function that waits for requests does not.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.report import console, make_provenance, report
from bench.texts import TOP_K, Retrieval, add_data_argument, ndcg, read_headlines, read_scifact, read_sts, read_texts
from bench.work import NAIVE, make_models, open_embedder
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.indexing.vectors.embed import embed_texts
from semsearch.indexing.vectors.recall import neighbour_recall

QUERIES, OTHERS = 1_000, 20_000
ALONE = 256  # number of texts that are embedded one by one and in batches of 32
LENGTHS = (8, 16, 32)  # tokens of the timed texts
FEW = 20  # minimum texts of a length; longer texts are shortened if there are fewer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--only", choices=("accuracy", "latency"), help="measure and write only this result")
    parser.add_argument("--rounds", type=int, default=200, help="timed texts of each length")


def run(options: argparse.Namespace) -> int:
    """Measure every precision and report."""
    if options.only != "latency":
        measure_accuracy(options)
    if options.only != "accuracy":
        measure_latency(options)
    return 0


def measure_accuracy(options: argparse.Namespace) -> None:
    """Measure how close each precision is to float32, and report it."""
    headlines = read_headlines(options.data, QUERIES + OTHERS)
    sts, scifact = read_sts(options.data), read_scifact(options.data)
    results: dict[str, dict[str, Any]] = {}
    exact: Embeddings | None = None
    for name, path in make_models(options.work).items():
        console.print(f"measuring {name} ...")
        embedder = open_embedder(path)
        found = embed_texts(embedder, headlines)
        exact = found if exact is None else exact  # float32 is the first
        scores = exact[:QUERIES] @ exact[QUERIES:].T
        results[name] = {
            "megabytes": round(path.stat().st_size / 1e6, 1),
            "scifact_ndcg_at_10": round(scifact_ndcg(embedder, scifact), 5),
            "stsb_dev_spearman": round(spearman(embedder, *sts), 5),
            "cosine_mean": round(float((exact * found).sum(axis=1).mean()), 6),
            "recall_both_sides": round(neighbour_recall(scores, found[:QUERIES] @ found[QUERIES:].T, TOP_K), 4),
            "recall_query_alone": round(neighbour_recall(scores, found[:QUERIES] @ exact[QUERIES:].T, TOP_K), 4),
            "alone_or_in_a_batch": alone_or_in_a_batch(embedder, headlines[:ALONE]),
        }
    columns = ["weights", "MB", "SciFact nDCG@10", "STSb dev Spearman", "cosine to float32", "recall@10 both sides"]
    columns += ["recall@10 query alone", "1 - cosine alone / in a batch"]
    rows = []
    for name, row in results.items():
        *plain, alone = row.values()
        rows.append((name, *plain, f"{alone:.1e}"))
    details = {"results": results, "queries": QUERIES, "others": OTHERS}
    source = make_provenance(f"{len(headlines):,} headlines, SciFact and STSBenchmark")
    report("accuracy", columns, rows, details, source)


def scifact_ndcg(embedder: Embedder, test: Retrieval) -> float:
    """Return the mean nDCG@10 of the exact search over the float32 embeddings of one model."""
    documents = embed_texts(embedder, list(test.documents.values()))
    queries = embed_texts(embedder, list(test.queries.values()))
    return ndcg([np.argsort(-(documents @ query), kind="stable")[:TOP_K].tolist() for query in queries], test)


def spearman(embedder: Embedder, left: list[str], right: list[str], scores: list[float]) -> float:
    """Return the rank correlation of cosines and human scores."""
    cosines = (embed_texts(embedder, left) * embed_texts(embedder, right)).sum(axis=1)
    return float(np.corrcoef(ranks(cosines), ranks(np.array(scores)))[0, 1])


def ranks(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return each value's rank; equal values get their mean rank."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[groups]


def alone_or_in_a_batch(embedder: Embedder, texts: list[str]) -> float:
    """Return the largest 1 - cosine between a text embedded alone and padded in a batch of 32 of mixed lengths."""
    tokens = embedder.tokenize(texts)
    alone = np.concatenate([embedder.embed([text]) for text in tokens])
    batches = [embedder.embed_batch([text.ids for text in tokens[i : i + 32]]) for i in range(0, len(tokens), 32)]
    return float(1 - (alone * np.concatenate(batches)).sum(axis=1).min())


def measure_latency(options: argparse.Namespace) -> None:
    """Measure the milliseconds that each precision takes for texts of each length, and report them."""
    embedders = {name: open_embedder(path) for name, path in make_models(options.work).items()}
    texts = read_texts(options.data, 20_000)
    times = time_in_turn(embedders, texts.texts, options.rounds)
    medians = {name: {n: statistics.median(times[name][n]) for n in LENGTHS} for name in embedders}
    spread = {
        name: {n: [float(np.percentile(times[name][n], p)) for p in (10, 90)] for n in LENGTHS} for name in embedders
    }
    ratios = {name: {n: found[n] / medians[NAIVE][n] for n in LENGTHS} for name, found in medians.items()}
    rows = [(name, *(f"{found[n]:.2f} ({ratios[name][n]:.2f})" for n in LENGTHS)) for name, found in medians.items()]
    columns = ("weights", *(f"{length} tokens: ms (ratio to naive)" for length in LENGTHS))
    details = {"median": medians, "ratios": ratios, "p10_p90": spread, "rounds": options.rounds}
    report("latency", columns, rows, details, make_provenance(texts.description()))


def time_in_turn(
    embedders: Mapping[str, Embedder], texts: Sequence[str], rounds: int
) -> dict[str, dict[int, list[float]]]:
    """Return the milliseconds of each text by embedder and by its number of tokens; the embedders take turns.

    It is the processor time of the only thread, so that other programs count less.
    """
    tokens = next(iter(embedders.values())).tokenize(texts)
    by_length = {length: texts_of(tokens, length) for length in LENGTHS}
    times: dict[str, dict[int, list[float]]] = {name: {length: [] for length in LENGTHS} for name in embedders}
    for number in range(rounds):
        for length, chosen in by_length.items():
            text = chosen[number % len(chosen)]
            for name, embedder in embedders.items():
                begin = time.thread_time()
                embedder.embed([text])
                times[name][length].append((time.thread_time() - begin) * 1e3)
    return times


def texts_of(tokens: Sequence[TokenIds], length: int) -> list[TokenIds]:
    """Return the texts of exactly this many tokens; if they are fewer than FEW, longer ones shortened to it."""
    exact = [text for text in tokens if len(text.ids) == length]
    if len(exact) >= FEW:
        return exact
    longer = [text for text in tokens if len(text.ids) >= length]
    return [replace(text, ids=[*text.ids[: length - 1], text.ids[-1]]) for text in longer]  # the last id ends a text
