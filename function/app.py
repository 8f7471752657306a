"""The HTTP application: routes over a model and a corpus, limits around them, errors in one shape."""

from typing import Any

from fastapi import FastAPI, Request, Response

from function.engine.loading import LoadedBundle
from function.errors import FAILED, add_error_replies
from function.execution import Execution, InlineExecution
from function.middleware import HeadRequests, RequestLimits, RequestLog
from function.routes.direct import DirectRoute
from function.routes.embedding import TextEmbedding
from function.routes.embeddings import add_embeddings
from function.routes.late import LateRoutes
from function.routes.similar import add_similar
from function.routes.status import add_status
from function.search import make_search
from function.settings import CHARACTERS_PER_TEXT, Settings, SettingsError
from function.startup import ColdStart
from function.telemetry import Log


def create_app(
    bundle: LoadedBundle, settings: Settings, logger: Log, cold_start: ColdStart, execution: Execution | None = None
) -> FastAPI:
    """Return the app over an open bundle; without an `execution`, it works in the thread that answers.

    Raises SettingsError if MAX_TOKENS is less than one text may have.
    """
    execution = execution or InlineExecution(bundle.embedder)
    most = bundle.embedder.model.max_tokens
    if settings.max_tokens < most:
        found = f"{settings.max_tokens}, expected {most} or more, since the model reads {most} tokens of one text"
        raise SettingsError(f"MAX_TOKENS: {found}; set MAX_TOKENS={most}")
    # no pages of documentation: they load scripts from elsewhere; /openapi.json has it all
    app = FastAPI(title="semantic search", docs_url=None, redoc_url=None, redirect_slashes=False, responses=FAILED)
    app.router.route_class = DirectRoute
    add_error_replies(app)
    app.add_middleware(RequestLimits, max_body_bytes=settings.max_body_bytes)
    if settings.api_keys:
        from function.api_keys import ApiKeys  # not needed without keys

        app.add_middleware(ApiKeys, keys=settings.api_keys)
    app.add_middleware(HeadRequests)
    app.add_middleware(RequestLog, logger=logger, cold_start=cold_start)
    # straight onto the app: an APIRouter's are wrapped once more, and built at the first request
    search, embedding = make_search(bundle, execution), TextEmbedding(bundle.embedder, execution, settings)
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
    add_status(app, bundle.manifest, limits, cold_start, execution, logger)
    app.add_route("/", _page, include_in_schema=False)  # function/routes/openapi_document.py describes it

    def add_clients() -> None:
        from function.routes.mcp import add_mcp
        from function.routes.mcp_search import make_call, make_tool
        from function.routes.openai import add_openai
        from function.routes.tei import add_tei

        add_openai(app, embedding, settings)
        add_tei(app, embedding, settings)
        assert bundle.manifest.index is not None  # open_bundle checked it
        add_mcp(app, make_tool(bundle.manifest.index), make_call(search, settings), settings)

    late = LateRoutes(app, add_clients)
    app.openapi = lambda: _openapi_document(app, late, bundle, settings)  # type: ignore[method-assign] # FastAPI's own way to extend it
    return app


async def _page(request: Request) -> Response:
    from function.routes.page import page_reply  # not needed to start

    return page_reply(request)


def _openapi_document(app: FastAPI, late: LateRoutes, bundle: LoadedBundle, settings: Settings) -> dict[str, Any]:
    from function.routes.openapi_document import describe_app  # not needed to start

    late.add()

    assert bundle.manifest.index is not None  # open_bundle checked it
    document = describe_app(app, bundle.manifest.index.columns)
    if settings.api_keys:
        from function.api_keys import describe_keys

        describe_keys(document)
    return document
