"""Write safetensors files from arrays that can be larger than the memory, and map files."""

import json
import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from semsearch.engine.tensors import DTYPES, AnyArray, map_of

COPIED_AT_ONCE = 1 << 22  # bytes that are copied at a time
ALIGNMENT = 8  # bytes: where the tensors begin
ORDER = ("U64", "I64", "F64", "F32", "U32", "U16", "I8", "U8")  # order of the tensors in a file: the library's


def save_tensors(path: Path, tensors: Mapping[str, AnyArray]) -> None:
    """Write a safetensors file that every user may read, with the same bytes as the library's save_file.

    An array has one dimension or more and can be memory-mapped; its pages are released when they are written. No more
    than COPIED_AT_ONCE bytes, or one row, are copied at a time. Raises ValueError for a dtype that no bundle has, and
    OSError if the file cannot be written.
    """
    dtypes = {name: _dtype_name(name, tensor) for name, tensor in tensors.items()}
    ordered = sorted(tensors, key=lambda name: (ORDER.index(dtypes[name]), name.encode()))
    header: dict[str, object] = {}
    begin = 0
    for name in ordered:
        shape = tensors[name].shape
        end = begin + math.prod(shape) * tensors[name].dtype.itemsize
        header[name] = {"dtype": dtypes[name], "shape": shape, "data_offsets": (begin, end)}
        begin = end
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in map(tensors.__getitem__, ordered):
            rows, *row_shape = tensor.shape
            step = max(1, COPIED_AT_ONCE // max(1, math.prod(row_shape) * tensor.dtype.itemsize))
            for begin in range(0, rows, step):
                file.write(np.ascontiguousarray(tensor[begin : begin + step]).data)
                release(tensor)
    path.chmod(0o644)  # with any umask, because a container has another user


def _dtype_name(name: str, tensor: AnyArray) -> str:
    for known, kind in DTYPES.items():
        if tensor.dtype == kind:
            return known
    raise ValueError(f"tensor {name!r}: dtype {tensor.dtype}, expected one of {', '.join(DTYPES)}")


def map_file(file: IO[bytes]) -> AnyArray:
    """Return the bytes of an open file, (n,) uint8, memory-mapped: they stay readable when the file is closed."""
    if not file.seek(0, 2):  # seek writes what is buffered
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def release(array: AnyArray) -> None:
    """Take all pages of the file that an array is mapped from out of the process's memory.

    Pages that were read count as its memory until then. The system keeps them in its page cache while it has room, so
    that reading them again is quick. An array that is not mapped, or can be written, stays as it is.
    """
    if (mapped := map_of(array)) and not array.flags.writeable:
        mapped.madvise(mmap.MADV_DONTNEED)
