"""Routes that a start leaves out: they are added to the app by the first request that none of the others answers."""

from collections.abc import Callable

from fastapi import FastAPI
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send


class LazyRoutes(BaseRoute):
    """The last of the app's routes: it takes whatever comes to it, adds the others, and asks all of them again."""

    def __init__(self, app: FastAPI, add: Callable[[], None]) -> None:
        """Let `add` import the modules of further routes and add them to the app, once, when they are needed."""
        self._app = app
        self._add = add
        app.router.routes.append(self)

    def add(self) -> None:
        """Add the routes, once. It is also called before all routes are listed, so that none is missing."""
        if self in self._app.router.routes:
            self._app.router.routes.remove(self)
            self._add()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Take every HTTP request."""
        return (Match.FULL if scope["type"] == "http" else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the routes and let the right one answer."""
        self.add()
        await self._app.router(scope, receive, send)


def add_lazy_routes(app: FastAPI) -> None:
    """Add them now: a server has the time, and its workers then share what that imports."""
    for route in list(app.router.routes):
        if isinstance(route, LazyRoutes):
            route.add()
