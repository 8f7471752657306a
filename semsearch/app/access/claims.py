"""Filters that are bound to a claim of a JWT, which API Gateway has verified."""

from typing import Any

from semsearch.app.access.binding import answer_bound, is_open
from semsearch.app.errors import error_reply
from semsearch.app.http import ASGIApp, Receive, Scope, Send


def bind_claim(app: ASGIApp, jwt_filter: str) -> ASGIApp:
    """Return an app that limits each request to the texts whose COLUMN equals the CLAIM of its token.

    jwt_filter is CLAIM=COLUMN. API Gateway has verified the token. A token without the claim gets 403.
    """
    claim, _, column = jwt_filter.rpartition("=")

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        value: Any = scope.get("aws.event")
        for name in ("requestContext", "authorizer", "jwt", "claims", claim):
            value = value.get(name) if isinstance(value, dict) else None
        if is_open(scope):
            await answer_bound(app, None, scope, receive, send)
        elif isinstance(value, str) and value:
            await answer_bound(app, {column: {"$eq": value}}, scope, receive, send)
        else:
            message = f"authorization: the token has no claim {claim!r}, expected one with a text; ask its issuer"
            await error_reply(403, message, scope["path"])(scope, receive, send)

    return answer
