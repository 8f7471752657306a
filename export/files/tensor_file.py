"""Write safetensors files of any size with little memory.

The library's own writer copies all tensors of a file into one string of bytes. This one copies a block at a time, and
the bytes it writes are the library's. function/engine/tensors.py reads the files and describes the format.
Left out: dtypes that no bundle has, and the format's `__metadata__`.
"""

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from export.files.mapped import release
from function.engine.arrays import AnyArray
from function.engine.tensors import DTYPES

BLOCK = 1 << 22  # bytes that are copied at a time
ALIGNMENT = 8  # bytes: where the tensors begin
ORDER = ("U64", "I64", "F64", "F32", "U32", "U16", "I8", "U8")  # of the tensors in a file: the library's


@dataclass(frozen=True, slots=True)
class Gathered:
    """The rows of an array in another order: source[rows], of which save_tensors holds one block at a time."""

    source: AnyArray
    rows: AnyArray

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of source[rows]."""
        return (len(self.rows), *self.source.shape[1:])

    @property
    def dtype(self) -> "np.dtype[np.generic]":
        """Return the dtype of the source."""
        return self.source.dtype


Tensor = AnyArray | Gathered | IO[bytes]  # an open file stands for its bytes, uint8


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file that every user may read, with the same bytes as the library's save_file.

    An array has one dimension or more and may be memory-mapped; its pages are released when they are written. No more
    than BLOCK bytes, or one row, are copied at a time. Raises ValueError for a dtype that no bundle has, OSError if the
    file cannot be written.
    """
    dtypes = {name: _dtype_name(name, tensor) for name, tensor in tensors.items()}
    ordered = sorted(tensors, key=lambda name: (ORDER.index(dtypes[name]), name.encode()))
    header, begin = {}, 0
    for name in ordered:
        shape = _shape(tensors[name])
        end = begin + math.prod(shape) * np.dtype(DTYPES[dtypes[name]]).itemsize
        header[name] = {"dtype": dtypes[name], "shape": shape, "data_offsets": (begin, end)}
        begin = end
    encoded = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for name in ordered:
            _write(file, tensors[name])
    path.chmod(0o644)  # whatever the umask, because a container has another user


def _dtype_name(name: str, tensor: Tensor) -> str:
    dtype = tensor.dtype if isinstance(tensor, np.ndarray | Gathered) else np.dtype(np.uint8)
    for known, kind in DTYPES.items():
        if dtype == kind:
            return known
    raise ValueError(f"tensor {name!r}: dtype {dtype}, expected one of {', '.join(DTYPES)}")


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tensor.shape if isinstance(tensor, np.ndarray | Gathered) else (tensor.seek(0, 2),)


def _write(file: IO[bytes], tensor: Tensor) -> None:
    """Write the values of a tensor, row after row."""
    if not isinstance(tensor, np.ndarray | Gathered):
        tensor.seek(0)
        shutil.copyfileobj(tensor, file, BLOCK)
        return
    rows, *row_shape = tensor.shape
    step = max(1, BLOCK // max(1, math.prod(row_shape) * tensor.dtype.itemsize))
    for begin in range(0, rows, step):
        block = slice(begin, begin + step)
        values = tensor.source[tensor.rows[block]] if isinstance(tensor, Gathered) else tensor[block]
        file.write(np.ascontiguousarray(values).data)
        release(tensor.source if isinstance(tensor, Gathered) else tensor)
