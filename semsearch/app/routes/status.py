"""GET /health and GET /info: is it up, and what is it."""

import asyncio
import platform
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from semsearch.app.cold_start import ColdStart
from semsearch.app.errors import ErrorReply, Replies
from semsearch.app.http import HttpError
from semsearch.app.routes.direct import DirectRoute
from semsearch.app.routes.replies import bytes_per_text, json_reply
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Log, Stopwatch
from semsearch.engine.bundle import ModelInfo
from semsearch.engine.loading import AnyBundle
from semsearch.search.executor import Executor
from semsearch.search.query import CHARACTERS_PER_TEXT
from semsearch.search.reply import json_bytes

if TYPE_CHECKING:
    from fastapi import FastAPI

    from semsearch.app.routes.reply_types import CorpusReply, HealthReply, InfoReply

UNHEALTHY: Replies = {503: {"model": ErrorReply, "description": "unhealthy"}}
SHOWN_OF_VIEWS = ("corpus", "title", "description", "columns", "keywords", "vectors", "boost")  # fields of the index
REPORTED = ("onnxruntime", "tokenizers", "numpy", "simsimd", "fastapi", "mangum")


SECONDS_BETWEEN_CHECKS = 60.0  # between checks of the model, if no other request used it
CHECK_TIMEOUT = 10.0  # seconds that a check may take


def health_route(executor: Executor, logger: Log) -> DirectRoute:
    """Return the route of GET /health. It embeds a text if no request has done so for a while."""
    one_check = asyncio.Lock()

    async def health(_: None, stopwatch: Stopwatch) -> bytes:
        async with one_check:
            if monotonic() - executor.embedded_at >= SECONDS_BETWEEN_CHECKS:
                try:
                    await _check_model(executor)
                except Exception as error:  # any error: the reply names it, and the log has its trace
                    logger.exception("the model failed its check", extra={"path": "/health"})
                    reason = f"{type(error).__name__}: {error}"
                    message = f"model: cannot embed a text ({reason}); start this process again"
                    raise HttpError(503, message) from error
        content: HealthReply = {"status": "ok"}
        return json_bytes(content)

    return DirectRoute(
        "GET", "/health", None, health, summary="Does the model embed texts", responses=UNHEALTHY, tag="status"
    )


def add_info(
    app: "FastAPI",
    current: Callable[[], AnyBundle],
    settings: Settings,
    cold_start: ColdStart,
    operation: Callable[[], Mapping[str, object]],
) -> None:
    """Add GET /info to the app. Callers that find all texts also see what `operation` returns."""
    from fastapi import Response  # not needed to start

    limits = {
        "texts": settings.max_texts,
        "tokens": settings.max_tokens,
        "characters": settings.max_characters,
        "characters_per_text": CHARACTERS_PER_TEXT,
        "body_bytes": settings.max_body_bytes,
        "reply_bytes": settings.max_reply_bytes,
    }

    @app.get("/info", summary="The model, the corpus, the limits and the versions behind the answers", tags=["status"])
    async def info() -> Response:
        from importlib.metadata import version  # not needed to start

        from semsearch.version import VERSION

        versions = {"semsearch": VERSION, "python": platform.python_version()}
        versions |= {name: version(name) for name in REPORTED}
        bundle = current()
        model = bundle.manifest.model
        embeddings = min(settings.max_texts, settings.max_reply_bytes // bytes_per_text(model.dim))
        content = cast("InfoReply", bundle.manifest.as_json() | _as_tei_says(model, embeddings))
        if bundle.is_view:  # a view: no figure of the whole corpus
            index: Mapping[str, Any] = content["index"]
            shown = {name: index[name] for name in SHOWN_OF_VIEWS}
            content["index"] = cast("CorpusReply", shown | {"rows": bundle.rows})
            if content["index"]["keywords"]:
                content["index"]["keywords"] |= {"terms": None, "postings": None, "known_words": None, "synonyms": None}
            del content["files"]
        content |= {
            "made": bundle.made,
            "limits": limits | {"embeddings": embeddings},
            "versions": versions,
            "archive": cold_start.archive,
            "cold_start_milliseconds": {phase: round(ms, 2) for phase, ms in cold_start.phases.items()},
        }
        if bundle.is_view:
            return json_reply(content)
        return json_reply({**content, **operation()})


def _as_tei_says(model: ModelInfo, max_texts: int) -> dict[str, Any]:
    return {
        "model_id": model.name,
        "model_sha": model.revision,
        "model_dtype": model.quantization,
        "model_type": {"embedding": {"pooling": model.pooling}},
        "max_input_length": model.max_tokens,
        "max_client_batch_size": max_texts,
        "auto_truncate": True,
    }


async def _check_model(executor: Executor) -> None:
    """Embed a text. Raises TimeoutError if that takes too long, ValueError if the embedding is not of numbers."""
    async with asyncio.timeout(CHECK_TIMEOUT):
        embeddings = await executor.embed(await executor.tokenize(["Is the model well?"]), is_check=True)
    if not np.isfinite(embeddings).all():
        raise ValueError("the embedding has values that are not numbers")
