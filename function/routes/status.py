"""GET /health and GET /info: is it up, and what is it."""

import asyncio
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict
from time import monotonic
from typing import Any

import numpy as np
from fastapi import FastAPI, Response

from function.archive import archive_status
from function.engine.bundle import Manifest, ModelInfo
from function.errors import ErrorReply, Replies, error_reply
from function.executor import Executor
from function.routes.replies import json_reply
from function.startup import ColdStart
from function.telemetry import Log

UNHEALTHY: Replies = {503: {"model": ErrorReply, "description": "unhealthy"}}
REPORTED = ("onnxruntime", "tokenizers", "numpy", "simsimd", "fastapi", "mangum")


SECONDS_BETWEEN_CHECKS = 60.0  # between checks of the model, if no other request used it
PATIENCE = 10.0  # seconds that a check may take


def add_status(
    app: FastAPI,
    manifest: Callable[[], Manifest],
    limits: Mapping[str, int],
    cold_start: ColdStart,
    executor: Executor,
    logger: Log,
    published: Callable[[], Mapping[str, object]] | None = None,
) -> None:
    """Add the routes to the app. /info shows `limits`, the most that one request may have, by name.

    It shows what `published` returns too, of a bundle that comes from S3.
    """
    one_check = asyncio.Lock()

    @app.get("/health", responses=UNHEALTHY, summary="Does the model embed texts")
    async def health() -> Response:
        async with one_check:
            if monotonic() - executor.embedded_at >= SECONDS_BETWEEN_CHECKS:
                try:
                    await _check_model(executor)
                except Exception as error:  # any error: the reply names it, and the log has its trace
                    logger.exception("the model failed its check", extra={"path": "/health"})
                    reason = f"{type(error).__name__}: {error}"
                    return error_reply(503, f"model: cannot embed a text ({reason}); start this process again")
        return json_reply({"status": "ok"})

    @app.get("/info", summary="The model, the corpus, the limits and the versions behind the answers")
    async def info() -> Response:
        from importlib.metadata import version  # not needed to start

        versions = {"python": platform.python_version()} | {name: version(name) for name in REPORTED}
        content: dict[str, Any] = asdict(manifest()) | _as_tei_says(manifest().model, limits["texts"])
        content |= {
            "limits": limits,
            "versions": versions,
            "archive": archive_status(),
            "cold_start_milliseconds": {phase: round(ms, 2) for phase, ms in cold_start.phases.items()},
        }
        if published is not None:
            content["bundle"] = published()
        return json_reply(content)


def _as_tei_says(model: ModelInfo, max_texts: int) -> dict[str, Any]:
    """Return what clients of text-embeddings-inference read of its GET /info."""
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
    async with asyncio.timeout(PATIENCE):
        embeddings = await executor.embed(await executor.tokenize(["Is the model well?"]), is_check=True)
    if not np.isfinite(embeddings).all():
        raise ValueError("the embedding has values that are not numbers")
