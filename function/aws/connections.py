"""Connections to one endpoint that stay open between requests, for whichever thread asks next."""

import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from function.aws.deadline import TimedConnection
from function.aws.endpoint import Endpoint

SECONDS_IDLE = 20.0  # what lies between may forget a connection without a word, and a request over it then only waits


class Connections:
    """The connections that no request uses now. Several threads may borrow them."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Connect to this endpoint when a request needs it. What is idle is closed with this object."""
        self._endpoint = endpoint
        self._idle: list[tuple[TimedConnection, float]] = []  # since when; a list's append and pop are atomic
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def borrow(self) -> Iterator[TimedConnection]:
        """Yield an idle connection or a new one. After an error it is closed.

        An idle one is open (its `sock` is not None), but the other side may have closed it meanwhile.
        """
        connection = self._take_idle() or self._endpoint.connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append((connection, time.time()))

    def _take_idle(self) -> TimedConnection | None:
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:  # another thread took the last one
                return None
            # by the clock on the wall, which goes on while a function is frozen
            if 0 <= time.time() - since <= SECONDS_IDLE:
                return connection
            connection.close()
        return None

    def close(self) -> None:
        """Close the idle connections."""
        _close_all(self._idle)


def _close_all(idle: list[tuple[TimedConnection, float]]) -> None:
    while idle:
        idle.pop()[0].close()
