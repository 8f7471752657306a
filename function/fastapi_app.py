"""The FastAPI app: all routes, the errors of wrong requests, and the OpenAPI document.

In Lambda it is made by the first request that function/routes/direct.py does not answer, in the server at its start.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Route

from function.engine.loading import Loaded
from function.errors import (
    EMPTY,
    FAILED,
    LONGEST_ECHO,
    RIGHT_BODY,
    TEI_PATHS,
    Replies,
    describe_errors,
    echo,
    error_reply,
    reply_to,
    truncate,
)
from function.http import HttpError, Reply
from function.routes.clients.mcp import add_mcp
from function.routes.clients.mcp_tools import Tools
from function.routes.clients.openai import add_openai
from function.routes.clients.rerank import add_rerank
from function.routes.clients.tei import add_tei
from function.routes.direct import DirectRoute, add_direct_route, check_keys
from function.routes.documents import add_documents
from function.routes.embed_request import TextEmbedding
from function.routes.repeated_keys import RepeatedKeyError
from function.routes.status import add_info
from function.search.query import Search
from function.startup import ColdStart

# minimum likeness of a wrong path and a suggested one: /v1/similar is 0.84 like /similar, /redoc is 0.71 like /predict
CLOSE = 0.75
NO_ROUTE = "Not Found"  # Starlette's detail of a 404 for a path without a route


def make_fastapi(
    direct: Sequence[DirectRoute],
    embedding: TextEmbedding,
    search: Search,
    current: Callable[[], Loaded],
    cold_start: ColdStart,
    published: Callable[[], Mapping[str, object]] | None,
) -> FastAPI:
    """Return the app with all routes. `current` returns the bundle of the request.

    Exceptions that no handler answers are raised; function/middleware.py logs them and replies.
    """
    settings, executor = embedding.settings, embedding.executor
    # FastAPI's pages of documentation are off, because they load scripts from another host
    app = FastAPI(title="semantic search", docs_url=None, redoc_url=None, redirect_slashes=False, responses=FAILED)
    app.router.route_class = CheckedRoute
    _add_error_replies(app)
    for route in direct:
        add_direct_route(app, route)
    add_info(app, lambda: current().manifest, settings, cold_start, published)
    _add_page(app)
    add_openai(app, embedding, settings)
    add_tei(app, embedding, settings)
    add_rerank(app, current, executor, settings)
    add_mcp(app, Tools(current, search, executor, settings), settings)
    add_documents(app, current, executor, settings)
    # FastAPI documents this assignment as the way to extend the document
    app.openapi = lambda: _openapi_document(app, current(), has_keys=bool(settings.api_keys))  # type: ignore[method-assign]
    # the outermost layer, ServerErrorMiddleware, is left out: it would reply to an exception before it raises it
    app.middleware_stack = app.build_middleware_stack().app  # type: ignore[attr-defined]
    return app


class CheckedRequest(Request):
    """A request whose JSON body is refused if an object in it has a key twice; FastAPI would take the last value."""

    async def json(self) -> Any:
        """Return the value of the body. Raises the errors of `check_keys`, and ValueError if it is not JSON."""
        found = check_keys(await self.body())
        return await super().json() if found is None else found


class CheckedRoute(APIRoute):
    """A route of FastAPI that reads its body through CheckedRequest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        answer = super().get_route_handler()

        async def answer_checked(request: Request) -> Response:
            return await answer(CheckedRequest(request.scope, request.receive))

        return answer_checked


def _add_page(app: FastAPI) -> None:
    unchanged: Replies = {304: {"description": "the caller has it already"}}

    @app.get("/", response_class=HTMLResponse, responses=unchanged, summary="A page to search with")
    async def page(request: Request) -> Response:
        from function.routes.page import page_reply  # not needed by the other routes

        return page_reply(request)


def _openapi_document(app: FastAPI, bundle: Loaded, *, has_keys: bool) -> dict[str, Any]:
    from function.routes.openapi_document import describe_app  # not needed by the other routes

    document = describe_app(app, bundle.column_kinds, has_reranker=bundle.manifest.rerank is not None)
    if has_keys:
        from function.api_keys import describe_keys

        describe_keys(document)
    return document


def _add_error_replies(app: FastAPI) -> None:
    """Add handlers to the app that answer every error in our format, also wrong paths and methods."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Reply:
        errors, path = error.errors(), request.scope["path"]
        first = errors[0]
        if first["type"] == "json_invalid":
            found = f"{first['ctx']['error']} at character {first['loc'][-1]}"
            return error_reply(400, f"body: not JSON: {found}; {RIGHT_BODY}", path)
        if isinstance(first["input"], bytes):  # FastAPI parses a body only if its content-type is JSON
            content_type = request.headers.get("content-type", "")
            return error_reply(415, f"body: content-type {echo(content_type)}, expected application/json", path)
        field = truncate(str(first["loc"][1])) if len(first["loc"]) > 1 else None
        is_empty = path in TEI_PATHS and first["type"] in EMPTY
        return error_reply(400 if is_empty else 422, describe_errors(errors), path, field)

    @app.exception_handler(HttpError)
    async def refused(request: Request, error: HttpError) -> Reply:
        return reply_to(error, request.scope["path"])

    @app.exception_handler(HTTPException)
    async def refused_by_starlette(request: Request, error: HTTPException) -> Reply:
        path, cause = request.scope["path"], error.__cause__
        if isinstance(cause, HttpError):  # this one and the next two were raised while FastAPI read the body
            return reply_to(cause, path)
        if isinstance(cause, RepeatedKeyError):
            field, place = truncate(cause.place[0]), truncate(".".join(cause.place))
            return error_reply(422, f"{place}: {cause.found}", path, field)
        if isinstance(cause, ValueError | RecursionError):
            return error_reply(400, f"body: not readable: {_describe_unreadable(cause)}; {RIGHT_BODY}", path)
        if error.status_code == 405:
            return _other_method(request)
        if error.status_code == 404 and error.detail == NO_ROUTE:
            return _no_route(request)
        return reply_to(HttpError(error.status_code, error.detail, error.headers), path)


def _no_route(request: Request) -> Reply:
    from difflib import get_close_matches  # not needed to start

    path = request.scope["path"]
    # each path once, and without the type of a parameter: /v1/models/{model}, not /v1/models/{model:path}
    paths = list(dict.fromkeys(route.path_format for route in request.app.routes if isinstance(route, Route)))
    close = get_close_matches(path, paths, n=1, cutoff=CLOSE) if len(path) <= LONGEST_ECHO else []
    advice = f"did you mean {close[0]}?" if close else "request one of these"
    message = f"{_shown(request)}: there is no such path, expected {', '.join(paths)}; {advice}"
    return error_reply(404, message, path)


def _other_method(request: Request) -> Reply:
    path = request.scope["path"]
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    methods = {method for route in routes for method in route.methods or ()}
    if "GET" in methods:
        methods.add("HEAD")  # function/middleware.py answers it
    allowed = ", ".join(sorted(methods))
    message = f"{_shown(request)}: method not allowed, expected {allowed}; use that method"
    reply = error_reply(405, message, path)
    reply.headers["allow"] = allowed
    return reply


def _shown(request: Request) -> str:
    # not request.url, which depends on the header `host`
    return f"{truncate(request.method)} {truncate(request.scope['path'])}"


def _describe_unreadable(error: BaseException) -> str:
    """Return why Python could not read JSON: it is not UTF-8, nested too deeply, or has a number that is too long."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is {error.object[error.start]:#04x}, which is not UTF-8 there"
    if isinstance(error, RecursionError):
        return "brackets nested too deeply"
    return str(error).partition(";")[0].lower()  # the rest explains how to let Python read longer numbers
