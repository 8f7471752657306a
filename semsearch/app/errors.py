"""Error replies: `{"error": …, "error_type": …}` like text-embeddings-inference, or as clients of other APIs read them.

Under /v1/ that is OpenAI's format; /v1/rerank and /v2/rerank have those of Jina and Cohere.
"""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from semsearch.app.http import HttpError, Reply

if TYPE_CHECKING:
    from semsearch.app.routes.reply_types import OpenAIErrorReply

ERROR_TYPES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "media_type",
    421: "misdirected",
    424: "backend",
    429: "overloaded",
    502: "backend",
    503: "unhealthy",
}
RIGHT_BODY = 'expected JSON in UTF-8, such as {"text": "some words"}'
OPENAI_PATHS = "/v1/"  # prefix of the paths whose clients read OpenAI's errors
# names of the only field of Jina's and Cohere's errors
MESSAGE_FIELDS = {"/v1/rerank": "detail", "/v2/rerank": "message"}
TEI_PATHS = ("/", "/embed", "/similarity", "/tokenize", "/rerank")  # paths that answer an empty text or list with 400
EMPTY_TYPES = ("too_short", "string_too_short")
OPENAI_MODELS = "/v1/models/"
OPENAI_TYPES = {401: ("invalid_request_error", "invalid_api_key"), 429: ("requests", "rate_limit_exceeded")}

# Descriptions of error replies in the OpenAPI document, by status: of routes with a body, of routes that use another
# service, and of routes that take an id.
REFUSED = {status: ERROR_TYPES.get(status, "invalid").replace("_", " ") for status in (400, 413, 415, 429, 422)}
BACKEND = {502: "backend"}
MISSING = {404: "no such text"}


def error_reply(status: int, message: str, path: str = "") -> Reply:
    """Return the reply for an error, in the format that clients of this path read.

    Under /v1/ that is OpenAI's, `{"error": {"message", "type", "param", "code"}}`. A 422 becomes a 400, and `param` is
    the field with which its message begins (https://developers.openai.com/api/docs/guides/error-codes).
    """
    reply = _error_reply(status, message, path)
    reply.reason = message
    return reply


def _error_reply(status: int, message: str, path: str) -> Reply:
    if path in MESSAGE_FIELDS:
        return _json_reply({MESSAGE_FIELDS[path]: message}, status)
    if path.startswith(OPENAI_PATHS):
        kind, code = OPENAI_TYPES.get(status, ("server_error" if status >= 500 else "invalid_request_error", None))
        if status == 404 and path.startswith(OPENAI_MODELS):
            code = "model_not_found"
        field = None
        if status == 422:
            status, field = 400, re.split("[.:]", message)[0]
        content: OpenAIErrorReply = {"error": {"message": message, "type": kind, "param": field, "code": code}}
        return _json_reply(content, status)
    kind = ERROR_TYPES.get(status, "invalid" if status < 500 else "internal")
    return _json_reply({"error": message, "error_type": kind}, status)


def reply_to(error: HttpError, path: str) -> Reply:
    """Return the reply for an error that a route raised, with the error's headers, such as Retry-After."""
    reply = error_reply(error.status_code, error.detail, path)
    reply.headers.update(error.headers)
    reply.reason = error.reason
    return reply


def _json_reply(content: Mapping[str, object], status: int) -> Reply:
    return Reply(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode(), status)
