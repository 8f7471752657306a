"""Memory-mapped safetensors files: opening one reads its header, using a row reads that row.

The library's own reader copies whole tensors into memory, so this module reads the files;
export/files/tensor_file.py writes them.
The format: 8 bytes with the header's length (little-endian), a JSON header {name: {dtype, shape, data_offsets:
[begin, end]}}, then the bytes; offsets count from the end of the header.
Source: https://github.com/huggingface/safetensors#format
"""

import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np

from function.engine.arrays import AnyArray

DTYPES = {  # those a bundle holds
    "I8": np.int8,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I64": np.int64,
    "F32": np.float32,
    "F64": np.float64,
}
READ_AT_ONCE = 1 << 19  # bytes for each call of madvise; the kernel can ignore the rest of a larger range
HEADER_LIMIT = 100_000_000  # maximum bytes of the header, by the format


class TensorsError(ValueError):
    """A safetensors file that cannot be read: the message names the file, what was found and what was expected."""


def map_tensors(path: Path, *, scattered: bool = False) -> dict[str, AnyArray]:
    """Return the tensors by name, as read-only views of one memory map.

    The first use of a row also pays for reading it from disk. If the rows that are used lie scattered, pass
    scattered=True: the kernel then reads their pages alone, and not up to megabytes around each.
    Raises TensorsError if the file is not whole or holds a dtype that no bundle has, OSError if it cannot be opened.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 8:
            raise TensorsError(
                f"{path}: {size} bytes, expected at least the 8 of a safetensors file; run `python -m export` again"
            )
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if scattered:
        mapped.madvise(mmap.MADV_RANDOM)
    header_length = int.from_bytes(mapped[:8], "little")
    begin = 8 + header_length
    if header_length > HEADER_LIMIT or begin > size:
        raise TensorsError(
            f"{path}: header of {header_length} bytes in a file of {size}; expected a whole safetensors file; "
            "run `python -m export` again"
        )
    try:
        header = json.loads(mapped[8:begin])
        header.pop("__metadata__", None)
        return {name: _view(mapped, begin, size, entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise TensorsError(
            f"{path}: {error}; expected a whole safetensors file; run `python -m export` again"
        ) from error


def map_of(tensor: AnyArray) -> mmap.mmap | None:
    """Return the memory map that a tensor is a view of, None if it is of none."""
    base: object = tensor
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None


def read_ahead(tensor: AnyArray) -> None:
    """Ask the kernel to read all of a tensor in the background, because it is about to be used as a whole."""
    if mapped := map_of(tensor):
        begin = _address(tensor) - _address(np.frombuffer(mapped, np.uint8))
        for place in range(begin - begin % READ_AT_ONCE, begin + tensor.nbytes, READ_AT_ONCE):
            mapped.madvise(mmap.MADV_WILLNEED, place, min(READ_AT_ONCE, len(mapped) - place))


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])


def _view(mapped: mmap.mmap, begin: int, size: int, entry: dict[str, Any]) -> AnyArray:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"dtype {entry['dtype']}, expected one of {', '.join(DTYPES)}")
    dtype = np.dtype(DTYPES[entry["dtype"]])
    first, last = entry["data_offsets"]
    shape = tuple(entry["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    if not 0 <= first <= last <= size - begin or last - first != count * dtype.itemsize:
        raise ValueError(f"bytes {first} to {last} of {size - begin} for shape {list(shape)} of {entry['dtype']}")
    if count == 0:
        empty = np.empty(shape, dtype)
        empty.flags.writeable = False
        return empty
    return np.frombuffer(mapped, dtype, count, begin + first).reshape(shape)
