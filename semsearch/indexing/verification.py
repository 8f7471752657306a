"""Check a bundle: its checksums, its embeddings against their texts, and its search against exact search."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semsearch.engine import bundle as layout
from semsearch.engine.bundle import BY_CORES, CorpusInfo, ModelInfo, check_bundle, describe_file
from semsearch.engine.embedder import Embedder
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import LARGEST_CODE, Embeddings, dequantize
from semsearch.engine.rerank.reranker import Reranker
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import map_tensors
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.corpus.passages import stored_columns
from semsearch.indexing.digests import Positions
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.vectors.embed import embed_texts
from semsearch.indexing.vectors.recall import LEAST, TOP_K, Recall, sample_spans, search_samples

VERIFIED_PASSAGES = 256  # passages that are embedded again
LEAST_VERIFIED = 16  # the same at the end of a run
VERIFIED_SHARE = 8  # a run embeds one in this number of its new passages again
# The least cosine between a stored row and its text embedded again: for a row of the same model, whose 8 bit alone lose
# much less, and for one of the float model. Of 30,000 headlines by all-MiniLM-L6-v2, the least of the two was 0.99908.
LEAST_STORED_COSINE, LEAST_FLOAT_COSINE = 0.999, 0.99
ACCURACY_MARGIN = 0.005  # a text can be further from the float32 model than the 1,000 that measured the accuracy
OTHER_PROCESSOR = 0.005  # the recall differs by less if another kind of processor embeds the spans
SEED = 7
FLOAT_ERROR = 1e-3  # difference of numbers that would be equal without the rounding of float32


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    found: str
    expected: str
    passed: bool


def verify(bundle: Path, on_progress: OnProgress = no_progress) -> Iterator[Check]:
    """Check a bundle, yielding each result as soon as it is known. Without texts of its own, only the model is checked.

    If the bundle lacks the model that embedded its passages, no passage is embedded again.
    A file with a wrong checksum ends the checks. Raises BundleError or TensorsError if the bundle does not open.
    """
    manifest, is_damaged = layout.read_manifest(bundle), False
    for count, (name, expected) in enumerate(manifest.files.items()):
        on_progress("check files", count / len(manifest.files))
        layout.check_size(bundle, name, manifest)
        sha256 = describe_file(bundle / name).sha256
        is_damaged |= sha256 != expected.sha256
        yield Check(f"checksum of {name}", sha256[:12], expected.sha256[:12], sha256 == expected.sha256)
    on_progress("check files", 1)
    if is_damaged:  # the other checks could fail anywhere
        return
    own = Embedder.open(bundle, manifest.model) if manifest.has_model else None
    if manifest.rerank is not None:
        Reranker.open(bundle, manifest)
    info = manifest.corpus_or_none
    if info is None or info.vectors is not None:
        return
    check_bundle(bundle)
    length = _check_length(bundle, info)
    yield length
    if not length.passed:
        return
    if own is None:
        yield _check_lengths(bundle, info)
    elif not manifest.model.documents:
        yield _check_rows(bundle, info, own, np.arange(info.rows), VERIFIED_PASSAGES, on_progress)
    yield from _check_recall(bundle, info, own, on_progress)


def verify_new(
    bundle: Path, embedder: Embedder, rows: Positions, most: int, is_measured: bool, on_progress: OnProgress
) -> Iterator[Check]:
    """Check a bundle that was just written, whose checksums are those of its files.

    embedder has embedded the passages; of these rows, which are new, at most `most` are embedded again. The recall is
    checked if it is_measured newly, and if a search does not look at every row.
    """
    manifest = check_bundle(bundle)
    if manifest.rerank is not None:
        Reranker.open(bundle, manifest)
    info = manifest.corpus
    length = _check_length(bundle, info)
    yield length
    if not length.passed:
        return
    if len(rows):
        yield _check_rows(bundle, info, embedder, rows, most, on_progress)
    if is_measured and info.stages is not None:
        yield from _check_recall(bundle, info, Embedder.open(bundle, manifest.model), on_progress)


def verify_given(
    bundle: Path,
    given: Callable[[Positions], Embeddings],
    rows: Positions,
    is_measured: bool,
    on_progress: OnProgress,
) -> Iterator[Check]:
    """Check a bundle without a model that was just written, whose checksums are those of its files.

    given returns the unit embeddings of some of the rows, which the caller of `index` has given; a sample of these is
    compared. The recall is checked as in `verify_new`.
    """
    info = check_bundle(bundle).corpus
    length = _check_length(bundle, info)
    yield length
    if not length.passed:
        return
    if len(rows):
        sample = np.sort(np.random.default_rng(SEED).permutation(rows)[:VERIFIED_PASSAGES])
        yield _check_codes(bundle, sample, given(sample))
    if is_measured and info.stages is not None:
        yield from _check_recall(bundle, info, None, on_progress)


def _check_codes(bundle: Path, rows: Positions, given: Embeddings) -> Check:
    """Compare the codes of rows with their given embeddings, (rows, dim) float32."""
    codes = map_tensors(bundle / layout.INDEX)["codes"][rows]
    steps = np.abs(given).max(axis=1, keepdims=True) / LARGEST_CODE
    found = float(np.abs(given / steps - codes).max())
    expected = 0.5 + FLOAT_ERROR
    name = f"greatest difference of {len(rows):,} rows to their embeddings, in steps of 8 bit"
    return Check(name, f"{found:.4f}", f"<= {expected:g}", found <= expected)


def _check_lengths(bundle: Path, info: CorpusInfo) -> Check:
    """Check that rows have the length 1, as nothing here can embed their texts again."""
    sample = np.random.default_rng(SEED).permutation(info.rows)[:VERIFIED_PASSAGES]
    written = map_tensors(bundle / layout.INDEX)
    lengths = np.linalg.norm(dequantize(written["codes"][sample], written["scales"][sample]), axis=1)
    found = float(np.abs(lengths - 1).max())
    name = f"greatest difference of the lengths of {len(sample):,} rows to 1"
    return Check(name, f"{found:.5f}", f"<= {FLOAT_ERROR:g}", found <= FLOAT_ERROR)


def _check_length(bundle: Path, info: CorpusInfo) -> Check:
    lengths = len(Index.open(bundle / layout.INDEX, info.stages)), len(Passages(bundle / layout.PASSAGES)), info.rows
    return Check("rows in index, texts, manifest", ", ".join(map(str, lengths)), "the same", len(set(lengths)) == 1)


def _check_rows(
    bundle: Path, info: CorpusInfo, embedder: Embedder, rows: Positions, most: int, on_progress: OnProgress
) -> Check:
    """Embed at most `most` of some rows again, and compare them with what is stored."""
    on_progress("embed a sample again", 0)
    passages = Passages(bundle / layout.PASSAGES)
    sample = np.random.default_rng(SEED).permutation(rows)[:most].tolist()
    prefixes = [heading_prefix(passages.metadata(row)) if info.heading_prefix else "" for row in sample]
    texts = [prefix + passages.source(row) for prefix, row in zip(prefixes, sample, strict=True)]
    again = embed_texts(embedder, texts, role="document")
    on_progress("embed a sample again", 1, len(texts))
    written = map_tensors(bundle / layout.INDEX)
    stored = dequantize(written["codes"][sample], written["scales"][sample])
    cosine = float((again * stored).sum(axis=1).min())
    expected = least_cosine(embedder.model, info.embedded_by)
    name = f"least cosine of {len(sample):,} rows to their texts"
    return Check(name, f"{cosine:.5f}", f">= {expected:g}", cosine >= expected)


def _check_recall(
    bundle: Path, info: CorpusInfo, embedder: Embedder | None, on_progress: OnProgress
) -> Iterator[Check]:
    """Compare the search with exact search. embedder has the model for queries, None in a bundle without one."""
    on_progress("measure recall", 0)
    spans = None
    if embedder is not None:
        spans = embed_texts(embedder, sample_spans(stored_columns(bundle / layout.PASSAGES)[0]), role="query")
    written, index = map_tensors(bundle / layout.INDEX), Index.open(bundle / layout.INDEX, info.stages)
    exact = search_samples(spans, written["codes"], written["scales"])
    recalls = {kind: each.recall_of(index) for kind, each in exact.items()}
    on_progress("measure recall", 1)
    least = Recall(LEAST.at_10 - OTHER_PROCESSOR, LEAST.first - OTHER_PROCESSOR)
    for kind, recall in recalls.items():
        name = f"recall@{TOP_K}, first hits of {len(exact[kind].queries)} {kind}"
        found, limit = (f"{each.at_10:.4f}, {each.first:.4f}" for each in (recall, least))
        yield Check(name, found, f">= {limit}", recall.reaches(least))


def least_cosine(model: ModelInfo, embedded_by: Sequence[str]) -> float:
    """Return the least cosine that a row may have to its text embedded again; embedded_by is that of the manifest."""
    if list(embedded_by) == [BY_CORES]:
        return LEAST_STORED_COSINE
    return min(LEAST_FLOAT_COSINE, model.accuracy.get("cosine_min", 1.0) - ACCURACY_MARGIN)
