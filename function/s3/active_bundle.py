"""The bundle of a request: the one that was current when the request began, even if a switch happens meanwhile."""

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar

from function.engine.loading import Loaded
from function.http import ASGIApp, Message, Receive, Scope, Send
from function.s3.folders import SharedFolder
from function.search.query import Search

# the bundle of the request that is being answered; None outside of requests
bundle_of_request: "ContextVar[ActiveBundle | None]" = ContextVar("bundle of the request", default=None)
SHOWN = 12  # number of a version's characters in the header `x-bundle`


class ActiveBundle:
    """One bundle, and the search over it."""

    def __init__(
        self,
        bundle: Loaded,
        version: str,
        folder: SharedFolder | None,
        unused: deque[SharedFolder],
        removed: Sequence[int] = (),
        search: Search | None = None,
    ) -> None:
        """Append the bundle's folder to `unused` when nothing, such as a request, refers to this object any more.

        The folder of a model that is served alone is None, and its version is "".
        """
        self.bundle = bundle
        self.version = version
        self.removed = tuple(removed)
        self.search = search
        # only queue it: deleting is slow, and the last reference is often dropped inside a request
        if folder is not None:
            weakref.finalize(self, unused.append, folder)


class BundlePerRequest:
    """ASGI middleware: assigns one bundle to each request, and names it in the reply's header `x-bundle`."""

    def __init__(self, app: ASGIApp, begin: Callable[[], ActiveBundle]) -> None:
        """Call `begin` for each request; it must return the current bundle."""
        self._app = app
        self._begin = begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        served = self._begin()
        name = served.version[:SHOWN].encode()

        async def send_named(message: Message) -> None:
            if name and message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-bundle", name)]
            await send(message)

        token = bundle_of_request.set(served)
        try:
            await self._app(scope, receive, send_named)
        finally:
            bundle_of_request.reset(token)
