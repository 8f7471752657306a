"""The routes that need a model, over a bundle that has none: each answers 404, whatever it is sent."""

from fastapi import FastAPI, Response

from semsearch.app.http import HttpError
from semsearch.engine.bundle import ModelInfo
from semsearch.engine.loading import NoModelError

NEED_MODEL = {  # paths by their method
    "POST": ("/predict", "/v1/embeddings", "/embed", "/similarity", "/", "/tokenize"),
    "GET": ("/v1/models", "/v1/models/{name:path}"),
}


def add_without_model(app: FastAPI, model: ModelInfo) -> None:
    """Add routes that the OpenAPI document leaves out. `model` describes the model that is elsewhere."""
    message = str(NoModelError(model))

    async def refuse() -> Response:
        raise HttpError(404, message)

    for method, paths in NEED_MODEL.items():
        for path in paths:
            app.add_api_route(path, refuse, methods=[method], name=path, include_in_schema=False)
