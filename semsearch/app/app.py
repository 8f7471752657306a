"""The HTTP application: routes over a model and a corpus, and around them what applies to every request."""

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.app.cold_start import ColdStart
from semsearch.app.http import ASGIApp, Receive, Scope, Send
from semsearch.app.middleware import AllowedHosts, Cors, RequestLimits, RequestLog, answer_head, compress_replies
from semsearch.app.query_log import log_queries
from semsearch.app.routes.direct import DirectRoute, DirectRoutes
from semsearch.app.routes.predict import TextEmbedding, predict_route
from semsearch.app.routes.similar import similar_route
from semsearch.app.routes.status import health_route
from semsearch.app.settings import Settings, SettingsError
from semsearch.app.telemetry import Log
from semsearch.engine.loading import AnyBundle
from semsearch.search.executor import Executor
from semsearch.search.making import make_search
from semsearch.search.query import SearchFunction

if TYPE_CHECKING:
    from fastapi import FastAPI

    from semsearch.app.access.bound_filters import BoundFilters
    from semsearch.app.access.keys import StatedKeys
    from semsearch.app.access.stored_keys import StoredKeys
    from semsearch.app.reloading.reloader import Reloader

Layer = Callable[[ASGIApp], ASGIApp]  # returns an app around an app


class App:
    """The ASGI app: layers around the direct routes, and `fastapi`, which answers all other requests."""

    def __init__(
        self,
        routes: Sequence[DirectRoute],
        make_fastapi: Callable[[], "FastAPI"],
        layers: Sequence[Layer],
        keys: "StatedKeys | None" = None,
        stored_keys: "StoredKeys | None" = None,
        filters: "BoundFilters | None" = None,
    ) -> None:
        """Put the layers around the routes, the first one innermost.

        `keys` are the API keys, if there are any, `stored_keys` the same if AWS keeps some of them, and `filters` those
        of keys.
        """
        self._make_fastapi = make_fastapi
        self.keys, self.stored_keys, self.filters = keys, stored_keys, filters
        self._outermost: ASGIApp = DirectRoutes(routes, lambda: self.fastapi)
        for layer in layers:
            self._outermost = layer(self._outermost)

    @cached_property
    def fastapi(self) -> "FastAPI":
        """The FastAPI app with all routes, made when it is first needed."""
        return self._make_fastapi()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._outermost(scope, receive, send)


def create_app(
    bundle: AnyBundle,
    settings: Settings,
    logger: Log,
    cold_start: ColdStart,
    executor: Executor | None = None,
    reloader: "Reloader | None" = None,
    admission: Layer | None = None,
    image: Path | None = None,
) -> App:
    """Return the app over an open bundle. Without an `executor`, the thread of a request does its work.

    A `reloader` can replace the bundle by another one with the same model. `admission` wraps `RequestLimits`,
    which keeps a whole body in memory. `image` is the file that describes the image of the function, if it runs in one.
    Raises SettingsError if MAX_TOKENS is less than the maximum tokens of one text, or if the keys of API_KEYS_ARN
    cannot be read or JWT_FILTER does not fit the bundle.
    """
    executor = executor or Executor(bundle.embedder)
    embedding = None
    if bundle.embedder is not None:
        embedding = TextEmbedding(bundle.embedder, executor, settings)
        most = bundle.embedder.model.max_tokens
        if settings.max_tokens < most:
            found = f"{settings.max_tokens}, expected {most} or more, since the model reads {most} tokens of one text"
            raise SettingsError(f"MAX_TOKENS: {found}; set MAX_TOKENS={most}")
    layers: list[Layer] = [partial(RequestLimits, max_body_bytes=settings.max_body_bytes)]
    if admission is not None:
        layers.append(admission)
    stored_keys = stated_keys = None
    if settings.api_keys_arn:
        from semsearch.app.access.stored_keys import StoredKeys  # not needed without such keys

        stored_keys = StoredKeys(settings, logger)
    elif settings.api_keys:
        from semsearch.app.access.keys import StatedKeys  # not needed without keys

        stated_keys = StatedKeys(settings, logger)
    keys = stored_keys or stated_keys
    if reloader is None:
        current: Callable[[], AnyBundle] = lambda: bundle  # noqa: E731
    else:
        current = lambda: reloader.of_request().bundle  # noqa: E731
    filters = None
    if settings.is_closed:
        from semsearch.app.access.bound_filters import BoundFilters  # not needed without keys and bound filters
        from semsearch.app.access.keys import access_layers

        filters = BoundFilters(current, settings, logger)
        layers += access_layers(bundle, settings, keys, filters)
    if settings.allowed_hosts:
        layers.append(partial(AllowedHosts, names=settings.allowed_hosts))
    layers += [
        partial(compress_replies, executor=executor),
        answer_head,
        partial(RequestLog, logger=logger, cold_start=cold_start),
    ]
    if settings.cors_origins:
        # outside of the log and of ApiKeys, so pages can read every reply, also a 500
        layers.append(partial(Cors, origins=settings.cors_origins))
    if reloader is None:
        search: SearchFunction = make_search(bundle, executor)
    else:
        reloader.connect(executor, logger)
        search = reloader.search
        layers.append(reloader.per_request)
    if settings.is_closed:
        from semsearch.app.access.views import Views

        views = Views(current, search, executor)
        current, search = views.current, views.search  # from here on, nothing has the whole bundle
    if settings.log_queries:
        search = log_queries(search, logger, cold_start)
    since = None if reloader is None else reloader.since
    note: Callable[[], str] | None = None
    if since is not None:
        from semsearch.app.freshness import describe_behind  # only a server that watches documents needs it

        note = partial(describe_behind, current, since)
    routes = [similar_route(search, settings, note), health_route(executor, logger)]
    if embedding is not None:
        routes.insert(1, predict_route(embedding))

    def operation() -> dict[str, object]:
        """Return the fields of GET /info for operators."""
        found: dict[str, object] = {}
        if image is not None and image.is_file():
            found["image"] = json.loads(image.read_bytes())
        if reloader is not None:
            found["bundle"] = reloader.info()
        of_keys: dict[str, object] = {}
        if stored_keys is not None:
            of_keys = {"failures": stored_keys.failures.failures, "error": stored_keys.failures.error}
        if filters is not None:
            found["keys"] = of_keys | {"unusable": filters.reasons()}
        return found

    def make_fastapi() -> "FastAPI":
        from semsearch.app.fastapi_app import make_fastapi  # a start does not import FastAPI

        return make_fastapi(routes, embedding, search, current, executor, settings, cold_start, operation, since)

    return App(routes, make_fastapi, layers, keys, stored_keys, filters)
