"""The OpenAPI document, made when it is first asked for: FastAPI's, and HEAD wherever GET is."""

from typing import Any

from fastapi import FastAPI


def describe_app(app: FastAPI) -> dict[str, Any]:
    """Return the document. FastAPI makes it once and keeps it."""
    document = FastAPI.openapi(app)
    for methods in document["paths"].values():
        if "get" in methods:
            methods.setdefault("head", _without_bodies(methods["get"]))
    return document


def _without_bodies(operation: dict[str, Any]) -> dict[str, Any]:
    """Return the description of HEAD: that of GET, whose replies have no body."""
    responses = {status: {"description": reply["description"]} for status, reply in operation["responses"].items()}
    name = operation["operationId"].removesuffix("_get") + "_head"
    return operation | {"operationId": name, "responses": responses}
