"""Keep the lists of an older index in an update: new rows join the nearest list, and removed rows leave theirs.

k-means takes most of the time of writing a large index, and a few new rows would hardly move its centroids. The lists
are made again when a fifth of the rows has changed since k-means: index.safetensors counts these rows (CHANGED).
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from export.corpus.digests import Places
from export.files.tensor_file import Notes, read_notes, release
from export.index.lists import Numbers
from function.engine.arrays import Array
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Embeddings, Scales, dequantize
from function.engine.tensors import map_tensors

MOST_CHANGED = 0.2  # if this share of the rows has changed, the lists are made again
CHANGED = "changed"  # the note in index.safetensors: rows that joined or left the lists since k-means made them
ROWS_AT_ONCE = 1_024  # new rows that are compared with all centroids at a time: 100 MB for the lists of a million rows


@dataclass(frozen=True, slots=True)
class ListsOfRows:
    """The list of each row and what a search compares with the query: see function/engine/semantic/ivf.py.

    No list is empty. stages are those of the older index, None for new lists.
    """

    numbers: Numbers  # (rows,): the number of each row's list
    axes: Embeddings  # (dim, m)
    centroids: Codes  # (lists, m)
    scales: Scales  # (lists,)
    stages: StagesInfo | None = None
    changed: int = 0  # rows that joined or left the lists since k-means made them

    @property
    def notes(self) -> Notes:
        """Return the notes of index.safetensors, empty for new lists."""
        return {CHANGED: str(self.changed)} if self.changed else {}


@dataclass(frozen=True, slots=True)
class OlderLists:
    """The lists of an older index. They stay readable if its file is replaced."""

    stages: StagesInfo
    changed: int
    axes: Embeddings
    centroids: Codes
    scales: Scales
    numbers: Numbers  # (older rows,): the number of each row's list

    @classmethod
    def read(cls, path: Path, stages: StagesInfo) -> "OlderLists":
        """Read the lists of an index.safetensors that `Index.open` accepts with these stages."""
        tensors = map_tensors(path)
        lists = np.repeat(np.arange(stages.lists), np.diff(tensors["lists.offsets"]))
        return cls(
            stages,
            int(read_notes(path).get(CHANGED, "0")),
            tensors["axes"].copy(),
            tensors["centroids"].copy(),
            tensors["centroids.scales"].copy(),
            lists[tensors["lists.places"]],
        )

    def keep(self, older_rows: Places, codes: Codes, scales: Scales) -> ListsOfRows | None:
        """Return the lists of a corpus, None if too many rows have changed.

        older_rows is (rows,): the older row of each row, -1 for a new one. codes is (rows, dim) int8 and scales (rows,)
        float32; they can be memory-mapped. New rows are compared with the centroids as queries are: along the axes.
        """
        is_new = older_rows < 0
        removed = len(self.numbers) - len(np.unique(older_rows[~is_new]))
        changed = self.changed + int(np.count_nonzero(is_new)) + removed
        if changed >= MOST_CHANGED * len(codes):
            return None
        numbers = self.numbers[older_rows]
        centroids = dequantize(self.centroids, self.scales).T
        new = np.flatnonzero(is_new)
        for begin in range(0, len(new), ROWS_AT_ONCE):
            some = new[begin : begin + ROWS_AT_ONCE]
            numbers[some] = np.argmax(dequantize(codes[some], scales[some]) @ self.axes @ centroids, axis=1)
        _join_equal_rows(numbers, is_new, codes, scales)
        release(codes)
        used, numbers = np.unique(numbers, return_inverse=True)
        stages = replace(self.stages, lists=len(used), probed=min(self.stages.probed, len(used)))
        return ListsOfRows(numbers, self.axes, self.centroids[used], self.scales[used], stages, changed)


def _join_equal_rows(numbers: Numbers, is_new: Array[np.bool_], codes: Codes, scales: Scales) -> None:
    """Put new rows into the list of an older row with equal codes: a search finds both, in the corpus's order."""
    alike = np.flatnonzero(~is_new)[np.isin(scales[~is_new], scales[is_new])]
    list_of = {codes[row].tobytes(): numbers[row] for row in alike}
    for row in np.flatnonzero(is_new):
        numbers[row] = list_of.get(codes[row].tobytes(), numbers[row])
