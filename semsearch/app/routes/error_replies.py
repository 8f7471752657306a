"""Error replies in the OpenAPI document. A start does not need them, so it does not import pydantic for them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class ErrorReply(BaseModel):
    """An error: where it is, what was found and what was expected."""

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=True)  # only the OpenAPI document needs it

    error: str
    error_type: str


Replies = dict[int | str, dict[str, Any]]


def error_replies(descriptions: Mapping[int, str]) -> Replies:
    """Return error replies with these descriptions by status, and with the schema of ErrorReply."""
    return {status: {"model": ErrorReply, "description": description} for status, description in descriptions.items()}


def describe_replies(descriptions: Mapping[int, str]) -> Replies:
    """Return descriptions of replies by status, without a schema: these replies have the form of another API."""
    return {status: {"description": description} for status, description in descriptions.items()}


OF_ALL_ROUTES = {413: "too large", 500: "internal"}  # descriptions of error replies
ERROR_REPLIES = error_replies(OF_ALL_ROUTES)
CLIENT_FAILED = describe_replies(OF_ALL_ROUTES)
CLIENT_REFUSED = CLIENT_FAILED | describe_replies({400: "bad request", 415: "media type", 429: "overloaded"})
