"""Is the bundle what it says it is? Its checksums, its vectors and its neighbours, checked by doing the work again."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from export.indexer import embed_documents
from export.recall import LEAST_RECALL, QUERIES, TOP_K, measure_recall
from function.engine import bundle as layout
from function.engine.bundle import describe_file, open_bundle
from function.engine.embedder import Embedder
from function.engine.index import Index
from function.engine.passages import Passages
from function.engine.quantization import Embeddings, dequantize
from function.engine.tensors import map_tensors

SAMPLE = 5_000  # passages embedded again
LEAST_COSINE = 0.999  # between a stored row and its text embedded again; 8 bit alone gives 0.9998
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
    A bundle with a model and no texts yet is checked as far as it goes.
    Raises BundleError if the bundle does not open at all.
    """
    manifest = layout.read_manifest(bundle)
    for name, expected in manifest.files.items():
        layout.check_size(bundle, name, manifest)
        found = describe_file(bundle / name).sha256
        yield Check(f"checksum of {name}", found[:12], expected.sha256[:12], found == expected.sha256)
    if manifest.index is None:
        Embedder.open(bundle, manifest.model)
        return

    open_bundle(bundle)
    index, passages = Index.open(bundle / layout.INDEX), Passages(bundle / layout.PASSAGES)
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
