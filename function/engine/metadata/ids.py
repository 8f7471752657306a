"""The ids of the corpus as a column that filters compare. Imported by the first query that needs it.

It has no dictionary and no sorted copy: the ids are compared where passages.safetensors has them.
"""

from collections.abc import Sequence

import numpy as np

from function.engine.arrays import AnyArray, Array
from function.engine.metadata.columns import COMPARED, Mask, Stored


class IdColumn:
    """The id of each row, a string; each method returns (rows,) bool, as those of `Column` do."""

    kind = "string"

    def __init__(self, content: AnyArray, offsets: AnyArray) -> None:
        """Take the ids as UTF-8 bytes (n,) uint8 and offsets (rows + 1,) uint64."""
        self._content = content
        self._offsets = offsets
        self.count = len(offsets) - 1

    def find(self, id: str) -> int | None:
        """Return the first row that has an id, None if there is none."""
        wanted = id.encode("utf-8", "surrogatepass")
        rows = self._begin_with(np.flatnonzero(np.diff(self._offsets) == len(wanted)), wanted)
        return int(rows[0]) if len(rows) else None

    def exists(self) -> Mask:
        """Return all rows."""
        return np.ones(self.count, np.bool_)

    def equals_any(self, values: Sequence[Stored]) -> Mask:
        """Return the rows whose id is one of these."""
        wanted = set(values)
        lengths = np.diff(self._offsets)
        rows = np.flatnonzero(np.isin(lengths, [len(value) for value in wanted if isinstance(value, bytes)]))
        return self._mask([row for row in rows.tolist() if self._id(row) in wanted])

    def starts_with(self, start: bytes) -> Mask:
        """Return the rows whose id begins with this; start is UTF-8."""
        rows = np.flatnonzero(np.diff(self._offsets) >= len(start))
        return self._mask(self._begin_with(rows, start))

    def compare(self, comparison: str, value: Stored) -> Mask:
        """Return the rows whose id is $gt, $gte, $lt or $lte this one, by the order of their bytes."""
        compare = COMPARED[comparison].values
        return self._mask([row for row in range(self.count) if compare(self._id(row), value)])  # type: ignore[arg-type] # bytes compare as numbers do

    def _begin_with(self, rows: Array[np.intp], start: bytes) -> Array[np.intp]:
        """Return those of the rows whose id begins with these bytes; none is shorter."""
        begins = self._offsets[rows].astype(np.int64)
        for place in reversed(range(len(start))):  # the last bytes of ids differ most
            same = self._content[begins + place] == start[place]
            rows, begins = rows[same], begins[same]
        return rows

    def _id(self, row: int) -> bytes:
        begin, end = self._offsets[row : row + 2]
        return bytes(self._content[int(begin) : int(end)])

    def _mask(self, rows: Sequence[int] | Array[np.intp]) -> Mask:
        mask = np.zeros(self.count, np.bool_)
        mask[rows] = True
        return mask
