"""A FastAPI route that validates a plain JSON body in one step and leaves everything else to FastAPI."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from function.errors import REPEATED_KEY

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


class DirectRoute(APIRoute):
    """A route that reads a body of JSON once, straight into its model, and calls its function.

    FastAPI reads the body as Python's objects first, and looks for dependencies, parameters, files and background
    tasks, which takes longer. The route is FastAPI's own in everything else: in the OpenAPI document, and for each
    request that is not plain valid JSON, which FastAPI reads again to refuse it, so that errors are the same. Only a
    repeated key is refused here, since FastAPI takes the last value. A function that this class does not suit is called
    by FastAPI alone: see `arguments`.
    """

    def get_route_handler(self) -> Endpoint:
        """Return the function that answers a request; FastAPI calls this once, when the route is added."""
        through_fastapi = super().get_route_handler()
        names = None if self.dependencies else arguments(self.endpoint)
        if names is None:
            return through_fastapi
        function, (request_name, body_name, model) = self.endpoint, names

        async def answer(request: Request) -> Response:
            values: dict[str, Any] = {request_name: request} if request_name else {}
            if model is not None:
                body = await request.body()
                found = _read(model, body) if _is_json(request.headers.get("content-type", "")) else None
                # each key has a colon: where there are no more colons than fields, no key is repeated
                if found is None or body.count(b":") > len(found.model_fields_set):
                    _check_keys(body)
                if found is None:
                    return await through_fastapi(request)
                values[body_name] = found
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


def _read(model: type[BaseModel], body: bytes) -> BaseModel | None:
    """Return a body of JSON as its model, None if it is not valid."""
    try:
        return model.model_validate_json(body)
    except ValidationError:
        return None


def _check_keys(body: bytes) -> None:
    """Raise RequestValidationError if an object in a body of JSON has a key twice."""
    from function.repeated_keys import RepeatedKeyError, refuse_repeated_keys  # most requests do not need it

    try:
        refuse_repeated_keys(body)
    except RepeatedKeyError as error:
        described = {"type": REPEATED_KEY, "loc": ("body", *error.place), "msg": error.found, "input": None}
        raise RequestValidationError([described]) from None


def _is_json(content_type: str) -> bool:
    """Return whether a content type is JSON in its usual spelling; FastAPI knows the other spellings."""
    return content_type == "application/json" or content_type.startswith("application/json;")
