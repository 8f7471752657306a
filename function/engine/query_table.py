"""Embed queries without the model: an embedding is the sum of the vectors of the text's tokens, scaled to unit length.

The export learns the vectors from the corpus (export/index/query_table.py). They are integers, so each sum is exact: a
text has the same embedding on every processor and in every browser. The file is memory-mapped, so opening it is fast,
and a query reads only the rows of its own tokens.

Left out: a scale of the integers. All vectors would share it, and scaling to unit length cancels it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from function.engine.embedder import TokenIds
from function.engine.quantization import Codes, Embeddings
from function.engine.tensors import map_tensors

VECTORS = "vectors"  # name of the tensor in queries.safetensors


class QueryTable:
    """Embeds texts with one vector for each token of the tokenizer."""

    def __init__(self, vectors: Codes) -> None:
        """Take the vectors, (tokens, dim) int8; the row of a vector is the id of its token."""
        self._vectors = vectors

    @classmethod
    def open(cls, path: Path) -> "QueryTable":
        """Memory-map a file queries.safetensors. Raises TensorsError if it is not complete."""
        return cls(map_tensors(path, scattered=True)[VECTORS])

    def embed(self, tokens: Sequence[TokenIds]) -> Embeddings:
        """Return the embeddings, (n, dim) float32, each of unit length, or zeros if the sum of its vectors is zero."""
        sums = np.array([self._vectors[text.ids].sum(axis=0, dtype=np.int64) for text in tokens])
        lengths = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        return np.asarray(sums / np.maximum(lengths, 1), np.float32)
