"""Keep the lists of an older index in an update: new rows join lists, and removed rows leave theirs.

k-means takes most of the time of writing a large index, and a few new rows would hardly move its centroids. The lists
are made again when a fifth of the rows has changed since k-means: index.safetensors counts these rows (CHANGED).
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from export.files.tensor_file import Notes, read_notes, release
from export.index.lists import Numbers, second_likeness
from function.engine.arrays import Array
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Embeddings, Scales, dequantize
from function.engine.tensors import map_tensors

MOST_CHANGED = 0.2  # if this share of the rows has changed, the lists are made again
CHANGED = "changed"  # the note in index.safetensors: rows that joined or left the lists since k-means made them
ROWS_AT_ONCE = 256  # new rows that are compared with all centroids at a time: 100 MB for the lists of a million rows


@dataclass(frozen=True, slots=True)
class ListsOfRows:
    """The two lists of each row, and their centroids along the axes: see function/engine/semantic/ivf.py.

    No list is empty. stages are those of the older index, None for new lists.
    """

    numbers: Numbers  # (rows, 2): the numbers of each row's two lists
    axes: Embeddings  # (dim, m)
    centroids: Codes  # (lists, m)
    scales: Scales  # (lists,)
    stages: StagesInfo | None = None
    changed: int = 0  # rows that joined or left the lists since k-means made them

    @property
    def notes(self) -> Notes:
        """Return the notes of index.safetensors, empty for new lists."""
        return {CHANGED: str(self.changed)} if self.changed else {}

    def entries(self) -> "ListEntries":
        """Return the entries of all lists."""
        count = len(self.numbers)
        order = np.argsort(self.numbers.reshape(-1), kind="stable")
        rows = np.repeat(np.arange(count), 2)[order]
        firsts = np.flatnonzero(np.tile([True, False], count)[order])
        of_rows = np.empty(count, np.uint32)
        of_rows[rows[firsts]] = firsts
        return ListEntries(rows, np.cumsum([0, *np.bincount(self.numbers.reshape(-1))], dtype=np.uint32), of_rows)


@dataclass(frozen=True, slots=True)
class ListEntries:
    """The rows in the order of their lists, where each row occurs twice: see function/engine/semantic/ivf.py."""

    rows: Numbers  # (entries,): the row of each entry; they ascend in each list
    offsets: Array[np.uint32]  # (lists + 1,): the first entry of each list
    of_rows: Array[np.uint32]  # (rows,): the entry of each row in its first list


@dataclass(frozen=True, slots=True)
class OlderLists:
    """The lists of an older index. They stay readable if its file is replaced."""

    stages: StagesInfo
    changed: int
    axes: Embeddings
    centroids: Codes
    scales: Scales
    numbers: Numbers  # (older rows, 2): the numbers of each row's two lists

    @classmethod
    def read(cls, path: Path, stages: StagesInfo) -> "OlderLists | None":
        """Read the lists of an index.safetensors that `Index.open` accepts with these stages.

        Return None if each row is in one list, as in files of older versions.
        """
        tensors = map_tensors(path)
        if "entries.places" not in tensors:
            return None
        lists = np.repeat(np.arange(stages.lists), np.diff(tensors["lists.offsets"]))
        entries = tensors["places.entries"]
        is_second = np.ones(len(lists), np.bool_)
        is_second[entries] = False
        numbers = np.repeat(lists[entries, np.newaxis], 2, axis=1)
        numbers[tensors["entries.places"][is_second], 1] = lists[is_second]
        return cls(
            stages,
            int(read_notes(path).get(CHANGED, "0")),
            tensors["axes"].copy(),
            tensors["centroids"].copy(),
            tensors["centroids.scales"].copy(),
            numbers[tensors["lists.places"]],
        )

    def keep(self, older_rows: Numbers, codes: Codes, scales: Scales) -> ListsOfRows | None:
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
        centroids = dequantize(self.centroids, self.scales)
        new = np.flatnonzero(is_new)
        for begin in range(0, len(new), ROWS_AT_ONCE):
            some = new[begin : begin + ROWS_AT_ONCE]
            rows = dequantize(codes[some], scales[some]) @ self.axes
            first = np.argmax(rows @ centroids.T, axis=1)
            likeness = second_likeness(rows, centroids[first], centroids)
            likeness[np.arange(len(some)), first] = -np.inf
            numbers[some] = np.column_stack([first, likeness.argmax(axis=1)])
        _join_equal_rows(numbers, is_new, codes, scales)
        release(codes)
        used, numbers = np.unique(numbers, return_inverse=True)
        stages = replace(self.stages, lists=len(used), probed=min(self.stages.probed, len(used)))
        return ListsOfRows(numbers, self.axes, self.centroids[used], self.scales[used], stages, changed)


def _join_equal_rows(numbers: Numbers, is_new: Array[np.bool_], codes: Codes, scales: Scales) -> None:
    """Put new rows into the lists of an older row with equal codes: a search finds both, in the corpus's order."""
    alike = np.flatnonzero(~is_new)[np.isin(scales[~is_new], scales[is_new])]
    list_of = {codes[row].tobytes(): numbers[row] for row in alike}
    for row in np.flatnonzero(is_new):
        numbers[row] = list_of.get(codes[row].tobytes(), numbers[row])
