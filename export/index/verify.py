"""Check a bundle: its checksums, its embeddings against their texts, and its search against exact search.

`verify` has only the bundle, so it embeds many texts again. `verify_export` also has the rows that the export has just
embedded: it compares them with the written ones and embeds few texts again.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from export.corpus.embedded import heading_prefix
from export.corpus.passages import stored_columns
from export.files.tensor_file import release
from export.index.columns import column_tensors
from export.index.embed import embed_texts
from export.index.index_file import LEAST
from export.index.recall import TOP_K, ExactSearches, Recall, sample_spans, search_samples
from export.progress import OnProgress, no_progress
from function.engine import bundle as layout
from function.engine.arrays import AnyArray
from function.engine.bundle import IndexInfo, Manifest, describe_file, open_bundle
from function.engine.embedder import Embedder
from function.engine.keyword.analyzer import find_stemmer, split_terms
from function.engine.keyword.keywords import Keywords
from function.engine.passages import Passages
from function.engine.quantization import Codes, Embeddings, Scales, dequantize
from function.engine.rerank.reranker import Reranker, probabilities
from function.engine.semantic.index import Index
from function.engine.tensors import map_tensors

SAMPLE, TEXTS_AT_ONCE = 5_000, 256  # most and fewest passages that `verify` embeds again
SECONDS = 20.0  # after these no further TEXTS_AT_ONCE are embedded
SAMPLE_AFTER_EXPORT = 64  # passages that `verify_export` embeds again, one by one; the export embedded them in batches
SECONDS_AFTER_EXPORT = 10.0
LEAST_STORED_COSINE = 0.999  # between a stored row and its text embedded again; the row's 8 bit alone loses much less
OTHER_PROCESSOR = 0.005  # the recall differs by less if another kind of processor embeds the spans
SEED = 7
ROWS_AT_ONCE = 65_536  # rows that are compared at a time

Clock = Callable[[], float]  # counts seconds


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    found: str
    expected: str
    passed: bool


def verify(
    bundle: Path, on_progress: OnProgress = no_progress, seconds: float = SECONDS, clock: Clock = time.monotonic
) -> Iterator[Check]:
    """Check a bundle, yielding each result as soon as it is known.

    Texts are embedded again for this number of seconds, at least TEXTS_AT_ONCE and at most SAMPLE of them.
    If the bundle has no texts of its own, the model alone is checked.
    Raises BundleError or TensorsError if the bundle does not open at all.
    """
    manifest = layout.read_manifest(bundle)
    yield from _check_files(bundle, manifest, on_progress)
    yield from _check_reranker(bundle, manifest)
    if manifest.index is None or manifest.index.vectors is not None:
        Embedder.open(bundle, manifest.model)
        return
    embed_again = partial(_embed_again, at_once=TEXTS_AT_ONCE, seconds=seconds, clock=clock, on_progress=on_progress)
    yield from _check_corpus(bundle, None, SAMPLE, None, None, embed_again, on_progress)


def verify_export(
    bundle: Path,
    codes: Codes,
    scales: Scales,
    exact: ExactSearches,
    on_progress: OnProgress = no_progress,
    embedder: Embedder | None = None,
    seconds: float = SECONDS_AFTER_EXPORT,
    clock: Clock = time.monotonic,
) -> Iterator[Check]:
    """Check a newly written bundle against the rows of the index that it was written from; yield each check's result.

    codes is (rows, dim) int8 and scales (rows,) float32, as the export quantized them. Texts are embedded again for
    this number of seconds, at least one and at most SAMPLE_AFTER_EXPORT of them.
    exact is what exact search finds for the queries that the recall is measured with. embedder is the one that embedded
    the passages, None for the bundle's own.
    Raises BundleError or TensorsError if the bundle does not open.
    """
    manifest = open_bundle(bundle)
    yield from _check_files(bundle, manifest, on_progress)
    yield from _check_reranker(bundle, manifest)
    embed_again = partial(_embed_again, at_once=1, seconds=seconds, clock=clock, on_progress=on_progress)
    yield from _check_corpus(bundle, (codes, scales), SAMPLE_AFTER_EXPORT, embedder, exact, embed_again, on_progress)


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


def _check_corpus(
    bundle: Path,
    embedded: tuple[Codes, Scales] | None,
    sample: int,
    embedder: Embedder | None,
    exact: ExactSearches | None,
    embed_again: Callable[[Embedder, list[str]], Embeddings],
    on_progress: OnProgress,
) -> Iterator[Check]:
    """Check the corpus, and embed `sample` of its texts.

    `embedded` are the rows that the index must hold, if known. embedder is None for the bundle's own. If the bundle
    lacks the model that embedded its passages, none are embedded.
    """
    manifest = open_bundle(bundle)
    info = manifest.index
    assert info is not None  # open_bundle checked it
    index, passages = Index.open(bundle / layout.INDEX, info.stages), Passages(bundle / layout.PASSAGES)
    lengths = len(index), len(passages), info.rows
    is_whole = len(set(lengths)) == 1
    yield Check("rows in index, texts, manifest", ", ".join(map(str, lengths)), "the same", is_whole)
    written = map_tensors(bundle / layout.INDEX)
    codes, scales = embedded or (written["codes"], written["scales"])
    if embedded is not None:
        is_equal = _are_rows_equal(written, codes, scales)
        yield Check("rows in the index, rows embedded", "equal" if is_equal else "different", "equal", is_equal)
        is_whole &= is_equal
    if not is_whole:
        return
    yield from _check_columns(bundle, info, passages)
    # in random order, so that the first ones of them are a sample too
    rows = [int(row) for row in np.random.default_rng(SEED).permutation(len(index))[:sample]]
    try:
        prefixes = [heading_prefix(passages.metadata(row)) if info.heading_prefix else "" for row in rows]
        texts = [prefix + passages.text(row) for prefix, row in zip(prefixes, rows, strict=True)]
        spans = sample_spans(stored_columns(bundle / layout.PASSAGES)[0]) if exact is None else []
    except UnicodeDecodeError as error:
        yield Check("texts are UTF-8", str(error), "UTF-8", passed=False)
        return
    yield from _check_keywords(bundle, info, rows, texts)
    own = Embedder.open(bundle, manifest.model)
    if embedder is None and not manifest.model.documents:
        embedder = own
    if embedder is not None:
        again = embed_again(embedder, texts)
        stored = dequantize(*index.codes_of(np.array(rows[: len(again)])))
        cosine = float((again * stored).sum(axis=1).min())
        name = f"least cosine of {len(again):,} rows to their texts"
        yield Check(name, f"{cosine:.5f}", f">= {LEAST_STORED_COSINE}", cosine >= LEAST_STORED_COSINE)
    on_progress("measure recall", 0)
    exact = exact or search_samples(embed_texts(own, spans, role="query"), codes, scales)
    recalls = {kind: each.recall_of(index) for kind, each in exact.items()}
    on_progress("measure recall", 1)
    slack = 0.0 if embedded is not None else OTHER_PROCESSOR
    least = Recall(LEAST.at_10 - slack, LEAST.first - slack)
    for kind, recall in recalls.items():
        name = f"recall@{TOP_K}, first hits of {len(exact[kind].queries)} {kind}"
        found, expected = (f"{each.at_10:.4f}, {each.first:.4f}" for each in (recall, least))
        yield Check(name, found, f">= {expected}", recall.reaches(least))


def _are_rows_equal(written: Mapping[str, AnyArray], codes: Codes, scales: Scales) -> bool:
    """Return whether an index holds these rows, compared a block at a time: each comparison takes a byte a value."""
    if len(written["codes"]) != len(codes):
        return False
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        if not np.array_equal(written["codes"][rows], codes[rows]):
            return False
        if not np.array_equal(written["scales"][rows], scales[rows]):
            return False
        release(written["codes"])  # or both would be in memory whole
        release(codes)
    return True


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


def _embed_again(
    embedder: Embedder, texts: list[str], at_once: int, seconds: float, clock: Clock, on_progress: OnProgress
) -> Embeddings:
    """Return the unit embeddings of the first texts, embedded `at_once` at a time until these seconds are over.

    The result is (n, dim) float32, where n is at least `at_once` if there are as many texts.
    """
    step = "embed a sample again"
    on_progress(step, 0)
    began = clock()
    chunks: list[Embeddings] = []
    done, used = 0, 0.0
    while done < len(texts) and (done == 0 or used < seconds):
        chunks.append(embed_texts(embedder, texts[done : done + at_once], role="document"))
        done = sum(map(len, chunks))
        used = clock() - began
        share = max(done / len(texts), used / seconds if seconds else 1.0)
        on_progress(step, min(share, 0.99), done)
    on_progress(step, 1, done)
    return np.concatenate(chunks)
