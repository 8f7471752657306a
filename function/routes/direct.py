"""The way from a request to its route: straight where nothing stands between them, FastAPI's where something does."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


class DirectRoute(APIRoute):
    """A route that reads a body of JSON once, straight into its model, and calls its function.

    FastAPI reads the body as Python's objects first, and looks for dependencies, parameters, files and background
    tasks, which takes five times as long (python -m bench warm-profile). The route is FastAPI's own in everything else:
    in the OpenAPI document, and for each request that is not plain valid JSON, which FastAPI reads again to refuse it,
    so that errors are the same. A function that this class does not suit is called by FastAPI alone: see `arguments`.
    """

    def get_route_handler(self) -> Endpoint:
        """Return what answers a request; FastAPI asks for it once, when the route is added."""
        through_fastapi = super().get_route_handler()
        names = None if self.dependencies else arguments(self.endpoint)
        if names is None:
            return through_fastapi
        function, (request_name, body_name, model) = self.endpoint, names

        async def answer(request: Request) -> Response:
            values: dict[str, Any] = {request_name: request} if request_name else {}
            if model is not None:
                if not _is_json(request.headers.get("content-type", "")):
                    return await through_fastapi(request)
                try:
                    values[body_name] = model.model_validate_json(await request.body())
                except ValidationError:
                    return await through_fastapi(request)
            response: Response = await function(**values)
            return response

        return answer


def arguments(function: Callable[..., Any]) -> tuple[str, str, type[BaseModel] | None] | None:
    """Return the names of a function's arguments for the request ("": none) and for the body, and the body's model.

    None if it is not a coroutine function, does not say that it returns a Response, or takes anything else than a
    Request and a pydantic model, each at most once.
    """
    signature = inspect.signature(function)
    request_name, body_name, model = "", "", None
    for name, parameter in signature.parameters.items():
        kind = parameter.annotation
        if kind is Request and not request_name:
            request_name = name
        elif isinstance(kind, type) and issubclass(kind, BaseModel) and model is None:
            body_name, model = name, kind
        else:
            return None
    if not inspect.iscoroutinefunction(function) or signature.return_annotation is not Response:
        return None
    return request_name, body_name, model


def _is_json(content_type: str) -> bool:
    """Return whether a content type is JSON as nearly all write it; FastAPI knows the other ways."""
    return content_type == "application/json" or content_type.startswith("application/json;")
