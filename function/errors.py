"""Error replies: `{"error": …, "error_type": …}` like text-embeddings-inference, or as clients of other APIs read them.

Under /v1/ that is OpenAI's format; /v1/rerank and /v2/rerank have those of Jina and Cohere.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Route

ERROR_TYPES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "media_type",
    424: "backend",
    429: "overloaded",
    503: "unhealthy",
}
MOST_DESCRIBED = 3  # maximum errors of one body that are described
# minimum likeness of a wrong path and a suggested one: /v1/similar is 0.84 like /similar, /redoc is 0.71 like /predict
CLOSE = 0.75
LONGEST_ECHO = 60  # maximum characters of a wrong value, or of an unknown field's name, in an error
RIGHT_BODY = 'expected JSON in UTF-8, such as {"text": "some words"}'
NO_ROUTE = "Not Found"  # Starlette's detail of a 404 for a path without a route
OPENAI_PATHS = "/v1/"  # prefix of the paths whose clients read OpenAI's errors
MESSAGE_FIELDS = {
    "/v1/rerank": "detail",
    "/v2/rerank": "message",
}  # names of the only field of Jina's and Cohere's errors
TEI_PATHS = ("/", "/embed", "/similarity", "/tokenize", "/rerank")  # paths that answer an empty text or list with 400
EMPTY = ("too_short", "string_too_short")
REPEATED_KEY = "repeated_key"  # type of the error for a key that occurs twice in an object
OPENAI_MODELS = "/v1/models/"
OPENAI_TYPES = {401: ("invalid_request_error", "invalid_api_key"), 429: ("requests", "rate_limit_exceeded")}


class ErrorReply(BaseModel):
    """An error: where it is, what was found and what was expected."""

    error: str
    error_type: str


Replies = dict[int | str, dict[str, Any]]
FAILED: Replies = {  # error replies of all routes
    413: {"model": ErrorReply, "description": "too large"},
    500: {"model": ErrorReply, "description": "internal"},
}
REFUSED: Replies = {  # further ones of routes with a body
    status: {"model": ErrorReply, "description": ERROR_TYPES.get(status, "invalid").replace("_", " ")}
    for status in (400, 413, 415, 429, 422)
}
BACKEND: Replies = {  # for routes that use another service
    424: {"model": ErrorReply, "description": "backend"},
    503: {"model": ErrorReply, "description": "the texts are still being fetched from S3"},
}
MISSING: Replies = {404: {"model": ErrorReply, "description": "no such text"}}  # for routes that take an id


def error_reply(status: int, message: str, path: str = "", field: str | None = None) -> JSONResponse:
    """Return the reply for an error, in the format that clients of this path read.

    Under /v1/ that is OpenAI's, `{"error": {"message", "type", "param", "code"}}`. `param` is the wrong `field`, and
    a 422 becomes a 400 (https://developers.openai.com/api/docs/guides/error-codes).
    """
    if path in MESSAGE_FIELDS:
        return JSONResponse({MESSAGE_FIELDS[path]: message}, status)
    if path.startswith(OPENAI_PATHS):
        is_model = status == 404 and path.startswith(OPENAI_MODELS)
        default = "invalid_request_error" if status < 500 else "server_error", "model_not_found" if is_model else None
        kind, code = OPENAI_TYPES.get(status, default)
        error = {"message": message, "type": kind, "param": field, "code": code}
        return JSONResponse({"error": error}, 400 if status == 422 else status)
    kind = ERROR_TYPES.get(status, "invalid" if status < 500 else "internal")
    return JSONResponse({"error": message, "error_type": kind}, status)


def add_error_replies(app: FastAPI) -> None:
    """Add handlers to the app that answer every error in this format, also wrong paths and methods."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors, path = error.errors(), request.scope["path"]
        first = errors[0]
        if first["type"] == "json_invalid":
            found = f"{first['ctx']['error']} at character {first['loc'][-1]}"
            return error_reply(400, f"body: not JSON: {found}; {RIGHT_BODY}", path)
        if isinstance(first["input"], bytes):  # FastAPI parses a body only if its content-type is JSON
            content_type = request.headers.get("content-type", "")
            return error_reply(415, f"body: content-type {echo(content_type)}, expected application/json", path)
        field = truncate(str(first["loc"][1])) if len(first["loc"]) > 1 else None
        is_empty = path in TEI_PATHS and first["type"] in EMPTY
        return error_reply(400 if is_empty else 422, describe_errors(errors), path, field)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, ValueError | RecursionError):  # raised while FastAPI read the body
            found = _describe_unreadable(error.__cause__)
            return error_reply(400, f"body: not readable: {found}; {RIGHT_BODY}", request.scope["path"])
        if error.status_code == 405:
            return _other_method(request)
        if error.status_code == 404 and error.detail == NO_ROUTE:
            return _no_route(request)
        reply = error_reply(error.status_code, error.detail, request.scope["path"])
        reply.headers.update(error.headers or {})  # for example Retry-After
        return reply


def _no_route(request: Request) -> JSONResponse:
    from difflib import get_close_matches  # not needed to start

    path = request.scope["path"]
    # each path once, and without the type of a parameter: /v1/models/{model}, not /v1/models/{model:path}
    paths = list(dict.fromkeys(route.path_format for route in request.app.routes if isinstance(route, Route)))
    close = get_close_matches(path, paths, n=1, cutoff=CLOSE) if len(path) <= LONGEST_ECHO else []
    advice = f"did you mean {close[0]}?" if close else "request one of these"
    message = f"{_shown(request)}: there is no such path, expected {', '.join(paths)}; {advice}"
    return error_reply(404, message, path)


def _other_method(request: Request) -> JSONResponse:
    path = request.scope["path"]
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    methods = {method for route in routes for method in route.methods or ()}
    if "GET" in methods:
        methods.add("HEAD")  # function/middleware.py answers it
    allowed = ", ".join(sorted(methods))
    message = f"{_shown(request)}: method not allowed, expected {allowed}; use that method"
    reply = error_reply(405, message, path)
    reply.headers["allow"] = allowed
    return reply


def _shown(request: Request) -> str:
    # not request.url, which depends on the header `host`
    return f"{truncate(request.method)} {truncate(request.scope['path'])}"


def union_tag(form: str) -> str:
    """Return the tag of one form of a value; `_describe` distinguishes it from a field's name."""
    return f"<{form}>"


def describe_errors(errors: Sequence[Any]) -> str:
    """Return a description of pydantic's first errors in one line."""
    described = [_describe(one) for one in errors[:MOST_DESCRIBED]]
    if len(errors) > MOST_DESCRIBED:
        described.append(f"and {len(errors) - MOST_DESCRIBED} more")
    return "; ".join(described)


def _describe(error: dict[str, Any]) -> str:
    """Return a description of one of pydantic's errors: the wrong field, what was expected and what was found."""
    parts = [str(part) for part in error["loc"][1:]]  # "body" or "arguments" comes first
    field = truncate(".".join(part for part in parts if part != union_tag(part[1:-1]))) or "body"
    message = error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] in ("missing", "extra_forbidden", REPEATED_KEY):
        return f"{field}: {message}"
    return f"{field}: {message}, found {echo(error['input'])}"


def _describe_unreadable(error: BaseException) -> str:
    """Return why Python could not read JSON: it is not UTF-8, nested too deeply, or has a number that is too long."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is {error.object[error.start]:#04x}, which is not UTF-8 there"
    if isinstance(error, RecursionError):
        return "brackets nested too deeply"
    return str(error).partition(";")[0].lower()  # the rest explains how to let Python read longer numbers


def truncate(text: str) -> str:
    """Return a text, or its first LONGEST_ECHO characters and an ellipsis if it is longer."""
    return text if len(text) <= LONGEST_ECHO else text[:LONGEST_ECHO] + "…"


def echo(value: object) -> str:
    """Return the first characters of a JSON value's repr, without making all of the repr of a large value."""
    written = ""
    for piece in _written(value):
        written += piece
        if len(written) > LONGEST_ECHO:
            break
    return truncate(written)


def _written(value: object) -> Iterator[str]:
    """Yield the repr of a JSON value in pieces."""
    if isinstance(value, str):
        yield repr(value[: LONGEST_ECHO + 1])
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield ", " if place else "["
            yield from _written(each)
        yield "]" if value else "[]"
    elif isinstance(value, dict):
        for place, (key, each) in enumerate(value.items()):
            yield ", " if place else "{"
            yield from _written(key)
            yield ": "
            yield from _written(each)
        yield "}" if value else "{}"
    else:
        yield repr(value)
