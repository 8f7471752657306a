"""Is the bundle what it says it is? Its checksums, its vectors and its neighbours, checked by doing the work again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.indexer import embed_documents
from function.engine import bundle as layout
from function.engine.bundle import describe_file, open_bundle
from function.engine.embedder import Embedder
from function.engine.index import Index
from function.engine.passages import Passages
from function.engine.quantization import Codes, Embeddings, Scales, dequantize
from function.engine.tensors import map_tensors

SAMPLE = 5_000  # passages embedded again
QUERIES = 200  # of them, asked as queries
TOP_K = 10
LEAST_COSINE = 0.999  # between a stored row and its text embedded again; 8 bit alone gives 0.9998
LEAST_RECALL = 0.98  # of the search against a scan of all rows; 0.998 is usual
SEED = 7
ROWS_AT_ONCE = 65_536  # of exact search: 100 MB at 384 dimensions
ROUNDING = 1e-5  # between two ways to sum the same products


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    found: str
    expected: str
    passed: bool


def verify(bundle: Path, progress: Callable[[int], None] = lambda texts: None) -> Iterator[Check]:
    """Check a bundle, yielding each result as soon as it is known.

    `progress` is told the number of passages embedded since the last call.
    Raises BundleError if the bundle does not open at all.
    """
    manifest = open_bundle(bundle)
    for name, expected in manifest.files.items():
        found = describe_file(bundle / name).sha256
        yield Check(f"checksum of {name}", found[:12], expected.sha256[:12], found == expected.sha256)

    index, passages = Index.open(bundle / layout.INDEX), Passages(bundle / layout.PASSAGES)
    assert manifest.index is not None  # open_bundle checked it
    rows = (len(index), len(passages), manifest.index.rows)
    yield Check("rows in index, texts, manifest", ", ".join(map(str, rows)), "the same", len(set(rows)) == 1)

    if len(set(rows)) != 1:
        return
    sample = np.sort(np.random.default_rng(SEED).permutation(len(index))[:SAMPLE])
    try:
        texts = [passages.text(int(row)) for row in sample]
    except UnicodeDecodeError as error:
        yield Check("texts are UTF-8", str(error), "UTF-8", passed=False)
        return
    again = np.concatenate(list(_embed(Embedder.open(bundle, manifest.model), texts, progress)))
    tensors = map_tensors(bundle / layout.INDEX)
    codes, scales = tensors["codes"][sample], tensors["scales"][sample]
    least = float((again * dequantize(codes, scales)).sum(axis=1).min())
    name = f"least cosine of {len(sample):,} rows to their texts"
    yield Check(name, f"{least:.5f}", f">= {LEAST_COSINE}", least >= LEAST_COSINE)
    queries = again[:: max(1, len(again) // QUERIES)]
    recall = measure_recall(queries, tensors["codes"], tensors["scales"], index)
    yield Check(f"recall@{TOP_K} against exact search", f"{recall:.4f}", f">= {LEAST_RECALL}", recall >= LEAST_RECALL)


def _embed(embedder: Embedder, texts: list[str], progress: Callable[[int], None]) -> Iterator[Embeddings]:
    for embeddings, _ in embed_documents(embedder, texts):
        progress(len(embeddings))
        yield embeddings


def measure_recall(queries: Embeddings, codes: Codes, scales: Scales, index: Index, top_k: int = TOP_K) -> float:
    """Give the share of the index's hits that exact search counts among the top_k best, 0 to 1.

    queries is (m, dim) float32; codes (rows, dim) int8 and scales (rows,) float32 are the rows that the index holds.
    A hit counts by its score, so that texts which stand in the corpus twice may come in any order.
    """
    top_k = min(top_k, len(codes))
    best = np.full((len(queries), top_k), -np.inf, np.float32)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        scores = queries @ dequantize(codes[rows], scales[rows]).T
        best = np.partition(np.hstack([best, scores]), -top_k, axis=1)[:, -top_k:]
    shares = []
    for query, least in zip(queries, best.min(axis=1), strict=True):
        hits = index.search(query, top_k)
        shares.append(sum(hit.score >= min(float(least), 1.0) - ROUNDING for hit in hits) / top_k)
    return float(np.mean(shares))
