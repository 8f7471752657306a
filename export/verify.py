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
from function.engine.quantization import Embeddings, dequantize
from function.engine.tensors import map_tensors

SAMPLE = 5_000  # passages embedded again
QUERIES = 500  # of them, asked as queries
TOP_K = 10
LEAST_COSINE = 0.999  # between a stored row and its text embedded again; 8 bit alone gives 0.9998
LEAST_RECALL = 0.98  # of the index's own 8 bit; 0.995 is usual
SEED = 7


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

    sample = np.sort(np.random.default_rng(SEED).permutation(len(index))[:SAMPLE])
    texts = [passages.text(int(row)) for row in sample]
    again = np.concatenate(list(_embed(Embedder.open(bundle, manifest.model), texts, progress)))
    tensors = map_tensors(bundle / layout.INDEX)
    codes, scales = tensors["codes"][sample], tensors["scales"][sample]
    least = float((again * dequantize(codes, scales)).sum(axis=1).min())
    name = f"least cosine of {len(sample):,} rows to their texts"
    yield Check(name, f"{least:.5f}", f">= {LEAST_COSINE}", least >= LEAST_COSINE)
    recall = measure_recall(again[:: max(1, len(again) // QUERIES)], again, Index(codes, scales))
    yield Check(f"recall@{TOP_K} against exact search", f"{recall:.4f}", f">= {LEAST_RECALL}", recall >= LEAST_RECALL)


def _embed(embedder: Embedder, texts: list[str], progress: Callable[[int], None]) -> Iterator[Embeddings]:
    for embeddings, _ in embed_documents(embedder, texts):
        progress(len(embeddings))
        yield embeddings


def measure_recall(queries: Embeddings, exact: Embeddings, index: Index, top_k: int = TOP_K) -> float:
    """Give the share of each query's top_k exact neighbours that the index finds, 0 to 1.

    queries is (m, dim) and exact (n, dim) float32, the rows of the index before they became 8 bit.
    """
    top_k = min(top_k, len(exact))
    shares = []
    for query in queries:
        neighbours = np.argpartition(-(exact @ query), top_k - 1)[:top_k]
        hits = [hit.row for hit in index.search(query, top_k)]
        shares.append(len(np.intersect1d(neighbours, hits)) / top_k)
    return float(np.mean(shares))
