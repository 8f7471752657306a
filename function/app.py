"""The HTTP application: routes over a model and a corpus, limits around them, errors in one shape."""

from fastapi import FastAPI

from function.engine.bundle import Manifest
from function.engine.embedder import Embedder
from function.engine.index import Index
from function.engine.passages import Passages
from function.errors import REPLIES, add_error_replies
from function.request_log import Log, RequestLog
from function.routes.embeddings import embeddings_router
from function.routes.similar import similar_router
from function.routes.status import status_router
from function.settings import Settings


def create_app(
    embedder: Embedder,
    index: Index,
    passages: Passages,
    manifest: Manifest,
    settings: Settings,
    logger: Log,
    cold_start: dict[str, float],
) -> FastAPI:
    """Give the app over an open bundle; cold_start is what `GET /info` shows of the start, in milliseconds."""
    # no pages of documentation: they load scripts from elsewhere; /openapi.json has it all
    app = FastAPI(title="semantic search", docs_url=None, redoc_url=None, redirect_slashes=False, responses=REPLIES)
    add_error_replies(app)
    app.add_middleware(RequestLog, logger=logger, max_body_bytes=settings.max_body_bytes, cold_start=cold_start)
    app.include_router(similar_router(embedder, index, passages))
    app.include_router(embeddings_router(embedder, settings.max_texts))
    app.include_router(status_router(manifest, cold_start))
    return app
