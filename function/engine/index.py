"""Embedding to hits: a coarse scan over memory-mapped rows, then exact scores for the best of them.

Each row is stored twice: as its signs, one bit for each value, and as 8-bit codes with a scale. A search

1. counts in every row the signs that differ from the query's, and keeps the closest rows as candidates (this reads an
   eighth of the bytes that codes have),
2. multiplies the candidates' codes with the query's codes, and keeps the RESCORED best,
3. scores those with the query in float32, so that only the rounding of the stored codes is left as an error.

Up to MOST_HITS hits, no step depends on how many hits are asked for, and each step prefers the earlier of two equal
rows. So a search for n hits returns the first n of a search for a hundred, and equal texts keep the corpus's order.

A search may be limited to some rows. If they are few, their codes are copied together and searched like an index of
their own. Otherwise steps 1 and 2 pass over the other rows. Either way all rows that are left compete for the hits.

Step 1 is left out up to EXHAUSTIVE_ROWS, where step 2 is quick enough for all rows, and for an index without signs. An
index has none if its model's signs tell too little (after max pooling most values are positive). simsimd does both
scans, with the widest instructions that the CPU has.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import simsimd

from function.engine.arrays import AnyArray, Array
from function.engine.quantization import Codes, Embeddings, Scales, quantize_query
from function.engine.tensors import TensorsError, map_tensors

Bits = Array[np.uint8]  # (rows, dim / 8 rounded up)
Rows = Array[np.intp]
Mask = Array[np.bool_]  # (rows,)

EXHAUSTIVE_ROWS = 8_192
MOST_HITS = 100  # up to here a search for fewer hits returns the first ones of a search for more
ROWS_PER_COPIED = 32  # one row in so many is copied and scanned in less time than all signs are scanned
CANDIDATES = 2_000  # rows that step 1 keeps: twenty for each of MOST_HITS
ROWS_PER_CANDIDATE = 100  # a larger index has one more candidate for each of these
RESCORED = 150  # rows that step 2 keeps: more than MOST_HITS, because the 8-bit query ranks rows a little differently
DECIMALS = 6  # of a score; further digits are rounding noise of float32 sums


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of the corpus and its score to six decimals: of an index the cosine to the query, -1 to 1.

    scores are the parts of a score that several searches made together, by the names of the searches.
    """

    row: int
    score: float
    scores: dict[str, float] | None = None


class Index:
    """The corpus's embeddings, ready to be searched."""

    def __init__(self, codes: Codes, scales: Scales, bits: Bits | None) -> None:
        """Take codes (rows, dim) int8 and scales (rows,) float32 as `quantize` returns them, and `signs` or None."""
        self._codes = codes
        self._scales = scales
        self._bits = bits

    @classmethod
    def open(cls, path: Path) -> "Index":
        """Map an index.safetensors; the first search after opening also pays for reading the file.

        Raises TensorsError if the file is not whole or holds something else.
        """
        tensors = map_tensors(path)
        found = {name: (tensor.dtype.name, *tensor.shape) for name, tensor in tensors.items()}
        _, rows, dim = found["codes"] if len(found.get("codes", ())) == 3 else ("", 0, 0)
        bytes_per_row = -(-dim // 8)
        expected = {"codes": ("int8", rows, dim), "scales": ("float32", rows)}
        if "bits" in found:
            expected["bits"] = ("uint8", rows, bytes_per_row)
        if found != expected or not rows:
            raise TensorsError(f"{path}: holds {found}, expected {expected}; run `python -m export` again")
        return cls(tensors["codes"], tensors["scales"], tensors.get("bits"))

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def dim(self) -> int:
        """Return the number of values in a row."""
        return int(self._codes.shape[1])

    def search(self, query: Embeddings, top_k: int, allowed: Mask | None = None) -> list[Hit]:
        """Return the top_k rows most like the query, best first; all rows if there are fewer.

        Equal rows are in the order of the corpus. Up to MOST_HITS, a search for fewer hits returns the first of these.
        query is (dim,) float32 of unit length, so that the scores are cosines. allowed is (rows,) bool: only rows where
        it is true are returned; None allows every row.
        Raises ValueError if top_k is below 1, or the query or the mask has another shape.
        """
        if top_k < 1 or query.shape != (self.dim,):
            raise ValueError(f"top_k {top_k} and query {query.shape}; expected at least 1 and ({self.dim},)")
        if allowed is not None:
            if allowed.shape != (len(self),):
                raise ValueError(f"allowed {allowed.shape}; expected ({len(self)},)")
            if np.count_nonzero(allowed) <= max(EXHAUSTIVE_ROWS, len(self) // ROWS_PER_COPIED):
                return self._search_few(query, top_k, np.flatnonzero(allowed))
        if not len(self):
            return []
        rows, codes = self._candidates(query, max(top_k, MOST_HITS), allowed)
        scores = self._score(query, rows, codes)
        best = np.lexsort((rows, -scores))[:top_k]
        return [Hit(int(rows[i]), min(1.0, max(-1.0, float(scores[i])))) for i in best]

    def scores(self, query: Embeddings, rows: Rows) -> Array[np.float64]:
        """Return the scores that `search` gives these rows, to six decimals: (n,) float64.

        query is (dim,) float32 of unit length, rows is (n,).
        """
        return np.clip(self._score(query, rows, self._codes[rows]), -1.0, 1.0)

    def _score(self, query: Embeddings, rows: Rows, codes: Codes) -> Array[np.float64]:
        """Return the products of these rows, whose codes are (n, dim), and the float32 query: (n,) float64."""
        # not a matrix product, in which the last bits of equal rows depend on their position
        products = np.asarray(simsimd.cdist(codes.astype(np.float32), query[np.newaxis], metric="dot")).reshape(-1)
        return np.round(products * self._scales[rows], DECIMALS)

    def _search_few(self, query: Embeddings, top_k: int, rows: Rows) -> list[Hit]:
        """Return the hits among these rows alone, which must ascend."""
        part = Index(self._codes.take(rows, axis=0), self._scales[rows], None)
        return [Hit(int(rows[hit.row]), hit.score) for hit in part.search(query, top_k)]

    def _candidates(self, query: Embeddings, hits: int, allowed: Mask | None) -> tuple[Rows, Codes]:
        """Return the rows to score exactly, in the order of the corpus, and their codes (n, dim) int8."""
        count = len(self) if allowed is None else int(np.count_nonzero(allowed))
        kept = RESCORED * hits // MOST_HITS
        if kept >= count:
            rows = np.arange(len(self)) if allowed is None else np.flatnonzero(allowed)
            return rows, self._codes if allowed is None else self._codes[rows]
        coarse = (CANDIDATES + count // ROWS_PER_CANDIDATE) * hits // MOST_HITS
        if self._bits is None or count <= max(EXHAUSTIVE_ROWS, coarse):
            products = self._products(query, self._codes) * self._scales
            if allowed is not None:
                products[~allowed] = -np.inf
            rows = _largest(products, kept)
            return rows, self._codes[rows]
        differing = simsimd.cdist(
            signs(query[np.newaxis]),
            self._bits,
            metric="hamming",
            dtype="bin8",
            out_dtype="uint16",  # type: ignore[arg-type] # missing in its stub
        )
        distances = np.asarray(differing)[0]
        if allowed is not None:
            distances[~allowed] = self.dim + 1  # more signs than there are
        rows = _smallest(distances, coarse)
        codes = self._codes.take(rows, axis=0, mode="clip")  # "clip" copies faster, because it does not check the rows
        best = _largest(self._products(query, codes) * self._scales[rows], kept)
        return rows[best], codes[best]

    @staticmethod
    def _products(query: Embeddings, codes: Codes) -> Embeddings:
        """Return the products of rows and query up to a factor that all rows share: (rows,) float32."""
        products = np.asarray(
            simsimd.cdist(quantize_query(query), codes, metric="dot", out_dtype="float32"), np.float32
        )
        return products.reshape(-1)


def _largest(values: AnyArray, count: int) -> Rows:
    """Return the places of the `count` largest values, ascending; of equal values the first are taken."""
    least = np.partition(values, len(values) - count)[len(values) - count]
    return _places(values >= least, values == least, count)


def _smallest(values: AnyArray, count: int) -> Rows:
    """Return the places of the `count` smallest of small whole numbers, ascending; of equal ones the first are taken.

    Counting how often each number occurs is faster than comparing numbers.
    """
    largest = int(np.searchsorted(np.cumsum(np.bincount(values)), count))
    return _places(values <= largest, values == largest, count)


def _places(chosen: AnyArray, at_boundary: AnyArray, count: int) -> Rows:
    """Return where `chosen` is true; if there are more than `count`, without the last ones of `at_boundary`."""
    surplus = int(np.count_nonzero(chosen)) - count
    if surplus:
        chosen[np.flatnonzero(at_boundary)[-surplus:]] = False
    return np.flatnonzero(chosen)


def signs(embeddings: AnyArray) -> Bits:
    """Return a bit for each value, set where it is positive: (n, dim) to (n, dim / 8 rounded up) uint8."""
    return np.packbits(embeddings > 0, axis=1)
