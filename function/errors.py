"""Error replies: `{"error": …, "error_type": …}`, as text-embeddings-inference has it; under /v1/ OpenAI's shape."""

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
    408: "timeout",
    413: "too_large",
    415: "media_type",
    424: "backend",
    429: "overloaded",
    431: "too_large",
    503: "unhealthy",
}
MOST_DESCRIBED = 3  # errors of one body that are described
CLOSE = (
    0.75  # how alike a wrong path and a route's must be: /v1/similar is 0.84 like /similar, /redoc 0.71 like /predict
)
LONGEST_ECHO = 60  # maximum characters of a wrong value, or of an unknown field's name, in an error
RIGHT_BODY = 'expected JSON in UTF-8, such as {"text": "some words"}'
NO_ROUTE = "Not Found"  # how Starlette says that no route has this path
OPENAI_PATHS = "/v1/"  # whose clients read OpenAI's errors
TEI_PATHS = ("/", "/embed", "/similarity", "/tokenize")  # paths that answer an empty text or list with 400
EMPTY = ("too_short", "string_too_short")
REPEATED_KEY = "repeated_key"  # the type of the error for a key that an object has twice
OPENAI_MODELS = "/v1/models/"
OPENAI_TYPES = {401: ("invalid_request_error", "invalid_api_key"), 429: ("requests", "rate_limit_exceeded")}


class ErrorReply(BaseModel):
    """What was wrong: where, what was found, what was expected."""

    error: str
    error_type: str


Replies = dict[int | str, dict[str, Any]]
FAILED: Replies = {  # what any route may answer
    413: {"model": ErrorReply, "description": "too large"},
    500: {"model": ErrorReply, "description": "internal"},
}
REFUSED: Replies = {  # and what a route with a body may
    status: {"model": ErrorReply, "description": kind.replace("_", " ")}
    for status, kind in ({status: ERROR_TYPES[status] for status in (400, 413, 415, 429)} | {422: "invalid"}).items()
}

# what a route may answer that asks another service
BACKEND: Replies = {424: {"model": ErrorReply, "description": "backend"}}
# what a route may answer that takes an id
MISSING: Replies = {404: {"model": ErrorReply, "description": "no such text"}}


def error_reply(status: int, message: str, path: str = "", field: str | None = None) -> JSONResponse:
    """Return the reply for an error, in the shape that clients of this path read.

    Under /v1/ that is OpenAI's, `{"error": {"message", "type", "param", "code"}}`. `param` is the wrong `field`, and
    what is a 422 elsewhere is a 400 (https://developers.openai.com/api/docs/guides/error-codes).
    """
    if path.startswith(OPENAI_PATHS):
        is_model = status == 404 and path.startswith(OPENAI_MODELS)
        default = "invalid_request_error" if status < 500 else "server_error", "model_not_found" if is_model else None
        kind, code = OPENAI_TYPES.get(status, default)
        error = {"message": message, "type": kind, "param": field, "code": code}
        return JSONResponse({"error": error}, 400 if status == 422 else status)
    kind = ERROR_TYPES.get(status, "invalid" if status < 500 else "internal")
    return JSONResponse({"error": message, "error_type": kind}, status)


def add_error_replies(app: FastAPI) -> None:
    """Add handlers to the app that answer every refusal in this shape, wrong paths and methods included."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors, path = error.errors(), request.scope["path"]
        first = errors[0]
        if first["type"] == "json_invalid":
            found = f"{first['ctx']['error']} at character {first['loc'][-1]}"
            return error_reply(400, f"body: not JSON: {found}; {RIGHT_BODY}", path)
        if isinstance(first["input"], bytes):  # FastAPI parses a body only if it is said to be JSON
            content_type = request.headers.get("content-type", "")
            return error_reply(415, f"body: content-type {echo(content_type)}, expected application/json", path)
        field = cut(str(first["loc"][1])) if len(first["loc"]) > 1 else None
        is_empty = path in TEI_PATHS and first["type"] in EMPTY
        return error_reply(400 if is_empty else 422, describe_errors(errors), path, field)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, ValueError | RecursionError):  # raised while FastAPI read the body
            found = describe_unreadable(error.__cause__)
            return error_reply(400, f"body: not readable: {found}; {RIGHT_BODY}", request.scope["path"])
        if error.status_code == 405:
            return _other_method(request)
        if error.status_code == 404 and error.detail == NO_ROUTE:
            return _no_route(request)
        reply = error_reply(error.status_code, error.detail, request.scope["path"])
        reply.headers.update(error.headers or {})  # such as when to try again
        return reply


def _no_route(request: Request) -> JSONResponse:
    from difflib import get_close_matches  # not needed to start

    path = request.scope["path"]
    # each once, and without the type of a parameter: /v1/models/{model}, not /v1/models/{model:path}
    paths = list(dict.fromkeys(route.path_format for route in request.app.routes if isinstance(route, Route)))
    close = get_close_matches(path, paths, n=1, cutoff=CLOSE) if len(path) <= LONGEST_ECHO else []
    advice = f"did you mean {close[0]}?" if close else "ask for one of these"
    message = f"{_shown(request)}: there is no such path, expected {', '.join(paths)}; {advice}"
    return error_reply(404, message, path)


def _other_method(request: Request) -> JSONResponse:
    path = request.scope["path"]
    routes = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    allowed = ", ".join(sorted({method for route in routes for method in _methods(route)}))
    message = f"{_shown(request)}: method not allowed, expected {allowed}; use that method"
    reply = error_reply(405, message, path)
    reply.headers["allow"] = allowed
    return reply


def _methods(route: Route) -> set[str]:
    """Return the methods of a route; HEAD goes wherever GET does (function/middleware.py)."""
    methods = set(route.methods or ())
    return methods | {"HEAD"} if "GET" in methods else methods


def _shown(request: Request) -> str:
    return f"{cut(request.method)} {cut(request.scope['path'])}"  # not request.url: it depends on the host header


def union_tag(form: str) -> str:
    """Return the tag of one form of a value, marked so that `describe` can distinguish it from a field's name."""
    return f"<{form}>"


def describe_errors(errors: Sequence[Any]) -> str:
    """Describe the first of pydantic's errors in one line."""
    described = [describe(one) for one in errors[:MOST_DESCRIBED]]
    if len(errors) > MOST_DESCRIBED:
        described.append(f"and {len(errors) - MOST_DESCRIBED} more")
    return "; ".join(described)


def describe(error: dict[str, Any]) -> str:
    """Describe one of pydantic's errors: which field is wrong, what was expected and what was found."""
    parts = [str(part) for part in error["loc"][1:]]  # "body" or "arguments" comes first
    field = cut(".".join(part for part in parts if part != union_tag(part[1:-1]))) or "body"
    message = error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] in ("missing", "extra_forbidden", REPEATED_KEY):
        return f"{field}: {message}"
    return f"{field}: {message}, found {echo(error['input'])}"


def describe_unreadable(error: BaseException) -> str:
    """Return why Python's JSON could not read a body: not UTF-8, brackets nested too deeply, or a number too long."""
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is {error.object[error.start]:#04x}, which is not UTF-8 there"
    if isinstance(error, RecursionError):
        return "brackets nested too deeply"
    return str(error).partition(";")[0].lower()  # after it: how to let Python read longer numbers


def cut(text: str) -> str:
    """Return the first characters of a text, which may be as long as a caller likes."""
    return text if len(text) <= LONGEST_ECHO else text[:LONGEST_ECHO] + "…"


def echo(value: object) -> str:
    """Return the first characters of a JSON value as Python writes it, without writing all of a large value."""
    written = ""
    for piece in _written(value):
        written += piece
        if len(written) > LONGEST_ECHO:
            break
    return cut(written)


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
