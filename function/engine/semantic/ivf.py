"""An inverted file index (IVF): lists of similar rows, of which most searches read only those nearest to the query.

The export groups the rows by k-means (spherical: the centroids have unit length). Each row is in two lists: that of its
nearest centroid, and a second one whose centroid is on another side of the row (SOAR: Sun, Simcha, Dopson, Guo and
Kumar, 2023, https://arxiv.org/abs/2404.00774). A query that is similar to a row, but far from one of its centroids, is
usually near the other. So a search reads a third of the rows for the same recall. Lists with similar centroids are
neighbours, so that the lists of a query share pages.

A row's number in the corpus is its `row`. Its codes are stored once, at its `place`: list by list, by its first list.
Its signs are stored twice, once for each of its lists. An `entry` is a position in the signs: list by list, and within
a list in the order of the corpus.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import simsimd

from function.engine.arrays import Array
from function.engine.quantization import Codes, Embeddings, Scales, quantize_query
from function.engine.semantic.topk import largest

Places = Array[np.signedinteger[Any]]  # int32 or int64
Entries = Array[np.signedinteger[Any]]  # int32 or int64


@dataclass(frozen=True, slots=True)
class Lists:
    """The stored order of the rows, memory-mapped.

    axes is (dim, m) float32: the m directions in which the centroids differ most. The centroids are compared with the
    query only along these directions. At 384 dimensions this reads a third of the bytes and chooses nearly the same
    lists. centroids is (lists, m) int8 and scales (lists,) float32, as `quantize` returns them; offsets is (lists + 1,)
    uint32, the first entry of each list; rows is (rows,) uint32, the row at each place; places is (rows,) uint32, the
    place of each row; entry_places is (entries,) uint32, the place of each entry; entries is (rows,) uint32, the entry
    of each place in its first list. The last two are None in an older file: each row is in one list, and
    its entry is its place.
    """

    axes: Embeddings
    centroids: Codes
    scales: Scales
    offsets: Array[np.uint32]
    rows: Array[np.uint32]
    places: Array[np.uint32]
    entry_places: Array[np.uint32] | None
    entries: Array[np.uint32] | None

    @property
    def entries_per_row(self) -> int:
        """Return the number of lists that a row is in at most."""
        return 1 if self.entry_places is None else 2

    def places_of(self, entries: Entries) -> Places:
        """Return the place of each entry: (n,) for (n,)."""
        return entries if self.entry_places is None else self.entry_places[entries].astype(np.int32)

    def entries_of(self, places: Places) -> Entries:
        """Return each place's first-list entry: (n,) for (n,)."""
        return places if self.entries is None else self.entries[places].astype(np.int32)

    def nearest(self, query: Embeddings, count: int) -> Entries:
        """Return the entries of the `count` lists most like the query (dim,), ascending: (n,) int32."""
        codes = quantize_query(query @ self.axes)
        products = np.asarray(simsimd.cdist(codes, self.centroids, metric="dot", out_dtype="float32"), np.float32)
        chosen = largest(products.reshape(-1) * self.scales, count)
        begins, ends = self.offsets[chosen].astype(np.int32), self.offsets[chosen + 1].astype(np.int32)
        sizes = ends - begins
        taken = np.cumsum(sizes, dtype=np.int32)
        entries = np.repeat(ends - taken, sizes)
        entries += np.arange(taken[-1], dtype=np.int32)  # int32, because int64 takes three times as long
        return entries
