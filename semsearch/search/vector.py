"""A query's own embedding. Imported by the first query that has one."""

from collections.abc import Sequence

import numpy as np

from semsearch.engine.quantization import Embeddings
from semsearch.search.query import LONGEST_FOUND, Query, SearchError


def check_fields(query: Query) -> None:
    """Raise SearchError if another field of a query cannot be used with its vector."""
    for name, value in (("id", query.id), ("queries", query.queries)):
        if value is not None:
            raise SearchError(
                f"{name}: found {value[:LONGEST_FOUND]!r} with a vector, expected one of them; leave one out"
            )
    if query.mode == "keyword":
        raise SearchError("mode: found 'keyword' with a vector, expected 'semantic' or 'hybrid'; leave one of them out")
    if query.text is not None:
        return
    if query.mode == "hybrid":
        raise SearchError("mode: found 'hybrid' with a vector alone, expected 'semantic'; add the text")
    if query.rerank is not None:
        raise SearchError(f"rerank: found {query.rerank} with a vector alone, expected none; add the text")


def normalized(vector: Sequence[float], dim: int) -> Embeddings:
    """Return a vector with the length 1, (dim,) float32. Raises SearchError for another number of values, or zeros."""
    if len(vector) != dim:
        raise SearchError(f"vector: found {len(vector)} numbers, expected {dim}; embed with the model of the index")
    numbers = np.array(vector, np.float64)
    largest = np.abs(numbers).max()
    if largest == 0:
        raise SearchError("vector: found only zeros, expected a direction; leave it out")
    numbers /= largest  # otherwise the squares could be infinite, or 0
    unit: Embeddings = (numbers / np.linalg.norm(numbers)).astype(np.float32)
    return unit
