"""A FastAPI route that validates a plain JSON body in one step and leaves everything else to FastAPI."""

import inspect
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from function.routes.texts import MOST_FIELDS, refuse_fields

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


class DirectRoute(APIRoute):
    """A route that reads a JSON body once, straight into its model, and calls its function.

    FastAPI reads the body into Python objects first, and looks for dependencies, parameters, files and background
    tasks, which takes longer. FastAPI still describes the route in the OpenAPI document. It also reads each body that
    is not plain valid JSON, so its errors are the same. Functions that `arguments` rejects are called by FastAPI alone.
    """

    def get_route_handler(self) -> Endpoint:
        """Return the function that answers a request; FastAPI calls this once, when the route is added."""
        through_fastapi = super().get_route_handler()
        names = None if self.dependencies else arguments(self.endpoint)
        if names is None:
            return through_fastapi
        function, (request_name, body_name, model) = self.endpoint, names

        async def read_by_fastapi(request: Request, body: bytes) -> Response:
            if len(body) > MOST_FIELDS:  # each field takes at least a byte
                with suppress(ValueError, RecursionError):  # FastAPI refuses a body that is not JSON
                    refuse_fields(json.loads(body), "body")
            return await through_fastapi(request)

        async def answer(request: Request) -> Response:
            values: dict[str, Any] = {request_name: request} if request_name else {}
            if model is not None:
                body = await request.body()
                if not _is_json(request.headers.get("content-type", "")):
                    return await read_by_fastapi(request, body)
                try:
                    values[body_name] = model.model_validate_json(body)
                except ValidationError:
                    return await read_by_fastapi(request, body)
            response: Response = await function(**values)
            return response

        return answer


def arguments(function: Callable[..., Any]) -> tuple[str, str, type[BaseModel] | None] | None:
    """Return the names of a function's arguments for the request ("": none) and for the body, and the body's model.

    Return None unless it is a coroutine function that is annotated to return a Response and takes nothing but a Request
    and a pydantic model, each at most once.
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
    """Return whether a content type is JSON in its usual spelling; FastAPI knows the other spellings."""
    return content_type == "application/json" or content_type.startswith("application/json;")
