"""GET /health and GET /info: is it up, and what is it."""

import platform
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Response

from function.engine.bundle import Manifest
from function.replies import json_reply

REPORTED = ("onnxruntime", "tokenizers", "numpy", "simsimd", "fastapi", "mangum")


def add_status(app: FastAPI, manifest: Manifest, phases: dict[str, float]) -> None:
    """Add the routes; phases are those of the cold start, in milliseconds."""

    @app.get("/health", summary="Is it up")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/info", summary="The model, the corpus and the versions behind the answers")
    async def info() -> Response:
        from importlib.metadata import version  # not needed to start

        versions = {"python": platform.python_version()} | {name: version(name) for name in REPORTED}
        cold_start = {phase: round(milliseconds, 2) for phase, milliseconds in phases.items()}
        content: dict[str, Any] = asdict(manifest)
        return json_reply(content | {"versions": versions, "cold_start_milliseconds": cold_start})
