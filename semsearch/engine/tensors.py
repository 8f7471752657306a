"""Arrays by dtype, and memory-mapped safetensors files: opening one reads its header, using a row reads that row.

The library's own reader copies whole tensors into memory, so this module reads the files.
semsearch/indexing/tensor_files.py writes them.
The format: 8 bytes with the header's length (little-endian), a JSON header {name: {dtype, shape, data_offsets:
[begin, end]}}, then the bytes; offsets count from the end of the header. Each byte belongs to one tensor, and numbers
begin at multiples of their size, as the library writes them.
Source: https://github.com/huggingface/safetensors#format
"""

import json
import math
import mmap
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

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
DAMAGED = "run `semsearch index` again"  # what to do about a damaged file
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
ADVISED_AT_ONCE = 1 << 19  # bytes for each call of madvise; the kernel can ignore the rest of a larger range


class TensorsError(ExpectedError, ValueError):
    """A safetensors file that cannot be read: the message names the file, what was found and what was expected."""


class Tensors(dict[str, AnyArray]):
    """The tensors of a file by name. Raises TensorsError for a name that is not there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __missing__(self, name: str) -> AnyArray:
        found = ", ".join(self) or "no tensors"
        raise TensorsError(f"{self._path}: holds {found}, expected {name}; {DAMAGED}")

    def require(self, name: str, shape: Sequence[int | None], *dtypes: type[np.generic]) -> AnyArray:
        """Return a tensor of this shape, in which None allows any length, and of one of these dtypes.

        Raises TensorsError for another tensor.
        """
        tensor = self[name]
        has_shape = len(shape) == tensor.ndim and all(
            length in (None, found) for length, found in zip(shape, tensor.shape, strict=True)
        )
        if not has_shape or tensor.dtype.type not in dtypes:
            expected = " or ".join(dtype.__name__ for dtype in dtypes)
            lengths = ", ".join("any" if length is None else str(length) for length in shape)
            found = f"{tensor.dtype} of the shape {tensor.shape}"
            raise TensorsError(
                f"{self._path}: the tensor {name} is {found}, expected {expected} of the shape ({lengths}); {DAMAGED}"
            )
        return tensor

    def strings(self, content: str, offsets: str, count: int | None = None) -> "Strings":
        """Return the strings whose bytes and offsets have these names. Raises TensorsError unless there are `count`."""
        length = None if count is None else count + 1
        ends = self.require(offsets, [length], np.uint64)
        if not len(ends):
            raise TensorsError(f"{self._path}: the tensor {offsets} is empty, expected 0 in it; {DAMAGED}")
        return Strings(self.require(content, [None], np.uint8), ends, f"{self._path}: {content}")


def map_tensors(path: Path, *, scattered: bool = False) -> Tensors:
    """Return the tensors by name, as read-only views of one memory map.

    The first use of a row also reads it from disk. Pass scattered=True if the rows that are used lie far apart: the
    kernel then reads only their pages, instead of up to megabytes around each.
    Raises TensorsError if the file is not whole, if its header does not describe each of its bytes once, or if it holds
    a dtype that no bundle has. Raises OSError if it cannot be opened.
    """
    with path.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if scattered:  # before the header is read
                mapped.madvise(mmap.MADV_RANDOM)
            begin = 8 + int.from_bytes(mapped[:8], "little")
            if begin > len(mapped):
                raise ValueError(f"the header ends at byte {begin} of {len(mapped)}")
            header = json.loads(mapped[8:begin])
            header.pop("__metadata__", None)
            _check_offsets(header, len(mapped) - begin)
            tensors = Tensors(path)
            tensors.update({name: _view(mapped, begin, entry) for name, entry in header.items()})
        # what damaged JSON raises: wrong types, missing fields, too many levels, numbers beyond 64 bits
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            raise TensorsError(f"{path}: {error}; expected a whole safetensors file; {DAMAGED}") from error
    return tensors


def _check_offsets(header: dict[str, Any], size: int) -> None:
    """Raise ValueError unless each tensor begins where another one ends, and the last one ends at `size`."""
    end = 0
    for first, last in sorted(entry["data_offsets"] for entry in header.values()):
        if first != end or last < first:
            raise ValueError(f"a tensor has the offsets {first} and {last} where byte {end} is the next one")
        end = last
    if end != size:
        raise ValueError(f"the tensors end at byte {end} of {size}")


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
    dtype, (first, last), shape = np.dtype(DTYPES[entry["dtype"]]), entry["data_offsets"], entry["shape"]
    if math.prod(shape) * dtype.itemsize != last - first:
        raise ValueError(f"a tensor of {dtype} with the shape {reprlib.repr(shape)} has {last - first} bytes")
    if (begin + first) % dtype.itemsize:
        raise ValueError(f"a tensor of {dtype} begins at byte {begin + first}, no multiple of {dtype.itemsize}")
    return np.frombuffer(mapped, dtype, (last - first) // dtype.itemsize, begin + first).reshape(shape)


def check_ascending(offsets: AnyArray, size: int, where: str) -> AnyArray:
    """Return offsets (n,), n at least 1. Raises TensorsError unless they ascend and none is above `size`.

    where begins the message.
    """
    if (offsets[1:] < offsets[:-1]).any() or offsets[-1] > size:
        raise TensorsError(f"{where}: an offset is above the next one or above {size}, expected none; {DAMAGED}")
    return offsets


class Strings:
    """Strings of UTF-8, one after the other: reading one reads no other. A damaged one raises TensorsError."""

    def __init__(self, content: AnyArray, offsets: AnyArray, where: str = "strings") -> None:
        """Take their bytes (n,) uint8, and where each begins and the last one ends, (count + 1,) uint64.

        where begins the messages of errors.
        """
        self.content: AnyArray = content
        self.offsets: AnyArray = offsets
        self._where = where
        self._bytes, self._ends = content.data, offsets.data  # faster than arrays, for one string

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: int) -> bytes:
        """Return the bytes of one string. Raises IndexError if there is none."""
        if not 0 <= place < len(self):
            raise IndexError(f"row {place} of {len(self)}")
        begin, end = self._ends[place], self._ends[place + 1]
        if not begin <= end <= len(self._bytes):
            raise self._wrong_offsets(place)
        return bytes(self._bytes[begin:end])

    def text(self, place: int) -> str:
        """Return one string. Raises IndexError if there is none."""
        found = self[place]
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise self._damaged(f"string {place} is not UTF-8: {error}") from error

    def texts(self, places: AnyArray) -> list[str]:
        """Return the strings at ascending places, (n,). What is between the first and the last of them is read too."""
        begins, ends = self.offsets[places].astype(np.intp), self.offsets[places + 1].astype(np.intp)
        is_whole = (begins[:1] >= 0).all() and (begins <= ends).all() and (ends[:-1] <= begins[1:]).all()
        if not len(places) or not is_whole or ends[-1] > len(self._bytes):
            return [self.text(place) for place in places.tolist()]  # raises for the first one that is damaged
        first = int(begins[0])
        content = bytes(self._bytes[first : int(ends[-1])])
        pairs = zip((begins - first).tolist(), (ends - first).tolist(), strict=True)
        if content.isascii():
            whole = content.decode()
            return [whole[begin:end] for begin, end in pairs]
        try:
            return [content[begin:end].decode() for begin, end in pairs]
        except UnicodeDecodeError:
            return [self.text(place) for place in places.tolist()]

    def offsets_of(self, first: int, end: int) -> AnyArray:
        """Return where each string from `first` on begins and the last one before `end` ends, ascending."""
        return check_ascending(self.offsets[first : end + 1], len(self.content), self._where)

    def check(self) -> Self:
        """Return the strings, after reading all offsets: they begin at 0, ascend, and end with the content."""
        ends = self.offsets_of(0, len(self))
        if ends[0] != 0 or ends[-1] != len(self.content):
            raise self._damaged(f"the offsets are {ends[0]} to {ends[-1]}, for {len(self.content)} bytes")
        return self

    def find(self, key: bytes) -> int | None:
        """Return the place of a string among sorted ones, None if it is not there."""
        place = self.place_for(key)
        if place < len(self) and self[place] == key:
            return place
        return None

    def place_for(self, key: bytes) -> int:
        """Return how many of the strings, which are sorted, come before a string.

        `bisect_left`, which calls `__getitem__`, takes twice the time.
        """
        content, ends, size = self._bytes, self._ends, len(self._bytes)
        low, high = 0, len(self)
        while low < high:
            place = (low + high) // 2
            begin, end = ends[place], ends[place + 1]
            if not begin <= end <= size:
                raise self._wrong_offsets(place)
            if bytes(content[begin:end]) < key:
                low = place + 1
            else:
                high = place
        return low

    def _wrong_offsets(self, place: int) -> TensorsError:
        return self._damaged(f"string {place} has the offsets {self._ends[place]} and {self._ends[place + 1]}")

    def _damaged(self, found: str) -> TensorsError:
        return TensorsError(f"{self._where}: {found}, expected whole strings; {DAMAGED}")
