"""Check a bundle: its checksums, its embeddings against their texts, and its search against exact search."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from export.corpus.embedded import heading_prefix
from export.corpus.passages import stored_columns
from export.index.columns import column_tensors
from export.index.embed import embed_texts
from export.index.index_file import LEAST
from export.index.recall import TOP_K, ExactSearches, Recall, sample_spans, search_samples
from export.progress import OnProgress, no_progress
from function.engine import bundle as layout
from function.engine.bundle import IndexInfo, Manifest, describe_file, open_bundle
from function.engine.embedder import Embedder
from function.engine.keyword.analyzer import find_stemmer, split_terms
from function.engine.keyword.keywords import Keywords
from function.engine.passages import Passages
from function.engine.quantization import Embeddings, dequantize
from function.engine.rerank.reranker import Reranker, probabilities
from function.engine.semantic.index import Index
from function.engine.tensors import map_tensors

SAMPLE = 256  # passages that are embedded again
TEXTS_AT_ONCE = 16  # passages between two reports of progress
LEAST_STORED_COSINE = 0.999  # between a stored row and its text embedded again; the row's 8 bit alone loses much less
OTHER_PROCESSOR = 0.005  # the recall differs by less if another kind of processor embeds the spans
SEED = 7


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    found: str
    expected: str
    passed: bool


def verify(
    bundle: Path,
    on_progress: OnProgress = no_progress,
    embedder: Embedder | None = None,
    exact: ExactSearches | None = None,
) -> Iterator[Check]:
    """Check a bundle, yielding each result as soon as it is known. Without texts of its own, only the model is checked.

    An export states what it knows already: embedder is the one that embedded the passages, None for the bundle's own;
    exact is what exact search finds for the queries that the recall is measured with. If the bundle lacks the model
    that embedded its passages, none are embedded.
    Raises BundleError or TensorsError if the bundle does not open at all.
    """
    manifest = layout.read_manifest(bundle)
    yield from _check_files(bundle, manifest, on_progress)
    yield from _check_reranker(bundle, manifest)
    info = manifest.index
    if info is None or info.vectors is not None:
        Embedder.open(bundle, manifest.model)
        return
    open_bundle(bundle)
    own = Embedder.open(bundle, manifest.model)
    index, passages = Index.open(bundle / layout.INDEX, info.stages), Passages(bundle / layout.PASSAGES)
    lengths = len(index), len(passages), info.rows
    is_whole = len(set(lengths)) == 1
    yield Check("rows in index, texts, manifest", ", ".join(map(str, lengths)), "the same", is_whole)
    if not is_whole:
        return
    yield from _check_columns(bundle, info, passages)
    rows = [int(row) for row in np.random.default_rng(SEED).permutation(len(index))[:SAMPLE]]
    try:
        prefixes = [heading_prefix(passages.metadata(row)) if info.heading_prefix else "" for row in rows]
        texts = [prefix + passages.text(row) for prefix, row in zip(prefixes, rows, strict=True)]
        spans = sample_spans(stored_columns(bundle / layout.PASSAGES)[0]) if exact is None else []
    except UnicodeDecodeError as error:
        yield Check("texts are UTF-8", str(error), "UTF-8", passed=False)
        return
    yield from _check_keywords(bundle, info, rows, texts)
    if embedder is not None or not manifest.model.documents:
        again = _embed_again(embedder or own, texts, on_progress)
        cosine = float((again * dequantize(*index.codes_of(np.array(rows)))).sum(axis=1).min())
        name = f"least cosine of {len(rows):,} rows to their texts"
        yield Check(name, f"{cosine:.5f}", f">= {LEAST_STORED_COSINE}", cosine >= LEAST_STORED_COSINE)
    on_progress("measure recall", 0)
    slack = OTHER_PROCESSOR if exact is None else 0.0
    if exact is None:
        written = map_tensors(bundle / layout.INDEX)
        exact = search_samples(embed_texts(own, spans, role="query"), written["codes"], written["scales"])
    recalls = {kind: each.recall_of(index) for kind, each in exact.items()}
    on_progress("measure recall", 1)
    least = Recall(LEAST.at_10 - slack, LEAST.first - slack)
    for kind, recall in recalls.items():
        name = f"recall@{TOP_K}, first hits of {len(exact[kind].queries)} {kind}"
        found, expected = (f"{each.at_10:.4f}, {each.first:.4f}" for each in (recall, least))
        yield Check(name, found, f">= {expected}", recall.reaches(least))


def _check_files(bundle: Path, manifest: Manifest, on_progress: OnProgress) -> Iterator[Check]:
    for count, (name, expected) in enumerate(manifest.files.items()):
        on_progress("check files", count / len(manifest.files))
        layout.check_size(bundle, name, manifest)
        found = describe_file(bundle / name).sha256
        yield Check(f"checksum of {name}", found[:12], expected.sha256[:12], found == expected.sha256)
    on_progress("check files", 1)


def _check_reranker(bundle: Path, manifest: Manifest) -> Iterator[Check]:
    """Score a pair; no check in a bundle without a reranker."""
    if manifest.rerank is None:
        return
    reranker = Reranker.open(bundle, manifest)
    (score,) = probabilities(reranker.score(reranker.tokenize_pairs("a query", ["a text"])))
    yield Check("score of a pair by the reranker", f"{score:.6f}", "0 to 1", 0 <= score <= 1)


def _check_columns(bundle: Path, info: IndexInfo, passages: Passages) -> Iterator[Check]:
    """Compare the columns with those that the metadata of all passages makes again; no check without columns."""
    if not info.columns:
        return
    try:
        metadata = (passages.metadata(row) for row in range(len(passages)))
        again, written = column_tensors(metadata, info.columns), map_tensors(bundle / layout.COLUMNS)
        different = {name for name in again if name in written and not np.array_equal(again[name], written[name])}
        differing = sorted(again.keys() ^ written.keys() | different)
        found = ", ".join(differing) + " different" if differing else "equal"
    except ValueError as error:  # the metadata's UTF-8, JSON or types are wrong, or the file is
        found = str(error)
    yield Check("columns, metadata of the texts", found, "equal", found == "equal")


def _check_keywords(bundle: Path, info: IndexInfo, sample: list[int], texts: list[str]) -> Iterator[Check]:
    """Look up every term of these texts, the rows of `sample`; nothing is checked in a bundle without keywords.

    In a bundle with several languages, a row must have all terms of its text in one of them.
    """
    if info.keywords is None:
        return
    keywords = Keywords(bundle / layout.KEYWORDS, info.keywords, info.rows)
    stems = [find_stemmer(language) for language in info.keywords.stemmers]
    rows_of = cache(keywords.rows_of)

    def has(row: int, term: str) -> bool:
        place = np.searchsorted(rows := rows_of(term), row)
        return bool(place < len(rows) and rows[place] == row)

    missing: list[str] = []
    for row, text in zip(sample, texts, strict=True):
        by_stem = [dict.fromkeys(split_terms(text, stem)) for stem in stems]
        without = [[term for term in terms if not has(row, term)] for terms in by_stem]
        missing.extend(sorted(without, key=len)[0])
    missing = list(dict.fromkeys(missing))
    name = f"terms of {len(texts):,} texts without their postings"
    yield Check(name, ", ".join([f"{len(missing):,}", *missing[:3]]), "0", not missing)


def _embed_again(embedder: Embedder, texts: list[str], on_progress: OnProgress) -> Embeddings:
    """Return the unit embeddings of texts, (n, dim) float32."""
    step = "embed a sample again"
    on_progress(step, 0)
    chunks: list[Embeddings] = []
    for begin in range(0, len(texts), TEXTS_AT_ONCE):
        chunks.append(embed_texts(embedder, texts[begin : begin + TEXTS_AT_ONCE], role="document"))
        done = min(begin + TEXTS_AT_ONCE, len(texts))
        on_progress(step, done / len(texts), done)
    return np.concatenate(chunks)
