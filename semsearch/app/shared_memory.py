"""Memory that processes share: the failures of one, and what a worker leaves to the next one."""

import mmap
import struct
from hashlib import sha256
from typing import Any

import numpy as np

ERROR_BYTES = 1_000  # maximum length of an error that is shared; the rest of a longer one is cut off
# Maximum length of what a worker leaves: a pointer with 10,000 removed ids has about 400 kB. The system takes memory
# only for what is written.
HANDOVER_BYTES = 16_000_000
HANDOVER_HEAD = struct.Struct("=Q32s")  # the length of the content and its SHA-256


class SharedFailures:
    """The number of failures, the last error and the changes that wait, in memory that forked processes share."""

    def __init__(self) -> None:
        """Start without a failure."""
        row = np.dtype([("failures", np.int64), ("waiting", np.int64), ("error", f"S{ERROR_BYTES}")])
        self._row: Any = np.frombuffer(mmap.mmap(-1, row.itemsize), row)[0]

    @property
    def failures(self) -> int:
        """The number of failures until now."""
        return int(self._row["failures"])

    @property
    def error(self) -> str | None:
        """The error of the last failure, None if it was followed by a success."""
        return self._row["error"].decode(errors="replace") or None

    @property
    def waiting(self) -> int:
        """The number of changed files that are not in the index yet."""
        return int(self._row["waiting"])

    @waiting.setter
    def waiting(self, files: int) -> None:
        self._row["waiting"] = files

    def fail(self, error: str) -> None:
        """Count a failure."""
        self._row["failures"] += 1
        self._row["error"] = error.encode()

    def succeed(self) -> None:
        """Clear the last error."""
        self._row["error"] = b""


class Handover:
    """What a worker leaves to the process that replaces it, in memory that both share with the main process.

    One process at a time writes.
    """

    def __init__(self, room: int = HANDOVER_BYTES) -> None:
        """Start with nothing. `room` is the maximum number of bytes."""
        self._memory = mmap.mmap(-1, HANDOVER_HEAD.size + room)

    def write(self, content: bytes) -> None:
        """Replace what was left by other bytes, at least one."""
        record = HANDOVER_HEAD.pack(len(content), sha256(content).digest()) + content
        kept = record[: len(self._memory)]  # `read` notices that the rest is missing
        self._memory[: len(kept)] = kept

    def read(self) -> bytes | None:
        """Return what was written last, None if nothing was.

        It is b"" if the process was killed while it wrote, or if there was no room for all.
        """
        length, digest = HANDOVER_HEAD.unpack_from(self._memory)
        if not length:
            return None
        content = self._memory[HANDOVER_HEAD.size : HANDOVER_HEAD.size + length]
        if sha256(content).digest() != digest:
            return b""
        return content
