"""Memory-mapped arrays: pages that were read count as the process's memory until they are released."""

import mmap

import numpy as np

from function.engine.arrays import AnyArray


def release(array: AnyArray) -> None:
    """Take all pages of the file that an array is mapped from out of the process's memory.

    The system keeps them in its page cache while it has room, so that reading them again is quick. An array that is not
    mapped, or may be written to, stays as it is.
    """
    base: object = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    if isinstance(base, mmap.mmap) and not array.flags.writeable:
        base.madvise(mmap.MADV_DONTNEED)
