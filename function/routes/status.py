"""GET /health and GET /info: is it up, and what is it."""

import platform
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Response

from function.archive import archive_status
from function.engine.bundle import Manifest
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
        content: dict[str, Any] = asdict(manifest) | {
            "limits": limits,
            "versions": versions,
            "archive": archive_status(),
            "cold_start_milliseconds": {phase: round(ms, 2) for phase, ms in cold_start.phases.items()},
        }
        return json_reply(content)
