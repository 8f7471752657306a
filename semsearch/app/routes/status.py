"""GET /health and GET /info: is it up, and what is it."""

import asyncio
import platform
from collections.abc import Callable, Mapping
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from semsearch.app.cold_start import ColdStart
from semsearch.app.errors import ERROR_TYPES
from semsearch.app.http import HttpError
from semsearch.app.routes.direct import DirectRoute
from semsearch.app.routes.replies import bytes_per_text, json_reply
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Log, Stopwatch
from semsearch.engine.bundle import Manifest
from semsearch.engine.loading import AnyBundle
from semsearch.search.executor import Executor
from semsearch.search.query import CHARACTERS_PER_TEXT
from semsearch.search.reply import json_bytes

if TYPE_CHECKING:
    from fastapi import FastAPI

    from semsearch.app.routes.reply_types import CorpusReply, HealthReply, InfoReply

SHOWN_OF_VIEWS = ("corpus", "title", "description", "columns", "keywords", "vectors", "boost")  # fields of the index
REPORTED = ("onnxruntime", "tokenizers", "numpy", "simsimd", "fastapi", "mangum")


SECONDS_BETWEEN_CHECKS = 60.0  # between checks of the model, if no other request used it
CHECK_TIMEOUT = 10.0  # seconds that a check may take


def health_route(executor: Executor, logger: Log) -> DirectRoute:
    """Return the route of GET /health. If there is a model and no request has used it for a while, it embeds a text."""

    @cache
    def one_check() -> "asyncio.Lock":  # not made in a start, which does not need asyncio
        return asyncio.Lock()

    async def health(_: None, stopwatch: Stopwatch) -> bytes:
        async with one_check():
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

    summary = "Does the model embed texts" if executor.has_model else "Does the process answer"
    return DirectRoute("GET", "/health", health, summary=summary, responses={503: ERROR_TYPES[503]}, tag="status")


def add_info(
    app: "FastAPI",
    current: Callable[[], AnyBundle],
    settings: Settings,
    cold_start: ColdStart,
    operation: Callable[[], Mapping[str, object]],
) -> None:
    """Add GET /info to the app. Callers that find all texts also see what `operation` returns."""
    from fastapi import Response  # not needed to start

    @app.get("/info", summary="The model, the corpus, the limits and the versions behind the answers", tags=["status"])
    async def info() -> Response:
        from importlib.metadata import version  # not needed to start

        from semsearch.version import VERSION

        versions = {"semsearch": VERSION, "python": platform.python_version()}
        versions |= {name: version(name) for name in REPORTED}
        bundle = current()
        content = cast("InfoReply", _describe(bundle.manifest, settings))
        if bundle.is_view:  # a view: no figure of the whole corpus
            index: Mapping[str, Any] = content["index"]
            shown = {name: index[name] for name in SHOWN_OF_VIEWS}
            content["index"] = cast("CorpusReply", shown | {"rows": bundle.rows})
            if content["index"]["keywords"]:
                content["index"]["keywords"] |= {"terms": None, "postings": None, "known_words": None, "synonyms": None}
            del content["files"]
        content |= {
            "made": bundle.made,
            "versions": versions,
            "archive": cold_start.archive,
            "cold_start_milliseconds": {phase: round(ms, 2) for phase, ms in cold_start.phases.items()},
        }
        if bundle.is_view:
            return json_reply(content)
        return json_reply({**content, **operation()})


def _describe(manifest: Manifest, settings: Settings) -> dict[str, Any]:
    """Return the content of the manifest, the limits, and if there is a model what text-embeddings-inference says."""
    model, content = manifest.model, manifest.as_json() | {"has_model": manifest.has_model}
    limits = {
        "characters": settings.max_characters,
        "characters_per_text": CHARACTERS_PER_TEXT,
        "body_bytes": settings.max_body_bytes,
        "reply_bytes": settings.max_reply_bytes,
    }
    if not manifest.has_model:
        return content | {"model": {"name": model.name, "dim": model.dim}, "limits": limits}
    embeddings = min(settings.max_texts, settings.max_reply_bytes // bytes_per_text(model.dim))
    limits |= {"texts": settings.max_texts, "tokens": settings.max_tokens, "embeddings": embeddings}
    as_tei_says = {
        "model_id": model.name,
        "model_sha": model.revision,
        "model_dtype": model.quantization,
        "model_type": {"embedding": {"pooling": model.pooling}},
        "max_input_length": model.max_tokens,
        "max_client_batch_size": embeddings,
        "auto_truncate": True,
    }
    return content | as_tei_says | {"limits": limits}


async def _check_model(executor: Executor) -> None:
    """Embed a text. Raises TimeoutError if that takes too long, ValueError if the embedding is not of numbers."""
    async with asyncio.timeout(CHECK_TIMEOUT):
        embeddings = await executor.embed(await executor.tokenize(["Is the model well?"]), is_check=True)
    if not np.isfinite(embeddings).all():
        raise ValueError("the embedding has values that are not numbers")
