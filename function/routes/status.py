"""GET /health and GET /info: is it up, and what is it."""

import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Response

from function.archive import archive_status
from function.engine.bundle import Manifest, ModelInfo
from function.routes.replies import json_reply
from function.startup import ColdStart

REPORTED = ("onnxruntime", "tokenizers", "numpy", "simsimd", "fastapi", "mangum")


def add_status(app: FastAPI, manifest: Manifest, limits: Mapping[str, int], cold_start: ColdStart) -> None:
    """Add the routes to the app. /info shows `limits`, the most that one request may have, by name."""

    @app.get("/health", summary="Is it up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/info", summary="The model, the corpus, the limits and the versions behind the answers")
    async def info() -> Response:
        from importlib.metadata import version  # not needed to start

        versions = {"python": platform.python_version()} | {name: version(name) for name in REPORTED}
        content: dict[str, Any] = asdict(manifest) | _as_tei_says(manifest.model, limits["texts"])
        content |= {
            "limits": limits,
            "versions": versions,
            "archive": archive_status(),
            "cold_start_milliseconds": {phase: round(ms, 2) for phase, ms in cold_start.phases.items()},
        }
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
