"""The version that the processes of a server serve, in memory that they share.

Workers are forked from a main process, which has the bundle of the start open. A worker that replaces a dead one finds
here which version the others have switched to since.
"""

import fcntl
import os
import struct
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

RECORD = struct.Struct("d64s")  # when the pointer was read, by time.monotonic, and the version


class SharedVersion:
    """The version that the latest poll of any process of this server found to be current; None before the first poll.

    The memory belongs to this process and to those forked from it. The system frees it when the last one ends.
    """

    def __init__(self) -> None:
        self._memory = os.memfd_create("version")
        weakref.finalize(self, os.close, self._memory)

    def get(self) -> str | None:
        """Return the version, 64 hexadecimal digits."""
        with self._locked(fcntl.LOCK_SH):
            content = os.pread(self._memory, RECORD.size, 0)
        return RECORD.unpack(content)[1].decode() if content else None

    def set(self, version: str, asked_at: float) -> None:
        """Store the version of a poll that began at `asked_at` (time.monotonic), unless a later poll has stored one."""
        with self._locked(fcntl.LOCK_EX):
            content = os.pread(self._memory, RECORD.size, 0)
            if not content or RECORD.unpack(content)[0] <= asked_at:
                os.pwrite(self._memory, RECORD.pack(asked_at, version.encode()), 0)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        # A POSIX lock belongs to the process and ends with it. A lock of flock belongs to the descriptor, which forked
        # processes share.
        fcntl.lockf(self._memory, kind)
        try:
            yield
        finally:
            fcntl.lockf(self._memory, fcntl.LOCK_UN)
