"""Learn a query table: one vector for each token. The sum of a text's vectors approximates the model's embedding of it.

The table is fitted to the model's embeddings of spans of the corpus (distillation). LightRetriever,
https://arxiv.org/abs/2505.12260, also embeds documents with a model and queries with a lookup. Each vector starts as
the model's embedding of the token alone, with a weight that falls with the token's frequency. model2vec,
https://github.com/MinishLab/model2vec, starts in the same way, but does not learn from the corpus.

Left out: a table for pairs of words, which changed nDCG@10 by -0.006 and +0.004 on two collections. Coarser vectors for
tokens that occur in no span, which save a tenth of the bytes: a query of one such word then finds 52 instead of 58 % of
the model's ten best.
"""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from semsearch.engine.bundle import (
    BY_TABLE,
    INDEX,
    PASSAGES,
    QUERY_TABLE,
    Manifest,
    QueriesInfo,
    read_manifest,
)
from semsearch.engine.cores import usable_cores
from semsearch.engine.embedder import VECTORS, Embedder, QueryTable, TokenIds
from semsearch.engine.keyword.analyzer import WORD
from semsearch.engine.passages import Passages
from semsearch.engine.quantization import Codes, Embeddings
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import map_tensors
from semsearch.indexing.bundles import describe, take, write_manifest
from semsearch.indexing.corpus.corpus import heading_prefix
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.questions import read_questions
from semsearch.indexing.tensor_files import save_tensors
from semsearch.indexing.vectors.recall import TOP_K

# Number of spans to fit to: one for each BYTES_PER_SPAN of the texts, but FEW_SPANS at least, FITTED_SPANS at most, and
# never more than MOST_PER_PASSAGE for each passage. nDCG@10, semantic and hybrid (bench/spans.py of commit 4bd46f1d):
#   CISI, 1.1 MB: 0.364 and 0.429 with 8,000, 0.368 and 0.430 with 12,000, 0.375 and 0.434 with 40,000
#   SciFact, 7.8 MB: 0.604 and 0.720 with 8,000, 0.621 and 0.725 with 16,000, 0.638 and 0.725 with 40,000
BYTES_PER_SPAN, MOST_PER_PASSAGE = 400, 20
FEW_SPANS, FITTED_SPANS = 12_000, 40_000  # 160,000 gained nothing on CISI
MOST_NEW = 0.1  # maximum share of the passages that updates add before the table is learned again
UNSEEN_SPANS = 500  # spans that the table is not fitted to, to measure its accuracy
# Words of the shortest and the longest span. CISI's nDCG@10 is 0.035 higher than with a maximum of 32.
FITTED_WORDS = (2, 96)
TITLE_SHARE = 0.1  # share of the spans that are titles and headings, if the drawn passages have any
HALVING_SHARE = 0.001  # a token that makes up this share of the tokens of all spans starts with half of its length
# Adam, https://arxiv.org/abs/1412.6980: EPOCHS of the spans in LEAST_STEPS to STEPS; the rate falls to 0. In more
# epochs of few spans, the table fits these and less any others.
EPOCHS, LEAST_STEPS, STEPS = 10, 100, 400
TEXTS_PER_STEP, LEARNING_RATE = 512, 0.002
DECAYS, SMALLEST_DIVISOR = (0.9, 0.999), 1e-8
# Number of rounding steps in one standard deviation of the values. nDCG@10 of SciFact, semantic and hybrid, and what a
# browser loads: 0.637, 0.724 and 3.5 MB with 1.2 steps; 0.629, 0.722 and 3.2 MB with 1 step.
STEPS_PER_DEVIATION = 1.2
SEED = 7
TEXT_OFFSETS = "texts.offsets"  # where each text of a passage begins, in bytes
EMBEDDED_AT_ONCE = 2_048  # texts that are embedded between two reports of the progress
LEARNING = "learn the queries"


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What embeds queries. The options of `index` of these names explain the fields."""

    queries: str
    questions: Path | None
    learn: bool


def learn_queries(
    folder: Path,
    manifest: Manifest,
    options: QueryOptions,
    *,
    older: Path | None,
    new_rows: int,
    on_progress: OnProgress,
) -> Manifest:
    """Write the query table if one is wanted, that of the older bundle if it is new enough, and return the manifest.

    new_rows is the number of passages that the older bundle lacks.
    """
    if options.queries != BY_TABLE:
        return manifest
    if older is not None and options.questions is None and not options.learn:
        kept = keep_table(older, folder, manifest, new_rows)
        if kept is not None:
            return kept
    asked = []
    if options.questions is not None:
        asked = [question.text for question in read_questions(options.questions)[0]]
    return write_table(folder, manifest, Embedder.open(folder, manifest.model), asked, on_progress)


def write_table(
    folder: Path,
    manifest: Manifest,
    embedder: Embedder,
    questions: Sequence[str] = (),
    on_progress: OnProgress = no_progress,
) -> Manifest:
    """Learn the query table of the bundle in a folder. Write the table and the new manifest, and return the manifest.

    embedder is the model for queries. questions are further texts to fit to, besides the spans of the corpus.
    """
    vectors, info = learn_table(folder, manifest, embedder, questions, on_progress)
    save_tensors(folder / QUERY_TABLE, {VECTORS: vectors})
    return write_queries(folder, manifest, info)


def keep_table(bundle: Path, folder: Path, manifest: Manifest, new_rows: int) -> Manifest | None:
    """Copy the query table of an older bundle into a folder. Write the new manifest, and return it.

    new_rows is the number of passages that the older bundle lacks. Returns None, and writes nothing, if that bundle has
    no table or if more than MOST_NEW of the passages are newer than its table.
    """
    older = read_manifest(bundle)
    if older.queries is None or (new := older.queries.new_rows + new_rows) > MOST_NEW * manifest.corpus.rows:
        return None
    take(bundle, older, QUERY_TABLE, folder / QUERY_TABLE)
    return write_queries(folder, manifest, replace(older.queries, new_rows=new))


def write_queries(folder: Path, manifest: Manifest, info: QueriesInfo) -> Manifest:
    """Write the manifest of a folder that contains a query table, and return the manifest."""
    files = manifest.files | {QUERY_TABLE: describe(folder / QUERY_TABLE)}
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
    """Return the vectors of all tokens, (tokens, dim) int8, for the bundle in a folder, and their accuracy."""
    passages = Passages(bundle / PASSAGES)
    size = int(map_tensors(bundle / PASSAGES)[TEXT_OFFSETS][-1])
    drawn = draw_spans(passages, count_spans(len(passages), size) + UNSEEN_SPANS)
    tokens = embedder.tokenize([*drawn, *questions], role="query")
    alone = single_tokens(embedder)
    embeddings = embed_tokens([*alone, *tokens], embedder, on_progress)
    wanted = embeddings[len(alone) :]
    start = first_vectors(embeddings[: len(alone)], tokens)
    codes = rounded(fit(start, tokens[UNSEEN_SPANS:], wanted[UNSEEN_SPANS:], on_progress))
    found = QueryTable(codes).embed(tokens[:UNSEEN_SPANS])
    index = Index.open(bundle / INDEX, manifest.corpus.stages)
    accuracy = compare(index, wanted[:UNSEEN_SPANS], found)
    on_progress(LEARNING, 1)
    return codes, QueriesInfo(spans=len(tokens) - UNSEEN_SPANS, accuracy=accuracy)


def count_spans(passages: int, size: int) -> int:
    """Return the number of spans that a table is fitted to, for a number of passages that have `size` bytes of text."""
    return min(FITTED_SPANS, MOST_PER_PASSAGE * passages, max(FEW_SPANS, size // BYTES_PER_SPAN))


def draw_spans(passages: Passages, count: int) -> list[str]:
    """Return spans of passages with random lengths and positions, and titles and headings of passages, in random order.

    `WORD` defines a word; in Chinese, Japanese and Thai it is one character. A span never exceeds its text.
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


def single_tokens(embedder: Embedder) -> list[TokenIds]:
    """Return each token of the model as a text of its own, with the special tokens around it."""
    special = embedder.tokenize([""])[0].ids
    return [TokenIds([*special[:1], token, *special[1:]], False) for token in range(embedder.vocabulary_size)]


def first_vectors(alone: Embeddings, texts: Sequence[TokenIds]) -> Embeddings:
    """Return the vectors to begin with, (tokens, dim) float32: those of single tokens, shorter for frequent ones.

    alone is (tokens, dim) float32. texts are those that the table is fitted to and measured with.
    """
    counts = np.bincount([id for text in texts for id in text.ids], minlength=len(alone))
    weights = (HALVING_SHARE / (HALVING_SHARE + counts / counts.sum())).astype(np.float32)
    found: Embeddings = alone * weights[:, np.newaxis]
    return found


def rounded(vectors: Embeddings) -> Codes:
    """Return the vectors as whole numbers, (tokens, dim) int8."""
    codes: Codes = np.rint(vectors * (STEPS_PER_DEVIATION / vectors.std())).clip(-127, 127).astype(np.int8)
    return codes


def embed_tokens(tokens: Sequence[TokenIds], embedder: Embedder, on_progress: OnProgress) -> Embeddings:
    """Return the model's embeddings of texts, (n, dim) float32."""
    found = np.empty((len(tokens), embedder.model.dim), np.float32)
    with ThreadPoolExecutor(usable_cores()) as pool:
        for begin in range(0, len(tokens), EMBEDDED_AT_ONCE):
            part = slice(begin, begin + EMBEDDED_AT_ONCE)
            found[part] = embedder.embed(tokens[part], pool.map)
            on_progress(LEARNING, 0.8 * begin / len(tokens))
    return found


def fit(start: Embeddings, texts: Sequence[TokenIds], wanted: Embeddings, on_progress: OnProgress) -> Embeddings:
    """Return vectors, (tokens, dim) float32, whose sums over the tokens of each text are close to its row of `wanted`.

    start has the vectors to begin with, (tokens, dim) float32. wanted is (texts, dim) float32, of unit length. The mean
    cosine similarity of the sums and the rows of wanted is maximized. Vectors of tokens that occur in no text do not
    change.
    """
    lengths = np.array([len(text.ids) for text in texts])
    used, ids = np.unique([id for text in texts for id in text.ids], return_inverse=True)
    pieces, vectors = np.split(ids, np.cumsum(lengths)[:-1]), start[used]
    moments = np.zeros_like(vectors), np.zeros_like(vectors)
    random, not_empty = np.random.default_rng(SEED), np.flatnonzero(lengths)
    steps = min(STEPS, max(LEAST_STEPS, EPOCHS * len(not_empty) // TEXTS_PER_STEP))
    epochs = -(-steps * TEXTS_PER_STEP // len(not_empty))
    order = np.concatenate([random.permutation(not_empty) for _ in range(epochs)])[: steps * TEXTS_PER_STEP]
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
        vectors -= LEARNING_RATE * (1 - step / steps) * mean / (np.sqrt(square) + SMALLEST_DIVISOR)
        on_progress(LEARNING, 0.8 + 0.19 * step / steps)
    fitted = start.copy()
    fitted[used] = vectors
    return fitted


def compare(index: Index, wanted: Embeddings, found: Embeddings) -> dict[str, float]:
    """Return how close the embeddings `found` are to those of the model, `wanted`; both are (n, dim) float32.

    cosine_mean is their mean cosine similarity. recall_at_10 is the share of the model's ten best hits that are found.
    """
    hits = [[{hit.row for hit in index.search(query, TOP_K)} for query in each] for each in (wanted, found)]
    shares = [len(own & other) / len(own) for own, other in zip(*hits, strict=True)]
    return {
        "texts": float(len(wanted)),
        "cosine_mean": round(float((wanted * found).sum(axis=1).mean()), 4),
        "recall_at_10": round(float(np.mean(shares)), 4),
    }
