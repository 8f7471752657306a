"""Embedding to hits: a coarse scan over memory-mapped rows, then the best of them again, exactly.

A row is kept twice: as its signs, a bit a value, and as 8-bit codes with a scale. A search

1. counts the signs that differ from the query's in every row (an eighth of the bytes of a scan over codes), and keeps
   the closest as candidates,
2. multiplies the candidates' codes with the query's own codes, and keeps RESCORE_MULTIPLIER times what was asked for,
3. scores those with the query in float32, whose only error left is that of the stored codes.

Up to EXHAUSTIVE_ROWS the first step is left out, since the second is quick enough for all rows; and always where an
index holds no signs, because those of its model tell too little (most values positive, as after max pooling). Both
scans are simsimd's, in the widest instructions the CPU has.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import simsimd

from function.engine.arrays import AnyArray, Array
from function.engine.quantization import Codes, Embeddings, Scales, quantize
from function.engine.tensors import TensorsError, map_tensors

Bits = Array[np.uint8]  # (rows, dim / 8 rounded up)
Rows = Array[np.intp]

EXHAUSTIVE_ROWS = 8_192
CANDIDATES = 1_000  # that the signs choose; of 30,000 headlines the ten best are then found with recall 0.998
ROWS_PER_CANDIDATE = 100  # one more candidate for each so many rows
CANDIDATES_PER_HIT = 50  # and never fewer than this
RESCORE_MULTIPLIER = 4
DECIMALS = 6  # of a score; what follows is the noise of float32 sums


@dataclass(frozen=True, slots=True)
class Hit:
    """One row of the corpus and its cosine to the query, -1 to 1, to six decimals."""

    row: int
    score: float


class Index:
    """The corpus's embeddings, ready to be searched."""

    def __init__(self, codes: Codes, scales: Scales, bits: Bits | None) -> None:
        """Take codes (rows, dim) int8 and scales (rows,) float32 as `quantize` gives them, and `signs` or none."""
        self._codes = codes
        self._scales = scales
        self._bits = bits

    @classmethod
    def open(cls, path: Path) -> "Index":
        """Map an index.safetensors, so that the first search after opening also pays for reading the file.

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
        """Values in a row."""
        return int(self._codes.shape[1])

    def search(self, query: Embeddings, top_k: int) -> list[Hit]:
        """Give the top_k rows most like the query, best first; all rows if there are fewer.

        Equal rows come in the order of the corpus; of more equal ones than there are candidates, any are found.
        query is (dim,) float32 of unit length, so that the scores are cosines.
        Raises ValueError if top_k is below 1 or the query has another dim.
        """
        if top_k < 1 or query.shape != (self.dim,):
            raise ValueError(f"top_k {top_k} and query {query.shape}; expected at least 1 and ({self.dim},)")
        rows = self._candidates(query, top_k)
        scores = (self._codes[rows].astype(np.float32) @ query) * self._scales[rows]
        # rounded, because the last bits of equal rows depend on where they lie in the product
        scores = np.round(scores.astype(np.float64), DECIMALS)
        best = np.lexsort((rows, -scores))[:top_k]
        return [Hit(int(rows[i]), min(1.0, max(-1.0, float(scores[i])))) for i in best]

    def _candidates(self, query: Embeddings, top_k: int) -> Rows:
        wanted = top_k * RESCORE_MULTIPLIER
        if wanted >= len(self):
            return np.arange(len(self))
        coarse = max(CANDIDATES + len(self) // ROWS_PER_CANDIDATE, top_k * CANDIDATES_PER_HIT)
        if self._bits is None or len(self) <= max(EXHAUSTIVE_ROWS, coarse):
            return _largest(self._products(query, self._codes) * self._scales, wanted)
        differing = simsimd.cdist(signs(query[np.newaxis]), self._bits, metric="hamming", dtype="bin8")
        rows = np.argpartition(np.asarray(differing)[0], coarse)[:coarse]
        rows.sort()  # in the order of the file, so that reading it is one sweep
        products = self._products(query, self._codes[rows]) * self._scales[rows]
        return rows[_largest(products, wanted)]

    @staticmethod
    def _products(query: Embeddings, codes: Codes) -> Embeddings:
        """Give each row's product with the query, but for a factor that all rows share: (rows,) float32."""
        query_codes, _ = quantize(query[np.newaxis])
        products = np.asarray(simsimd.cdist(query_codes, codes, metric="dot", out_dtype="float32"), np.float32)
        return products.reshape(-1)


def _largest(values: AnyArray, count: int) -> Rows:
    """Give the places of the `count` largest values, in no order."""
    return np.argpartition(values, len(values) - count)[-count:]


def signs(embeddings: AnyArray) -> Bits:
    """Give a bit for each value, set where it is positive: (n, dim) to (n, dim / 8 rounded up) uint8."""
    return np.packbits(embeddings > 0, axis=1)
