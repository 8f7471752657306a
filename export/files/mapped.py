"""Memory-mapped arrays: pages that were read count as the process's memory until they are released."""

import mmap

from function.engine.arrays import AnyArray
from function.engine.tensors import map_of


def release(array: AnyArray) -> None:
    """Take all pages of the file that an array is mapped from out of the process's memory.

    The system keeps them in its page cache while it has room, so that reading them again is quick. An array that is not
    mapped, or may be written to, stays as it is.
    """
    if (mapped := map_of(array)) and not array.flags.writeable:
        mapped.madvise(mmap.MADV_DONTNEED)
