"""An inverted file index (IVF): lists of similar rows, of which most searches read only those nearest to the query.

The export groups the rows by k-means (spherical: the centroids have unit length) and stores them list by list, in each
list in the order of the corpus. Lists with similar centroids are neighbours, so that the lists of a query share pages.
Here a row's number in the corpus is its `row`, and its number in the stored order is its `place`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import simsimd

from function.engine.arrays import Array
from function.engine.quantization import Codes, Embeddings, Scales, quantize_query
from function.engine.semantic.topk import largest

Places = Array[np.signedinteger[Any]]  # int32 or int64


@dataclass(frozen=True, slots=True)
class Lists:
    """The stored order of the rows, memory-mapped.

    axes is (dim, m) float32: the m directions in which the centroids differ most. The centroids are compared with the
    query only along these directions. At 384 dimensions this reads a third of the bytes and chooses nearly the same
    lists. centroids is (lists, m) int8 and scales (lists,) float32, as `quantize` returns them; offsets is (lists + 1,)
    uint32, the first place of each list; rows is (rows,) uint32, the row at each place; places is (rows,) uint32, the
    place of each row.
    """

    axes: Embeddings
    centroids: Codes
    scales: Scales
    offsets: Array[np.uint32]
    rows: Array[np.uint32]
    places: Array[np.uint32]

    def nearest(self, query: Embeddings, count: int) -> Places:
        """Return the places of the rows in the `count` lists most like the query (dim,), ascending: (n,) int32."""
        codes = quantize_query(query @ self.axes)
        products = np.asarray(simsimd.cdist(codes, self.centroids, metric="dot", out_dtype="float32"), np.float32)
        chosen = largest(products.reshape(-1) * self.scales, count)
        begins, ends = self.offsets[chosen].astype(np.int32), self.offsets[chosen + 1].astype(np.int32)
        sizes = ends - begins
        taken = np.cumsum(sizes, dtype=np.int32)
        places = np.repeat(ends - taken, sizes)
        places += np.arange(taken[-1], dtype=np.int32)  # int32, because int64 takes three times as long
        return places
