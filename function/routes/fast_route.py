"""A FastAPI route that validates a plain JSON body in one step and leaves everything else to FastAPI."""

import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from function.errors import REPEATED_KEY
from function.routes.texts import MOST_FIELDS, refuse_fields

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


class FastRoute(APIRoute):
    """A route that reads a JSON body once, straight into its model, and calls its function.

    FastAPI reads the body into Python objects first, and looks for dependencies, parameters, files and background
    tasks, which takes longer. FastAPI still describes the route in the OpenAPI document. Bodies that are not plain
    valid JSON go to FastAPI, which answers with its own errors. Two things are refused here: a repeated key, of which
    FastAPI takes the last value, and too many fields. Functions that `arguments` rejects are called by FastAPI alone.
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
                colons = body.count(b":")  # each key has one
                if colons > MOST_FIELDS:
                    _check_keys(body)
                found = _read(model, body) if _is_json(request.headers.get("content-type", "")) else None
                # if there are no more colons than fields, no key is repeated
                if colons <= MOST_FIELDS and (found is None or colons > len(found.model_fields_set)):
                    _check_keys(body)
                if found is None:
                    return await through_fastapi(request)
                values[body_name] = found
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


def _read(model: type[BaseModel], body: bytes) -> BaseModel | None:
    """Return a body of JSON as its model, None if it is not valid."""
    try:
        return model.model_validate_json(body)
    except ValidationError:
        return None


def _check_keys(body: bytes) -> None:
    """Raise RequestValidationError if an object in a body of JSON has a key twice.

    Raises HTTPException if the body has more fields than `refuse_fields` accepts.
    """
    from function.routes.repeated_keys import RepeatedKeyError, refuse_repeated_keys  # most requests do not need it

    try:
        refuse_fields(refuse_repeated_keys(body), "body")
    except RepeatedKeyError as error:
        described = {"type": REPEATED_KEY, "loc": ("body", *error.place), "msg": error.found, "input": None}
        raise RequestValidationError([described]) from None


def _is_json(content_type: str) -> bool:
    """Return whether a content type is JSON in its usual spelling; FastAPI knows the other spellings."""
    return content_type == "application/json" or content_type.startswith("application/json;")
