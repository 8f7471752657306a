"""Which pages of a file the kernel holds in memory: mincore says it."""

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np

from semsearch.engine.tensors import Array


def forget(path: Path) -> None:
    """Make the kernel drop a file from the page cache. The file must not be open elsewhere."""
    with path.open("rb") as file:
        os.fsync(file.fileno())  # what is not yet on the disk cannot be dropped
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_pages(path: Path) -> Array[np.bool_]:
    """Return which pages of a file are in the page cache, (pages,) bool, without reading any."""
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        states = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
        view = np.frombuffer(mapped, np.uint8)
        address, found = ctypes.c_void_p(view.ctypes.data), states.ctypes.data_as(ctypes.c_void_p)
        failed = ctypes.CDLL(None, use_errno=True).mincore(address, ctypes.c_size_t(size), found)
        del view  # otherwise the map cannot be closed
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    cached: Array[np.bool_] = (states & 1).astype(np.bool_)
    return cached
