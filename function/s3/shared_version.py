"""The version that the processes of a server serve, in memory that they share.

Workers are forked from a main process, which has the bundle of the start open. A worker that replaces a dead one finds
here which version the others have switched to since.
"""

import fcntl
import os
import struct
import weakref
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

RECORD = struct.Struct("d64s")  # when the pointer was read, by time.monotonic, and the version; removed rows follow
ROWS = "I"  # type code of the array of removed rows


class SharedVersion:
    """The version that the latest poll of any process of this server found to be current, and its removed rows.

    The memory belongs to this process and to those forked from it. The system frees it when the last one ends.
    """

    def __init__(self) -> None:
        self._memory = os.memfd_create("version")
        weakref.finalize(self, os.close, self._memory)

    def get(self) -> tuple[str, tuple[int, ...]] | None:
        """Return the version, 64 hexadecimal digits, and its removed rows; None before the first poll."""
        with self._locked(fcntl.LOCK_SH):
            content = os.pread(self._memory, os.fstat(self._memory).st_size, 0)
        if not content:
            return None
        return RECORD.unpack_from(content)[1].decode(), tuple(array(ROWS, content[RECORD.size :]))

    def set(self, version: str, removed: Sequence[int], asked_at: float) -> None:
        """Store what a poll found that began at `asked_at` (time.monotonic), unless a later poll has stored another."""
        with self._locked(fcntl.LOCK_EX):
            content = os.pread(self._memory, RECORD.size, 0)
            if not content or RECORD.unpack(content)[0] <= asked_at:
                content = RECORD.pack(asked_at, version.encode()) + array(ROWS, removed).tobytes()
                os.ftruncate(self._memory, len(content))
                os.pwrite(self._memory, content, 0)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        # A POSIX lock belongs to the process and ends with it. A lock of flock belongs to the descriptor, which forked
        # processes share.
        fcntl.lockf(self._memory, kind)
        try:
            yield
        finally:
            fcntl.lockf(self._memory, fcntl.LOCK_UN)
