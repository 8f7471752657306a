"""Arrays by dtype, and memory-mapped safetensors files: opening one reads its header, using a row reads that row.

The library's own reader copies whole tensors into memory, so this module reads the files. semsearch/indexing/files.py
writes them.
The format: 8 bytes with the header's length (little-endian), a JSON header {name: {dtype, shape, data_offsets:
[begin, end]}}, then the bytes; offsets count from the end of the header.
Source: https://github.com/huggingface/safetensors#format
"""

import json
import mmap
from bisect import bisect_left
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from semsearch.engine.errors import ExpectedError

_Scalar = TypeVar("_Scalar", bound=np.generic)

Array = np.ndarray[tuple[Any, ...], np.dtype[_Scalar]]
AnyArray = Array[Any]

DTYPES: dict[str, type[np.generic]] = {  # dtypes of a bundle's tensors, by their names in the format
    "I8": np.int8,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I64": np.int64,
    "F32": np.float32,
    "F64": np.float64,
}
ADVISED_AT_ONCE = 1 << 19  # bytes for each call of madvise; the kernel can ignore the rest of a larger range


class TensorsError(ExpectedError, ValueError):
    """A safetensors file that cannot be read: the message names the file, what was found and what was expected."""


class Tensors(dict[str, AnyArray]):
    """The tensors of a file by name. Raises TensorsError for a name that is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __missing__(self, name: str) -> AnyArray:
        found = ", ".join(self) or "no tensors"
        raise TensorsError(f"{self._path}: holds {found}, expected {name}; run `semsearch index` again")


def map_tensors(path: Path, *, scattered: bool = False) -> Tensors:
    """Return the tensors by name, as read-only views of one memory map.

    The first use of a row also reads it from disk. Pass scattered=True if the rows that are used lie far apart: the
    kernel then reads only their pages, instead of up to megabytes around each.
    Raises TensorsError if the file is not whole or holds a dtype that no bundle has, OSError if it cannot be opened.
    """
    with path.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if scattered:  # before the header is read
                mapped.madvise(mmap.MADV_RANDOM)
            begin = 8 + int.from_bytes(mapped[:8], "little")
            header = json.loads(mapped[8:begin])
            header.pop("__metadata__", None)
            tensors = Tensors(path)
            tensors.update({name: _view(mapped, begin, entry) for name, entry in header.items()})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise TensorsError(
                f"{path}: {error}; expected a whole safetensors file; run `semsearch index` again"
            ) from error
    return tensors


def map_of(tensor: AnyArray) -> mmap.mmap | None:
    """Return the memory map that a tensor is a view of, None if there is none."""
    base: object = tensor
    while not isinstance(base, mmap.mmap):
        if isinstance(base, np.ndarray):
            base = base.base
        elif isinstance(base, memoryview):
            base = base.obj
        else:
            return None
    return base


def read_ahead(tensor: AnyArray) -> None:
    """Start reading all of a tensor in the background, before all of it is used."""
    if mapped := map_of(tensor):
        begin = _address(tensor) - _address(np.frombuffer(mapped, np.uint8))
        for place in range(begin - begin % ADVISED_AT_ONCE, begin + tensor.nbytes, ADVISED_AT_ONCE):
            mapped.madvise(mmap.MADV_WILLNEED, place, min(ADVISED_AT_ONCE, len(mapped) - place))


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])


def _view(mapped: mmap.mmap, begin: int, entry: dict[str, Any]) -> AnyArray:
    dtype, (first, last) = np.dtype(DTYPES[entry["dtype"]]), entry["data_offsets"]
    return np.frombuffer(mapped, dtype, (last - first) // dtype.itemsize, begin + first).reshape(entry["shape"])


class Strings:
    """Strings of UTF-8, one after the other: reading one reads no other."""

    def __init__(self, content: AnyArray, offsets: AnyArray) -> None:
        """Take their bytes (n,) uint8, and where each begins and the last one ends, (count + 1,) uint64."""
        self.content: AnyArray = content
        self.offsets: AnyArray = offsets
        self._bytes, self._ends = content.data, offsets.data  # faster than arrays, for one string

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> bytes:
        """Return the bytes of one string. Raises IndexError if there is none."""
        if not 0 <= place < len(self):
            raise IndexError(f"row {place} of {len(self)}")
        return bytes(self._bytes[self._ends[place] : self._ends[place + 1]])

    def find(self, key: bytes) -> int | None:
        """Return the place of a string among sorted ones, None if it is not there."""
        place = bisect_left(self, key)
        if place < len(self) and self[place] == key:
            return place
        return None
