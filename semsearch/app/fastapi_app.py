"""The FastAPI app: all routes, the errors of wrong requests, and the OpenAPI document.

In Lambda it is made by the first request that semsearch/app/routes/direct.py does not answer. The server makes it at
its start.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

from semsearch.app.cold_start import ColdStart
from semsearch.app.errors import EMPTY_TYPES, RIGHT_BODY, TEI_PATHS, error_reply, reply_to
from semsearch.app.freshness import Since
from semsearch.app.http import HttpError, Reply
from semsearch.app.mcp.messages import add_mcp
from semsearch.app.mcp.tools import Tools
from semsearch.app.routes.clients.openai import add_openai
from semsearch.app.routes.clients.rerank import Reranking, add_rerank
from semsearch.app.routes.clients.tei import add_tei
from semsearch.app.routes.direct import DirectRoute, add_direct_route
from semsearch.app.routes.documents import add_documents
from semsearch.app.routes.error_replies import ERROR_REPLIES, Replies
from semsearch.app.routes.predict import TextEmbedding
from semsearch.app.routes.status import add_info
from semsearch.app.routes.without_model import add_without_model
from semsearch.app.settings import Settings
from semsearch.engine.loading import AnyBundle
from semsearch.search.executor import Executor
from semsearch.search.query import SearchFunction
from semsearch.search.request import describe_errors
from semsearch.search.request_values import echo, truncate
from semsearch.version import VERSION

TAGS = {  # groups of routes; generators make a module of each
    "search": "Search the corpus, and read its texts.",
    "embeddings": "Embeddings and tokens of texts.",
    "reranking": "Order texts by how well they answer a query.",
    "status": "Whether it works, and what it is.",
}


def make_fastapi(
    direct: Sequence[DirectRoute],
    embedding: TextEmbedding | None,
    search: SearchFunction,
    current: Callable[[], AnyBundle],
    executor: Executor,
    settings: Settings,
    cold_start: ColdStart,
    operation: Callable[[], Mapping[str, object]],
    since: Callable[[], Since] | None,
) -> FastAPI:
    """Return the app with all routes. `current` returns the bundle of the request, and `since` what its index lacks.

    `embedding` is None for a bundle without a model, which every later one then is.
    Exceptions that no handler answers are raised; semsearch/app/middleware.py logs them and replies.
    """
    # FastAPI's pages of documentation are off, because they load scripts from another host
    app = FastAPI(
        title="semantic search",
        version=VERSION,
        license_info={"name": "MIT License", "identifier": "MIT"},
        openapi_tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        servers=[{"url": settings.api_base_path}],
        generate_unique_id_function=lambda route: route.name,  # generators name a method after it
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=ERROR_REPLIES,
    )
    _add_error_replies(app)
    for route in direct:
        add_direct_route(app, route)
    add_info(app, current, settings, cold_start, operation)
    _add_page(app)
    if embedding is None:
        add_without_model(app, current().manifest.model)
    else:
        add_openai(app, embedding)
        add_tei(app, embedding)
    add_rerank(app, Reranking(current, executor, settings))
    add_mcp(app, Tools(current, search, executor, settings, since), settings)
    add_documents(app, current, executor, settings)
    # FastAPI documents this assignment as the way to extend the document
    app.openapi = lambda: _openapi_document(app, current(), settings)  # type: ignore[method-assign]
    # the outermost layer, ServerErrorMiddleware, is left out: it would reply to an exception before it raises it
    app.middleware_stack = app.build_middleware_stack().app  # type: ignore[attr-defined]
    return app


def _add_page(app: FastAPI) -> None:
    unchanged: Replies = {304: {"description": "the caller has it already"}}

    @app.get("/", response_class=HTMLResponse, responses=unchanged, summary="A page to search with", tags=["search"])
    async def page(request: Request) -> Response:
        from semsearch.app.routes.page import page_reply  # not needed by the other routes

        return page_reply(request)


def _openapi_document(app: FastAPI, bundle: AnyBundle, settings: Settings) -> dict[str, Any]:
    from semsearch.app.routes.schemas import describe_app  # not needed by the other routes

    manifest = bundle.manifest
    document = describe_app(
        app,
        bundle.column_kinds,
        dim=manifest.model.dim,
        has_model=manifest.has_model,
        has_keywords=manifest.corpus.keywords is not None,
        has_reranker=manifest.rerank is not None,
        floor=manifest.corpus.floor,
        max_texts=settings.max_texts,
    )
    document["security"] = []
    if settings.api_keys or settings.api_keys_arn:
        from semsearch.app.access.keys import describe_keys

        describe_keys(document)
    return document


def _add_error_replies(app: FastAPI) -> None:

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
        is_empty = path in TEI_PATHS and first["type"] in EMPTY_TYPES
        return error_reply(400 if is_empty else 422, describe_errors(errors), path)

    @app.exception_handler(HttpError)
    async def refused(request: Request, error: HttpError) -> Reply:
        return reply_to(error, request.scope["path"])

    @app.exception_handler(HTTPException)
    async def refused_by_starlette(request: Request, error: HTTPException) -> Reply:
        path, cause = request.scope["path"], error.__cause__
        if isinstance(cause, ValueError | RecursionError):  # raised while FastAPI read the body
            reason = str(cause).partition(";")[0]  # the rest explains how to let Python read longer numbers
            return error_reply(400, f"body: not readable: {reason}; {RIGHT_BODY}", path)
        if error.status_code == 405:
            return _other_method(request)
        if error.status_code == 404:  # routes raise HttpError instead
            return _no_route(request)
        return reply_to(HttpError(error.status_code, error.detail, error.headers), path)


def _no_route(request: Request) -> Reply:
    # each path once, and without the type of a parameter: /v1/models/{model}, not /v1/models/{model:path}
    paths = list(dict.fromkeys(route.path_format for route in request.app.routes if isinstance(route, Route)))
    message = f"{_shown(request)}: there is no such path, expected {', '.join(paths)}; request one of these"
    return error_reply(404, message, request.scope["path"])


def _other_method(request: Request) -> Reply:
    path = request.scope["path"]
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    methods = {method for route in routes for method in route.methods or ()}
    if "GET" in methods:
        methods.add("HEAD")  # semsearch/app/middleware.py answers it
    allowed = ", ".join(sorted(methods))
    message = f"{_shown(request)}: method not allowed, expected {allowed}; use that method"
    reply = error_reply(405, message, path)
    reply.headers["allow"] = allowed
    return reply


def _shown(request: Request) -> str:
    # not request.url, which depends on the header `host`
    return f"{truncate(request.method)} {truncate(request.scope['path'])}"
