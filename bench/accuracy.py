"""How close 8 bit stays to float32: on benchmarks, in neighbours, in batches, and on a CPU with only AVX2.

SciFact and STSBenchmark change little whatever is done to a model; a headline's ten nearest neighbours show more.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.data import Retrieval, add_data_argument, read_headlines, read_scifact, read_sts
from bench.embed import open_embedder
from bench.models import EXACT, make_models
from bench.needs import Missing
from bench.provenance import make_provenance
from bench.ranking import TOP_K, ndcg
from bench.report import console, report
from export.index.embed import embed_texts
from export.index.recall import neighbour_recall
from function.engine.embedder import Embedder
from function.engine.quantization import Embeddings

WRITES: tuple[str, ...] = ("accuracy",)
MEASURES: tuple[str, ...] = ("function/engine", "export", "requirements.txt")
QUERIES, OTHERS = 1_000, 20_000
QEMU = "qemu-x86_64"
ALONE = 256  # texts embedded one by one and in batches of 32


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument(
        "--emulated-texts", type=int, default=64, help="headlines for the emulated AVX2 CPU; 0 for none"
    )


def run(options: argparse.Namespace) -> int:
    """Measure every precision and report."""
    headlines = read_headlines(options.data, QUERIES + OTHERS)
    sts, scifact = read_sts(options.data), read_scifact(options.data)
    if options.emulated_texts and shutil.which(QEMU) is None:
        raise Missing(f"{QEMU} is not installed; install Debian's qemu-user, or pass --emulated-texts 0")
    paths = make_models(options.work)
    results: dict[str, dict[str, Any]] = {}
    exact: Embeddings | None = None
    for name, path in paths.items():
        console.print(f"measuring {name} ...")
        embedder = open_embedder(path)
        found = embed_texts(embedder, headlines)
        exact = found if exact is None else exact
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
        if options.emulated_texts and name != EXACT:
            results[name]["avx2_cosine_to_here"] = on_avx2(path, options)
    columns = (
        "weights", "MB", "SciFact nDCG@10", "STSb dev Spearman", "cosine to float32", "recall@10 both sides",
        "recall@10 query alone", "1 - cosine alone / in a batch", "1 - cosine AVX2 / here",
    )  # fmt: skip
    rows = [
        (
            name, row["megabytes"], row["scifact_ndcg_at_10"], row["stsb_dev_spearman"], row["cosine_mean"],
            row["recall_both_sides"], row["recall_query_alone"], f"{row['alone_or_in_a_batch']:.1e}",
            f"{row['avx2_cosine_to_here']:.1e}" if "avx2_cosine_to_here" in row else "",
        )
        for name, row in results.items()
    ]  # fmt: skip
    details = {"results": results, "queries": QUERIES, "others": OTHERS}
    source = make_provenance(f"{len(headlines):,} headlines, SciFact and STSBenchmark")
    report("accuracy", columns, rows, details, source)
    return 0


def scifact_ndcg(embedder: Embedder, test: Retrieval) -> float:
    """Return the mean nDCG@10 of the exact search over the float32 embeddings of one model."""
    documents = embed_texts(embedder, list(test.documents.values()))
    queries = embed_texts(embedder, list(test.queries.values()))
    return ndcg([np.argsort(-(documents @ query), kind="stable")[:TOP_K].tolist() for query in queries], test)


def spearman(embedder: Embedder, left: list[str], right: list[str], scores: list[float]) -> float:
    """Return the rank correlation of cosines and human scores, where ties share their mean rank."""
    cosines = (embed_texts(embedder, left) * embed_texts(embedder, right)).sum(axis=1)
    return float(np.corrcoef(ranks(cosines), ranks(np.array(scores)))[0, 1])


def ranks(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return each value's rank, where ties share their mean rank."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[groups]


def alone_or_in_a_batch(embedder: Embedder, texts: list[str]) -> float:
    """Return the largest 1 - cosine between a text embedded alone and padded in a batch of 32 of mixed lengths."""
    tokens = embedder.tokenize(texts)
    alone = np.concatenate([embedder.embed([text]) for text in tokens])
    batches = [embedder.embed_batch([text.ids for text in tokens[i : i + 32]]) for i in range(0, len(tokens), 32)]
    return float(1 - (alone * np.concatenate(batches)).sum(axis=1).min())


def on_avx2(path: Path, options: argparse.Namespace) -> float:
    """Return the largest 1 - cosine between this CPU's embeddings and those of an emulated Haswell."""
    with tempfile.TemporaryDirectory() as folder:
        saved: list[Embeddings] = []
        for prefix in ([], [QEMU, "-cpu", "Haswell"]):
            out = Path(folder) / f"{len(saved)}.npy"
            command = [*prefix, sys.executable, "-m", "bench.embed", str(path), "--out", str(out)]
            command += ["--data", str(options.data), "--texts", str(options.emulated_texts)]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL if prefix else None)
            saved.append(np.load(out))
    return float(1 - (saved[0] * saved[1]).sum(axis=1).min())
