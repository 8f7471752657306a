"""The filter that limits what a request finds, and the paths that need neither a key nor a filter."""

from contextvars import ContextVar
from typing import Any

from semsearch.app.http import ASGIApp, Receive, Scope, Send

# Paths whose GET and HEAD need no key, because they reveal nothing about the texts. MCP clients request the last two
# before they have a token.
OPEN_PATHS = (
    *("/health", "/"),
    *("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"),
)

# The filter that is bound to the key or the token of the current request; None means all texts. There is no
# default: code outside of a request, such as in a thread of an executor, gets a LookupError instead of all texts.
bound_filter: ContextVar[dict[str, Any] | None] = ContextVar("bound filter")


def is_open(scope: Scope) -> bool:
    """Return whether a request reveals nothing about the texts, or has been authorized by Lambda itself."""
    return (scope.get("method") == "GET" and scope.get("path") in OPEN_PATHS) or bool(scope.get("is_direct"))


async def answer_bound(
    app: ASGIApp, condition: dict[str, Any] | None, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer one request, which finds only texts that pass the condition; None means all texts."""
    token = bound_filter.set(condition)
    try:
        await app(scope, receive, send)
    finally:
        bound_filter.reset(token)
