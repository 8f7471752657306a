"""The filter of a request's key, or of a claim of its token, and the paths that need neither."""

from contextvars import ContextVar
from typing import Any

from semsearch.app.errors import error_reply
from semsearch.app.http import ASGIApp, Receive, Scope, Send

# Paths whose GET and HEAD need no key, because they reveal nothing about the texts. MCP clients request the last two
# before they have a token.
OPEN_PATHS = (
    "/health",
    "/",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
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


def bind_claim(app: ASGIApp, jwt_filter: str) -> ASGIApp:
    """Return an app that limits each request to the texts whose COLUMN equals the CLAIM of its token.

    jwt_filter is CLAIM=COLUMN. API Gateway has verified the token. A token gets 403 without the claim, or with a claim
    that is a list, which API Gateway sends as text: "[a b]".
    """
    claim, _, column = jwt_filter.rpartition("=")

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        value: Any = scope.get("aws.event")
        for name in ("requestContext", "authorizer", "jwt", "claims", claim):
            value = value.get(name) if isinstance(value, dict) else None
        if is_open(scope):
            await answer_bound(app, None, scope, receive, send)
            return
        if isinstance(value, list) or (isinstance(value, str) and value.startswith("[") and value.endswith("]")):
            found = f"the claim {claim!r} of the token is a list"
        elif isinstance(value, str) and value:
            await answer_bound(app, {column: {"$eq": value}}, scope, receive, send)
            return
        else:
            found = f"the token has no claim {claim!r}"
        message = f"authorization: {found}, expected one with a text; ask its issuer"
        await error_reply(403, message, scope["path"])(scope, receive, send)

    return answer
