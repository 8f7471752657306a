"""The version that the processes of a server serve, in memory that they share.

Workers are forked from a main process, which has the bundle of the start open. A worker that replaces another one looks
here which bundle that has become meanwhile.
"""

import fcntl
import os
import struct
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

RECORD = struct.Struct("d64s")  # when the pointer was read, by time.monotonic, and the version


class SharedVersion:
    """The version that a process of this server has switched to last, None until one has polled.

    The memory belongs to this process and to those that are forked from it, and is freed with the last one.
    """

    def __init__(self) -> None:
        self._memory = os.memfd_create("version")
        weakref.finalize(self, os.close, self._memory)

    def get(self) -> str | None:
        """Return the version."""
        with self._locked(fcntl.LOCK_SH):
            content = os.pread(self._memory, RECORD.size, 0)
        return RECORD.unpack(content)[1].decode() if content else None

    def set(self, version: str, asked_at: float) -> None:
        """Remember the version of a poll that began at this time, by time.monotonic, unless a later one was here."""
        with self._locked(fcntl.LOCK_EX):
            content = os.pread(self._memory, RECORD.size, 0)
            if not content or RECORD.unpack(content)[0] <= asked_at:
                os.pwrite(self._memory, RECORD.pack(asked_at, version.encode()), 0)

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        fcntl.lockf(self._memory, kind)  # of this process, unlike flock, and gone with it if it is killed
        try:
            yield
        finally:
            fcntl.lockf(self._memory, fcntl.LOCK_UN)
