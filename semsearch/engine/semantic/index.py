"""Embedding to hits: a cascade over memory-mapped rows, in which each stage passes fewer rows to a closer look.

Each row is stored in two forms: as signs, one bit for each value, and 8-bit codes with a scale. A search

1. counts in each row the signs that differ from the query's, and keeps the rows that differ least,
2. multiplies the query's 8-bit codes with those rows' signs and keeps the best: nearly as precise as with their codes,
   and an eighth of the bytes (RaBitQ: Gao and Long, 2024, https://arxiv.org/abs/2405.12497),
3. scores those with their codes and the query in float32, so that only the rounding of the codes is left as an error.

The manifest has the number of rows that each stage keeps (StagesInfo): `index` chose it by the recall it measured.
A corpus of up to EXHAUSTIVE_ROWS has no stages. Neither has a corpus whose signs distinguish too little: after max
pooling, most values are positive. Such a corpus is scanned exactly, and so is every other corpus if a search requests
it. An exact scan multiplies the 8-bit query with all rows. The error of rounding the query is known: all rows within
twice that error of the last hit are scored as in step 3.

Up to FEW_HITS, no stage depends on the number of hits, and each stage prefers the earlier of two equal rows. So a
search for one hit returns the first of a search for ten, and equal texts keep the corpus's order.

A search can be limited to some rows, the allowed ones. If they are few, only they are compared. Signs cannot rank the
allowed rows if the rows most like the query are excluded, because the others differ too little. Then the allowed rows
are scanned exactly. simsimd computes the products, with the widest instructions of the CPU.

The bits of a row are 64-bit words. They are stored word by word, the first words of all rows, then their second words:
a scan of rows stored so takes half the time of one row by row.

Left out: lists of similar rows (IVF), of which a search reads only the nearest. Commit 4b043c1 has what they cost, in
docs/scale.md.
"""

import math
from pathlib import Path

import numpy as np
import simsimd

from semsearch.engine.bundle import StagesInfo
from semsearch.engine.hits import DECIMALS, Hit, Mask, Rows, Scored, largest
from semsearch.engine.quantization import Codes, Embeddings, Scales, dequantize, quantize_query
from semsearch.engine.tensors import AnyArray, Array, map_tensors, read_ahead

Words = Array[np.uint64]  # the bits of signs

EXHAUSTIVE_ROWS = 8_192  # up to here the exact scan takes little longer than the stages, and it misses nothing
FEW_HITS = 25  # candidates and rescored (StagesInfo) are for this many hits, and grow with their number
# A rough search scores at least this many times as many rows as it returns: it misses only some of the last ones.
ROUGH_SURPLUS = 2
ROWS_PER_TAKEN = 16  # if at most one row in 16 is allowed, comparing only their signs beats comparing all
# A filter can exclude more of the nearest rows than of all rows. This is the limit of the one share divided by the
# other, which is 1 for a filter that is independent of the query. Above it all rows are scanned: where a filter
# excluded the 1,000 nearest rows, the stages missed 74 % of the hits.
MOST_EXCLUDED = 1.1
ROWS_PER_COPY = 4  # if at most one row in 4 is compared exactly, copying their codes beats comparing all
MANY_ROWS = 1_000  # with more rows, leaving out most with the 8-bit query is faster than scoring all in float32
SCORED_AT_ONCE = 16_384  # rows that are scored in float32 at a time: 25 MB at 384 dimensions
WORD_BITS = 64
# Rows whose words are compared at a time, so that they stay in the CPU's cache until they are counted. Together with
# WORDS_AT_ONCE this takes 0.86 of the time of counting all rows at once for a million rows, and the same for 200,000.
COUNTED_AT_ONCE = 131_072
WORDS_AT_ONCE = 3  # words whose counts are added as bytes: four words can have 256 differing bits


class Index:
    """The corpus's embeddings, ready to be searched. codes is (rows, dim) int8, in the order of the corpus."""

    def __init__(
        self, codes: Codes, scales: Scales, bits: Words | None = None, stages: StagesInfo | None = None
    ) -> None:
        """Take codes (rows, dim) int8 and scales (rows,) float32 as `quantize` returns them, and what stages need.

        bits (words, rows) uint64 are the signs of the rows, word by word.
        """
        self.codes = codes
        self._scales = scales
        self._bits = bits
        self._stages = stages

    @classmethod
    def open(cls, path: Path, stages: StagesInfo | None) -> "Index":
        """Map an index.safetensors; the first search after opening also pays for reading the file.

        What every search reads as a whole is read ahead. Of the other codes only the pages of rescored rows are read:
        with a million rows, an eighth of the bytes, and a first search from the disk takes a third of the time.
        Raises TensorsError if the file is not whole.
        """
        tensors = map_tensors(path, scattered=True)
        codes = tensors.require("codes", [None, None], np.int8)
        rows, dim = codes.shape
        scales = tensors.require("scales", [rows], np.float32)
        if stages is None:
            read_ahead(codes)
            return cls(codes, scales)
        bits = tensors.require("bits", [-(-dim // WORD_BITS), rows], np.uint64)
        read_ahead(bits)
        return cls(codes, scales, bits, stages)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def dim(self) -> int:
        """Return the number of values in a row."""
        return int(self.codes.shape[1])

    def search(self, query: Embeddings, top_k: int, allowed: Mask | None = None, *, exact: bool = False) -> list[Hit]:
        """Return the top_k rows most like the query, best first; all rows if there are fewer.

        Equal rows are in the order of the corpus. query is (dim,) float32 of unit length, so that the scores are
        cosines. allowed is (rows,) bool: only rows where it is true are returned; None allows every row. exact looks at
        every row that is allowed.
        Raises ValueError if top_k is below 1, or the query or the mask has another shape.
        """
        return Scored(*self.best(query, top_k, allowed, exact=exact)).hits()

    def best(
        self, query: Embeddings, top_k: int, allowed: Mask | None = None, *, exact: bool = False, rough: bool = False
    ) -> tuple[Rows, Array[np.float64]]:
        """Return the rows (n,) and the scores (n,) of what `search` returns. rough misses more of the last ones."""
        if top_k < 1 or query.shape != (self.dim,):
            raise ValueError(f"top_k {top_k} and query {query.shape}; expected at least 1 and ({self.dim},)")
        if allowed is not None and allowed.shape != (len(self),):
            raise ValueError(f"allowed {allowed.shape}; expected ({len(self)},)")
        rows = self._candidates(query, top_k, allowed, exact, rough)
        if len(rows) > max(MANY_ROWS, 2 * top_k):
            rows = self._nearest_exactly(query, top_k, rows)
        scores = self._score(query, rows)
        best = np.argsort(-scores, kind="stable")[:top_k]  # the rows ascend
        return rows[best], np.clip(scores[best], -1.0, 1.0)

    def scores(self, query: Embeddings, rows: Rows) -> Array[np.float64]:
        """Return the scores that `search` gives these rows, to six decimals: (n,) float64.

        query is (dim,) float32 of unit length, rows is (n,).
        """
        return np.clip(self._score(query, rows), -1.0, 1.0)

    def embedding(self, row: int) -> Embeddings:
        """Return the stored embedding of a row of the corpus, (dim,) float32 of unit length, as a query."""
        (embedding,) = dequantize(*self.codes_of(np.array([row])))
        unit: Embeddings = embedding / (np.linalg.norm(embedding) or 1)
        return unit

    def codes_of(self, rows: Rows) -> tuple[Codes, Scales]:
        """Return the codes (n, dim) int8 and the scales (n,) float32 of some rows of the corpus."""
        return self.codes[rows], self._scales[rows]

    def _score(self, query: Embeddings, rows: Rows) -> Array[np.float64]:
        """Return the products of these rows and the float32 query: (n,) float64."""
        scores = np.empty(len(rows))
        for begin in range(0, len(rows), SCORED_AT_ONCE):
            some = rows[begin : begin + SCORED_AT_ONCE]
            codes = self.codes.take(some, axis=0, mode="clip").astype(np.float32)  # "clip" copies faster
            # not a matrix product, in which the last bits of equal rows depend on their position
            products = np.asarray(simsimd.cdist(codes, query[np.newaxis], metric="dot")).reshape(-1)
            scores[begin : begin + SCORED_AT_ONCE] = np.round(products * self._scales[some], DECIMALS)
        return scores

    def _candidates(self, query: Embeddings, top_k: int, allowed: Mask | None, exact: bool, rough: bool) -> Rows:
        """Return the rows to score, ascending. The top_k hits are among them, except those that the stages miss."""
        rows = None if allowed is None or allowed.all() else np.flatnonzero(allowed)
        if exact or (rows is not None and len(rows) <= EXHAUSTIVE_ROWS):
            stages = None
        else:
            stages = self._stages
        found = None if stages is None else self._nearest_by_signs(query, top_k, stages, rows, rough)
        if found is None:
            return self._nearest_exactly(query, top_k, rows)
        return found

    def _nearest_by_signs(
        self, query: Embeddings, top_k: int, stages: StagesInfo, allowed: Rows | None, rough: bool
    ) -> Rows | None:
        """Return the rows that steps 1 and 2 keep, ascending; None if the rows most like the query are not allowed.

        allowed is (n,) ascending, None for all rows.
        """
        assert self._bits is not None  # stages need them
        width = -(-top_k // (max(FEW_HITS, stages.rescored // ROUGH_SURPLUS) if rough else FEW_HITS))
        words = signs(query[np.newaxis])
        if allowed is not None and len(allowed) <= len(self) // ROWS_PER_TAKEN:
            likeness = ~count_differing(words, self._bits.take(allowed, axis=1, mode="clip"))
        else:
            likeness = ~count_differing(words, self._bits)
            if allowed is not None:
                before, likeness = likeness, likeness[allowed]
                least = likeness[largest(likeness, FEW_HITS)].min()
                if np.count_nonzero(before > least) * len(allowed) > MOST_EXCLUDED * FEW_HITS * len(self):
                    return None
        chosen = largest(likeness, width * stages.candidates)
        if allowed is not None:
            chosen = allowed[chosen]
        bits = self._bits.take(chosen, axis=1, mode="clip").T
        products = _products(quantize_query(query), unpack_signs(bits, self.dim))
        nearest: Rows = chosen[largest(products, width * stages.rescored)]
        return nearest

    def _nearest_exactly(self, query: Embeddings, top_k: int, rows: Rows | None = None) -> Rows:
        """Return those of these rows, ascending, that include their top_k; None means all rows.

        The 8-bit query differs from the query by a vector, so its product with a unit row differs by at most that
        vector's length. A row that is more than twice this length below the last of the top_k is none of them.
        """
        among = np.arange(len(self)) if rows is None else rows
        if top_k >= len(among):
            return among
        query_codes = quantize_query(query)
        step = float(np.abs(query).max()) / float(np.abs(query_codes).max() or 1)
        if len(among) * ROWS_PER_COPY <= len(self):
            products = _products(query_codes, self.codes.take(among, axis=0, mode="clip"))
        else:  # comparing all rows takes less time than copying many
            products = _products(query_codes, self.codes)
            if rows is not None:
                products = products[rows]
        products *= self._scales if rows is None else self._scales[rows]
        products *= np.float32(step)
        least = products[largest(products, top_k)].min()
        rounding = math.dist(query, query_codes[0] * step) + 10.0**-DECIMALS
        nearest: Rows = among[products >= least - 2 * rounding]
        return nearest


def _products(query: Codes, codes: Codes) -> Embeddings:
    """Return the products of 8-bit rows and the query, whose codes are (1, dim): (rows,) float32."""
    products = np.asarray(simsimd.cdist(query, codes, metric="dot", out_dtype="float32"), np.float32)
    return products.reshape(-1)


def signs(embeddings: AnyArray) -> Words:
    """Return a bit for each value, set where it is positive: (n, dim) to (n, dim / 64 rounded up) uint64."""
    bits = np.packbits(embeddings > 0, axis=1)
    if missing := -bits.shape[1] % (WORD_BITS // 8):
        bits = np.pad(bits, ((0, 0), (0, missing)))
    return bits.view(np.uint64)


def unpack_signs(words: Words, dim: int) -> Array[np.int8]:
    """Return 1 for each bit that is set, else 0: (n, words) to (n, dim)."""
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(-1))  # twice as fast with one axis
    return bits.reshape(len(words), -1)[:, :dim].view(np.int8)


def count_differing(query: Words, columns: Words) -> Array[np.uint16]:
    """Return how many bits of each row differ from the query's: (n,) for rows (words, n) and query (1, words)."""
    differing = np.zeros(columns.shape[1], np.uint16)
    size = min(len(differing), COUNTED_AT_ONCE)
    words, counts, sums = np.empty(size, np.uint64), np.empty(size, np.uint8), np.empty(size, np.uint8)
    for begin in range(0, len(differing), COUNTED_AT_ONCE):
        block = differing[begin : begin + COUNTED_AT_ONCE]
        words, counts, sums = words[: len(block)], counts[: len(block)], sums[: len(block)]
        for first in range(0, len(columns), WORDS_AT_ONCE):
            sums[:] = 0
            for word in range(first, min(first + WORDS_AT_ONCE, len(columns))):
                np.bitwise_xor(columns[word, begin : begin + COUNTED_AT_ONCE], query[0, word], out=words)
                np.bitwise_count(words, out=counts)
                sums += counts
            block += sums
    return differing
