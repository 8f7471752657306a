"""The HTTP application: routes over a model and a corpus, limits around them, errors in one shape."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request, Response

from function.engine.loading import Loaded
from function.errors import FAILED, add_error_replies
from function.executor import Executor, InlineExecutor
from function.middleware import HeadRequests, RequestLimits, RequestLog
from function.routes.embed_request import TextEmbedding
from function.routes.fast_route import FastRoute
from function.routes.lazy_routes import LazyRoutes
from function.routes.predict import add_embeddings
from function.routes.similar import add_similar
from function.routes.status import add_status
from function.search.query import Search
from function.search.search import make_search
from function.settings import CHARACTERS_PER_TEXT, Settings, SettingsError
from function.startup import ColdStart
from function.telemetry import Log

if TYPE_CHECKING:
    from function.s3.reloader import BundleReloader

# reply headers that web pages on other origins can read
EXPOSED_HEADERS = ("retry-after", "server-timing", "www-authenticate", "x-bundle", "x-request-id")


def create_app(
    bundle: Loaded,
    settings: Settings,
    logger: Log,
    cold_start: ColdStart,
    executor: Executor | None = None,
    reloader: "BundleReloader | None" = None,
) -> FastAPI:
    """Return the app over an open bundle. Without an `executor`, the thread of a request does its work.

    A `reloader` can replace the bundle by another one with the same model.
    Raises SettingsError if MAX_TOKENS is less than the maximum tokens of one text.
    """
    executor = executor or InlineExecutor(bundle.embedder)
    most = bundle.embedder.model.max_tokens
    if settings.max_tokens < most:
        found = f"{settings.max_tokens}, expected {most} or more, since the model reads {most} tokens of one text"
        raise SettingsError(f"MAX_TOKENS: {found}; set MAX_TOKENS={most}")
    # FastAPI's pages of documentation are off, because they load scripts from another host
    app = FastAPI(title="semantic search", docs_url=None, redoc_url=None, redirect_slashes=False, responses=FAILED)
    app.router.route_class = FastRoute
    add_error_replies(app)
    app.add_middleware(RequestLimits, max_body_bytes=settings.max_body_bytes)
    if settings.api_keys:
        from function.api_keys import ApiKeys  # not needed without keys

        app.add_middleware(ApiKeys, keys=settings.api_keys)
    app.add_middleware(HeadRequests)
    app.add_middleware(RequestLog, logger=logger, cold_start=cold_start)
    if settings.cors_origins:
        # Only the server has origins; in Lambda the CORS rules of the API apply. This is outside of the log and of
        # ApiKeys, so pages can read every reply, also a 500. Preflight requests, which have no key, are answered here
        # and are not logged.
        from starlette.middleware.cors import CORSMiddleware

        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=["*"],  # clients send many of their own
            expose_headers=EXPOSED_HEADERS,
            allow_private_network=True,  # the server is often on the same network as the browser
        )
    if reloader is None:
        search: Search = make_search(bundle, executor)
        current: Callable[[], Loaded] = lambda: bundle  # noqa: E731
        published = None
    else:
        from function.s3.wiring import connect  # only a bundle in S3 is replaced

        search, current = connect(app, reloader, executor, settings, logger)
        published = reloader.info
    # routes are added to the app itself, because it would build those of an APIRouter at the first request
    embedding = TextEmbedding(bundle.embedder, executor, settings)
    add_similar(app, search, settings)
    add_embeddings(app, embedding, settings)
    limits = {
        "texts": settings.max_texts,
        "tokens": settings.max_tokens,
        "characters": settings.max_characters,
        "characters_per_text": CHARACTERS_PER_TEXT,
        "body_bytes": settings.max_body_bytes,
        "reply_bytes": settings.max_reply_bytes,
    }
    add_status(app, lambda: current().manifest, limits, cold_start, executor, logger, published)
    app.add_route("/", _page, include_in_schema=False)  # function/routes/openapi_document.py describes it

    def add_clients() -> None:
        from function.routes.clients.mcp import add_mcp
        from function.routes.clients.mcp_tools import Tools
        from function.routes.clients.openai import add_openai
        from function.routes.clients.rerank import add_rerank
        from function.routes.clients.tei import add_tei
        from function.routes.documents import add_documents

        add_openai(app, embedding, settings)
        add_tei(app, embedding, settings)
        add_rerank(app, current, executor, settings)
        add_mcp(app, Tools(current, search, executor, settings), settings)
        add_documents(app, current, executor, settings)

    late = LazyRoutes(app, add_clients)
    # FastAPI documents this assignment as the way to extend the document
    app.openapi = lambda: _openapi_document(app, late, current(), settings)  # type: ignore[method-assign]
    return app


async def _page(request: Request) -> Response:
    from function.routes.page import page_reply  # not needed to start

    return page_reply(request)


def _openapi_document(app: FastAPI, late: LazyRoutes, bundle: Loaded, settings: Settings) -> dict[str, Any]:
    from function.routes.openapi_document import describe_app  # not needed to start

    late.add()
    document = describe_app(app, bundle.column_kinds, has_reranker=bundle.manifest.rerank is not None)
    if settings.api_keys:
        from function.api_keys import describe_keys

        describe_keys(document)
    return document
