"""Limits of the connections of one process: their number, their speed, and the memory of their bodies."""

import ctypes
import resource
from dataclasses import dataclass

from function.settings import LAMBDA_BODY_LIMIT

DEFAULT_CONNECTIONS = 1_024  # open connections of one process
MEGABYTE = 1024 * 1024
OTHER_FILES = 256  # open files of a process beside its connections
TRIMS = 5  # number of times that the heap is trimmed after large bodies
LEAST_TO_TRIM = 16 * MEGABYTE  # bytes of bodies after which the heap is trimmed, which takes some milliseconds


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the connections of one process. Sizes are in bytes, times in seconds."""

    connections: int = DEFAULT_CONNECTIONS  # a connection above this limit gets a 429, above twice the limit nothing
    head_bytes: int = 65_536  # size of a request's head; uvicorn has the same limit with h11, httptools has none
    body_bytes: int = LAMBDA_BODY_LIMIT  # size of one body
    small_body_bytes: int = 65_536  # a body up to this size is always read, also while large ones fill their limit
    large_bodies_bytes: int = 64 * MEGABYTE  # total size of all larger bodies that are being read or answered
    pipelined: int = 32  # number of requests on one connection that wait for earlier replies
    # 20 seconds, and 500 bytes a second, are the defaults of Apache's mod_reqtimeout
    seconds_for_head: float = 20.0  # from the connection, or from the last reply, to the whole head of a request
    seconds_for_bytes: float = 20.0  # time in which `least_bytes` of a body must arrive, or of a reply must be sent
    least_bytes: int = 10_000
    # time to receive what a caller still sends after a last reply; closing at once could lose the reply
    seconds_to_linger: float = 10.0


class LargeBodies:
    """The memory that the large bodies of a process take."""

    def __init__(self) -> None:
        self.bytes = 0
        self._since_trim = 0  # bytes added since the last trim
        self._trims = 0  # number of trims that are left
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it

    def add(self, count: int) -> None:
        """Count bytes that were received."""
        self.bytes += count
        self._since_trim += count

    def remove(self, count: int) -> None:
        """Count bytes that are no longer needed."""
        self.bytes -= count

    def trim(self) -> None:
        """Return the memory of former bodies to the system if there are none now. glibc would keep 60 MB of 64.

        Call this about once a second. It trims several times, because other threads can still use copies of a body.
        """
        if self.bytes or self._trim is None:
            return
        if self._since_trim > LEAST_TO_TRIM:
            self._since_trim, self._trims = 0, TRIMS
        if self._trims:
            self._trims -= 1
            self._trim(0)


class Progress:
    """Watches whether bytes move fast enough."""

    __slots__ = ("_count", "_least", "_seconds", "_since")

    def __init__(self, limits: Limits) -> None:
        self._least = limits.least_bytes
        self._seconds = limits.seconds_for_bytes
        self.restart(0.0, 0)

    def restart(self, now: float, count: int) -> None:
        """Begin to watch: `count` bytes have moved at `now`, which is in seconds."""
        self._since, self._count = now, count

    def is_slow(self, now: float, count: int) -> bool:
        """Return whether too few bytes have moved for too long."""
        if count < self._count or count - self._count >= self._least:
            self.restart(now, count)
        return now - self._since > self._seconds


def most_connections() -> int:
    """Return the largest limit of connections that the system's limit of open files allows a process."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1_000_000 if hard == resource.RLIM_INFINITY else max(1, (hard - OTHER_FILES) // 2)


def allow_connections(count: int) -> None:
    """Raise the limit of open files to twice as many connections, since those up to that number get a 429."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * count + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
