"""Queries without the model: the embedding of a text is the sum of the vectors of its tokens, of unit length.

The export learns the vectors from the corpus (export/index/query_table.py). They are whole numbers, so each sum is
exact: a text has the same embedding on every processor and in every browser. Opening maps the file, and a query reads
the rows of its own tokens.

Left out: scales. A step that all vectors share vanishes in the unit length.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from function.engine.embedder import TokenIds
from function.engine.quantization import Codes, Embeddings
from function.engine.tensors import map_tensors

VECTORS = "vectors"  # name of the tensor


class QueryTable:
    """One vector for each token of the tokenizer."""

    def __init__(self, vectors: Codes) -> None:
        """Take the vectors by the ids of their tokens, (tokens, dim) int8."""
        self._vectors = vectors

    @classmethod
    def open(cls, path: Path) -> "QueryTable":
        """Map a queries.safetensors. Raises TensorsError if the file is not whole."""
        return cls(map_tensors(path, scattered=True)[VECTORS])

    def embed(self, tokens: Sequence[TokenIds]) -> Embeddings:
        """Return the embeddings, (n, dim) float32, of unit length, or zeros if all vectors of a text are zeros."""
        sums = np.array([self._vectors[text.ids].sum(axis=0, dtype=np.int64) for text in tokens])
        lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        return np.asarray(sums / np.maximum(lengths, 1), np.float32)
