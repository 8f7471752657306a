"""Recall: the share of exact search's results that an approximate index, or an 8-bit model, also finds.

The recall of an index is measured with two kinds of queries: rows of the corpus, which are the easiest because each is
its own best result, and spans of a few words of its texts, which are like the queries of people. A query is much
shorter than a text and often not like any of them, so the rows of its results differ less from all other rows.

In an index without a model, nothing embeds spans. Its recall is measured with the neighbours of rows, where a row is
the query and itself no result, and with mixtures of two rows, which are like no text, as spans are. Stages that only
neighbours choose are too narrow for spans: of the ten best of 194,000 headlines by all-MiniLM-L6-v2, they find 0.990,
and those of both kinds 0.998.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semsearch.engine.bundle import StagesInfo
from semsearch.engine.keyword.analyzer import WORD
from semsearch.engine.quantization import Codes, Embeddings, Scales, dequantize
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import Array
from semsearch.indexing.tensor_files import release

SPANS, ROWS = "spans", "rows"  # the kinds of queries
NEIGHBOURS, MIXTURES = "neighbours", "mixtures"  # the kinds of queries without a model
MIXED = 2  # weight of the first row in a mixture of two: with 1, rows in few clusters would have no stages
QUERIES = 250  # queries of each kind: choosing the stages for 200,000 rows takes some seconds
SPAN_WORDS = (3, 8)  # words of the shortest and of the longest span; a character is a word in Chinese, Japanese, Thai
SEED = 7
TOP_K = 10
SEARCHED_AT_ONCE = 16_384 * 384  # values of exact search at a time: 25 MB, and 16 MB of scores with QUERIES
SEARCHES_AT_ONCE = 10  # searches before the pages that they read are released
ROUNDING = 1e-5  # difference between two ways to sum the same products

SampleScores = Array[np.float32]  # (queries, texts)


def neighbour_recall(exact: SampleScores, found: SampleScores, top_k: int = TOP_K) -> float:
    """Return the share (0 to 1) of the top_k texts by `found` that are also in the top_k by `exact`, over all queries.

    Both are (queries, texts) float32, with more than top_k texts.
    """
    hits = np.argpartition(-found, top_k, axis=1)[:, :top_k]
    least = np.partition(exact, -top_k, axis=1)[:, -top_k, np.newaxis]  # texts with equal scores may come in any order
    return float(np.mean(np.take_along_axis(exact, hits, axis=1) >= least))


@dataclass(frozen=True, slots=True)
class Recall:
    """Two shares (0 to 1) of exact search's results: of its TOP_K hits, and of its first hit, that are found too."""

    at_10: float
    first: float

    def reaches(self, other: "Recall") -> bool:
        """Return whether neither share is less than the other's."""
        return self.at_10 >= other.at_10 and self.first >= other.first


@dataclass(frozen=True, slots=True)
class ExactSearch:
    """What exact search finds: the scores (m, top_k) float32 of its hits, best first, for queries (m, dim) float32.

    The best `skipped` hits are not among them: the query itself, if it is a row.
    """

    queries: Embeddings
    scores: SampleScores
    skipped: int = 0

    def recall_of(self, index: Index) -> Recall:
        """Return the share of the hits that the index finds too, over all queries."""
        top_k = self.scores.shape[1]
        hits = np.empty_like(self.scores)
        for number, query in enumerate(self.queries):
            found = index.search(query, top_k + self.skipped)
            hits[number] = [hit.score for hit in found[self.skipped :]]
            if number % SEARCHES_AT_ONCE == 0:
                release(index.codes)  # or the searches would bring nearly the whole index into memory
        least = np.minimum(self.scores, 1) - np.float32(ROUNDING)  # an index rounds no score above 1
        return Recall(float(np.mean(hits >= least[:, -1:])), float(np.mean(hits[:, 0] >= least[:, 0])))


ExactSearches = Mapping[str, ExactSearch]  # by the kind of the queries

# The widths to choose from, each about 1.4 times the one before
CANDIDATES = (500, 700, 1_000, 1_400, 2_000, 2_800, 4_000, 5_600, 8_000)
RESCORED = (100, 140, 200, 280, 400)
# What stages reach with each kind of query. With 0.99, titles of papers would find 89 % of their ten best
# headlines instead of 93 %.
LEAST = Recall(at_10=0.995, first=0.995)
SLACK = 0.0005  # recall that the first stage leaves for the second


def search_exactly(
    queries: Embeddings, codes: Codes, scales: Scales, top_k: int = TOP_K, skipped: int = 0
) -> ExactSearch:
    """Compare queries (m, dim) float32 with all rows: codes (rows, dim) int8 and scales (rows,) float32.

    The best `skipped` hits of each query are left out.
    """
    top_k = min(top_k + skipped, len(codes))
    best = np.full((len(queries), top_k), -np.inf, np.float32)
    step = max(1, SEARCHED_AT_ONCE // codes.shape[1])
    for begin in range(0, len(codes), step):
        rows = slice(begin, begin + step)
        scores = queries @ dequantize(codes[rows], scales[rows]).T
        best = np.partition(np.hstack([best, scores]), -top_k, axis=1)[:, -top_k:]
        release(codes)
    return ExactSearch(queries, -np.sort(-best, axis=1)[:, skipped:], skipped)


def search_samples(spans: Embeddings | None, codes: Codes, scales: Scales) -> ExactSearches:
    """Return what exact search finds for the embeddings of `sample_spans`, (m, dim) float32, and for `sample_rows`.

    codes is (rows, dim) int8 and scales (rows,) float32. spans is None in an index without a model: then these are the
    neighbours of `sample_rows`, and what is found for mixtures of two of them; nothing if there is one row.
    """
    rows = sample_rows(codes, scales)
    if spans is None:
        if len(codes) == 1:
            return {}
        mixtures = _unit(MIXED * rows + np.roll(rows, len(rows) // 2, axis=0))
        return {
            NEIGHBOURS: search_exactly(rows, codes, scales, skipped=1),
            MIXTURES: search_exactly(mixtures, codes, scales),
        }
    queries = {SPANS: spans, ROWS: rows}
    return {kind: search_exactly(each, codes, scales) for kind, each in queries.items()}


def sample_spans(texts: Sequence[str]) -> list[str]:
    """Return a span of a few words of each of QUERIES texts, evenly spread, at a random place of the text.

    A text with fewer words is a query as a whole.
    """
    random = np.random.default_rng(SEED)
    spans = []
    for text in (texts[row] for row in _spread(len(texts)).tolist()):
        words = [(word.start(), word.end()) for word in re.finditer(WORD, text)] or [(0, len(text))]
        count = min(len(words), int(random.integers(*SPAN_WORDS, endpoint=True)))
        first = int(random.integers(len(words) - count, endpoint=True))
        spans.append(text[words[first][0] : words[first + count - 1][1]])
    return spans


def sample_rows(codes: Codes, scales: Scales) -> Embeddings:
    """Return QUERIES of an index's rows, evenly spread, as queries: (m, dim) float32 of unit length."""
    rows = _spread(len(codes))
    return _unit(dequantize(codes[rows], scales[rows]))


def _unit(queries: Embeddings) -> Embeddings:
    """Return queries, scaled to unit length. One can be zeros."""
    lengths = np.linalg.norm(queries, axis=1, keepdims=True)
    return np.asarray(queries / np.where(lengths > 0, lengths, 1), np.float32)


def _spread(count: int) -> Array[np.intp]:
    """Return QUERIES numbers below `count`, evenly spread, or all if there are fewer."""
    return np.linspace(0, count - 1, min(count, QUERIES)).astype(np.intp)


def choose_stages(path: Path, exact: ExactSearches, least: Recall = LEAST) -> StagesInfo | None:
    """Return the narrowest stages of an index.safetensors that reach this recall with each kind of query.

    They are chosen one after the other, the first while the second is as wide as it can be. Return None if even the
    widest do not reach it.
    """

    def is_enough(candidates: int, rescored: int, slack: float = 0.0) -> bool:
        index, goal = Index.open(path, StagesInfo(candidates, rescored)), Recall(least.at_10 + slack, least.first)
        return all(each.recall_of(index).reaches(goal) for each in exact.values())

    # bisect calls the key only for some widths: a wider stage finds no less
    place = bisect_left(CANDIDATES[:-1], True, key=lambda width: is_enough(width, RESCORED[-1], SLACK))
    candidates = CANDIDATES[place]
    place = bisect_left(RESCORED, True, key=lambda width: is_enough(candidates, width))
    if place == len(RESCORED):
        return None
    return StagesInfo(candidates, RESCORED[place])
