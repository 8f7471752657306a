"""Learn a query table: one vector for each token, whose sums come close to the model's embeddings of texts.

The table is fitted to what the model itself embeds (distillation): spans of all lengths of the corpus. Documents
embedded by a model and queries by a lookup: LightRetriever, https://arxiv.org/abs/2505.12260. Vectors start as the
model's embedding of each token alone with a weight that falls with its frequency, as in model2vec,
https://github.com/MinishLab/model2vec, which does not learn from the corpus.

Left out: a table for pairs of words, which changed nDCG@10 by -0.006 and +0.004 on two collections; and coarser vectors
for tokens that no span has, which save a tenth of the bytes, but a query of one such word finds 52 instead of 58 % of
the model's ten best.
"""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from os import cpu_count
from pathlib import Path

import numpy as np

from export.corpus.corpus import heading_prefix
from export.files import save_tensors
from export.index.indexer import take, write_manifest
from export.index.recall import TOP_K
from export.progress import OnProgress, no_progress
from function.engine.bundle import INDEX, PASSAGES, QUERY_TABLE, Manifest, QueriesInfo, describe_file, read_manifest
from function.engine.embedder import Embedder, TokenIds
from function.engine.keyword.analyzer import WORD
from function.engine.passages import Passages
from function.engine.quantization import Codes, Embeddings
from function.engine.query_table import VECTORS, QueryTable
from function.engine.semantic.index import Index

FITTED_SPANS = 40_000  # texts to fit to; 160,000 gained nothing on CISI
SPANS_PER_PASSAGE = 20  # at most
MOST_NEW = 0.1  # share of the passages that an update can add before the table is learned again
UNSEEN_SPANS = 500  # spans to measure with
FITTED_WORDS = (2, 96)  # words of the shortest and the longest span; CISI gains 0.035 nDCG@10 beside up to 32
TITLE_SHARE = 0.1  # share of the spans that are the titles and headings of passages, where there are some
HALVING_SHARE = 0.001  # share of a corpus's tokens at which a token's vector starts with half of its length
# Adam, https://arxiv.org/abs/1412.6980: five epochs; the rate falls to 0
STEPS, TEXTS_PER_STEP, LEARNING_RATE = 400, 512, 0.002
DECAYS, EPSILON = (0.9, 0.999), 1e-8
# Steps of rounding in the standard deviation of a value. CISI's nDCG@10, semantic and hybrid, with 1.2: 0.373, 0.424;
# with 8: 0.365, 0.421; by the model: 0.408, 0.443. SciFact's, and the MB that a browser loads, with 1.2: 0.637, 0.724
# and 3.5 MB; with 1: 0.629, 0.722 and 3.2 MB.
STEPS_PER_DEVIATION = 1.2
SEED = 7
EMBEDDED_AT_ONCE = 2_048  # texts between two reports of the progress
LEARNING = "learn the queries"


def write_table(
    folder: Path,
    manifest: Manifest,
    embedder: Embedder,
    questions: Sequence[str] = (),
    on_progress: OnProgress = no_progress,
) -> Manifest:
    """Learn the query table of a bundle, write it into the folder, and return the new manifest, which is written too.

    embedder is the model of the queries. questions are texts that the table is fitted to besides spans of the corpus.
    """
    vectors, info = learn_table(folder, manifest, embedder, questions, on_progress)
    save_tensors(folder / QUERY_TABLE, {VECTORS: vectors})
    return write_queries(folder, manifest, info)


def keep_table(bundle: Path, folder: Path, manifest: Manifest, new_rows: int) -> Manifest | None:
    """Copy the query table of an older bundle into a folder, and return the new manifest, which is written too.

    new_rows is how many passages the older bundle lacks. Return None if it has no table, or if more than MOST_NEW of
    the passages are newer than the table.
    """
    older = read_manifest(bundle)
    if older.queries is None or (new := older.queries.new_rows + new_rows) > MOST_NEW * manifest.corpus.rows:
        return None
    take(bundle, older, QUERY_TABLE, folder / QUERY_TABLE)
    return write_queries(folder, manifest, replace(older.queries, new_rows=new))


def write_queries(folder: Path, manifest: Manifest, info: QueriesInfo) -> Manifest:
    """Write the manifest of a folder that has a query table, and return it."""
    files = manifest.files | {QUERY_TABLE: describe_file(folder / QUERY_TABLE)}
    manifest = replace(manifest, queries=info, files=files)
    write_manifest(folder, manifest)
    return manifest


def learn_table(
    bundle: Path,
    manifest: Manifest,
    embedder: Embedder,
    questions: Sequence[str] = (),
    on_progress: OnProgress = no_progress,
) -> tuple[Codes, QueriesInfo]:
    """Return the vectors of all tokens, (tokens, dim) int8, for a bundle in a folder, and how close they come."""
    passages = Passages(bundle / PASSAGES)
    drawn = draw_spans(passages, min(FITTED_SPANS, SPANS_PER_PASSAGE * len(passages)) + UNSEEN_SPANS)
    tokens = embedder.tokenize([*drawn, *questions], role="query")
    counts = np.bincount(np.concatenate([text.ids for text in tokens]), minlength=embedder.vocabulary_size)
    special = embedder.tokenize([""])[0].ids
    alone = [TokenIds([*special[:1], token, *special[1:]], False) for token in range(len(counts))]
    embeddings = _embed([*alone, *tokens], embedder, on_progress)
    start, wanted = embeddings[: len(alone)], embeddings[len(alone) :]
    start *= (HALVING_SHARE / (HALVING_SHARE + counts / counts.sum())).astype(np.float32)[:, np.newaxis]
    vectors = fit(start, tokens[UNSEEN_SPANS:], wanted[UNSEEN_SPANS:], on_progress)
    codes = np.rint(vectors * (STEPS_PER_DEVIATION / vectors.std())).clip(-127, 127).astype(np.int8)
    found = QueryTable(codes).embed(tokens[:UNSEEN_SPANS])
    index = Index.open(bundle / INDEX, manifest.corpus.stages)
    accuracy = compare(index, wanted[:UNSEEN_SPANS], found)
    on_progress(LEARNING, 1)
    return codes, QueriesInfo(spans=len(tokens) - UNSEEN_SPANS, accuracy=accuracy)


def draw_spans(passages: Passages, count: int) -> list[str]:
    """Return spans of random lengths and places, and titles and headings of passages, in random order.

    A word is one of `WORD`, a character in Chinese, Japanese and Thai. A short text is a span as a whole.
    """
    random = np.random.default_rng(SEED)
    shortest, longest = np.log(FITTED_WORDS)
    spans = []
    for row in random.integers(len(passages), size=count).tolist():
        if random.random() < TITLE_SHARE and (heading := heading_prefix(passages.metadata(row)).strip()):
            spans.append(heading)
            continue
        text = passages.text(row)
        words = [(word.start(), word.end()) for word in re.finditer(WORD, text)] or [(0, len(text))]
        length = min(len(words), round(np.exp(random.uniform(shortest, longest))))
        first = int(random.integers(len(words) - length, endpoint=True))
        spans.append(text[words[first][0] : words[first + length - 1][1]])
    return spans


def _embed(tokens: Sequence[TokenIds], embedder: Embedder, on_progress: OnProgress) -> Embeddings:
    """Return the model's embeddings of texts, (n, dim) float32."""
    found = np.empty((len(tokens), embedder.model.dim), np.float32)
    with ThreadPoolExecutor(cpu_count()) as pool:
        for begin in range(0, len(tokens), EMBEDDED_AT_ONCE):
            part = slice(begin, begin + EMBEDDED_AT_ONCE)
            found[part] = embedder.embed(tokens[part], pool.map)
            on_progress(LEARNING, 0.8 * begin / len(tokens))
    return found


def fit(start: Embeddings, texts: Sequence[TokenIds], wanted: Embeddings, on_progress: OnProgress) -> Embeddings:
    """Return vectors (tokens, dim) float32, from `start` on, whose sums over the tokens of texts are close to `wanted`.

    wanted is (texts, dim) float32, of unit length; the cosine of each sum to its row is maximized. Vectors of tokens
    that no text has stay as they are.
    """
    lengths = np.array([len(text.ids) for text in texts])
    used, ids = np.unique(np.concatenate([text.ids for text in texts]), return_inverse=True)
    pieces, vectors = np.split(ids, np.cumsum(lengths)[:-1]), start[used]
    moments = np.zeros_like(vectors), np.zeros_like(vectors)
    random, not_empty = np.random.default_rng(SEED), np.flatnonzero(lengths)
    epochs = -(-STEPS * TEXTS_PER_STEP // len(not_empty))
    order = np.concatenate([random.permutation(not_empty) for _ in range(epochs)])[: STEPS * TEXTS_PER_STEP]
    for step, rows in enumerate(np.split(order, range(TEXTS_PER_STEP, len(order), TEXTS_PER_STEP))):
        tokens, texts_of = np.concatenate([pieces[row] for row in rows]), np.repeat(np.arange(len(rows)), lengths[rows])
        sums = np.add.reduceat(vectors[tokens], np.cumsum(lengths[rows]) - lengths[rows])
        norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        units = sums / norms
        cosines = (units * wanted[rows]).sum(axis=1, keepdims=True)
        # the gradients of 1 - the mean cosine with respect to the sums, and then to the vectors of the tokens
        gradients = (cosines * units - wanted[rows]) / (norms * len(rows))
        by_token = np.argsort(tokens, kind="stable")
        changed, first = np.unique(tokens[by_token], return_index=True)
        change = np.add.reduceat(gradients[texts_of[by_token]], first)
        for moment, decay, value in zip(moments, DECAYS, (change, change**2), strict=True):
            moment *= decay
            moment[changed] += (1 - decay) * value
        mean, square = (moment / (1 - decay ** (step + 1)) for moment, decay in zip(moments, DECAYS, strict=True))
        vectors -= LEARNING_RATE * (1 - step / STEPS) * mean / (np.sqrt(square) + EPSILON)
        on_progress(LEARNING, 0.8 + 0.19 * step / STEPS)
    fitted = start.copy()
    fitted[used] = vectors
    return fitted


def compare(index: Index, wanted: Embeddings, found: Embeddings) -> dict[str, float]:
    """Return how close embeddings (n, dim) float32 are to the model's: mean cosine, and the share of its best hits."""
    hits = [[{hit.row for hit in index.search(query, TOP_K)} for query in each] for each in (wanted, found)]
    shares = [len(own & other) / len(own) for own, other in zip(*hits, strict=True)]
    return {
        "texts": float(len(wanted)),
        "cosine_mean": round(float((wanted * found).sum(axis=1).mean()), 4),
        "recall_at_10": round(float(np.mean(shares)), 4),
    }
