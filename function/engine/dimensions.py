"""Shorter embeddings: the first values of each, for models that were trained to have the most important ones first.

Source: Matryoshka Representation Learning, https://arxiv.org/abs/2205.13147
"""

import numpy as np

from function.engine.quantization import Embeddings


def keep_dimensions(embeddings: Embeddings, dimensions: int | None) -> Embeddings:
    """Return unit embeddings of the first `dimensions` values of embeddings (n, dim) float32; None keeps them all."""
    if dimensions is None or dimensions == embeddings.shape[1]:
        return embeddings
    first = embeddings[:, :dimensions]
    norms = np.linalg.norm(first, axis=1, keepdims=True)
    return np.asarray(first / np.maximum(norms, np.finfo(np.float32).tiny), np.float32)  # zeros stay zeros
