"""API keys: a request without one is refused before its body is read. Imported only if keys are set."""

from collections.abc import Sequence
from ipaddress import ip_address
from secrets import compare_digest
from typing import Any

from function.errors import ErrorReply, error_reply
from function.http import ASGIApp, Receive, Reply, Scope, Send
from function.settings import Settings, SettingsError

OPEN_PATHS = ("/health", "/")  # paths whose GET and HEAD need no key: they reveal nothing about the texts
SCHEME = {"type": "http", "scheme": "bearer", "description": "One of the keys in the setting API_KEYS."}


class ApiKeys:
    """Answers a request without one of the keys with 401, except on OPEN_PATHS."""

    def __init__(self, app: ASGIApp, keys: Sequence[str]) -> None:
        """Take the keys, which are ASCII."""
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        An event that is not an HTTP request needs no key, because its caller has shown AWS credentials. Neither does
        an event that is refused anyway.
        """
        is_open = scope.get("method") == "GET" and scope.get("path") in OPEN_PATHS
        if is_open or scope.get("is_direct") or self._has_key(scope):
            await self._app(scope, receive, send)
        else:
            await _refusal(scope)(scope, receive, send)

    def _has_key(self, scope: Scope) -> bool:
        """Return whether the request has one valid key. The time does not depend on how similar the key is."""
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, given = b"".join(values[:1]).partition(b" ")
        matches = [compare_digest(key, given.strip()) for key in self._keys]  # always compares all keys
        return len(values) == 1 and scheme.lower() == b"bearer" and any(matches)


def _refusal(scope: Scope) -> Reply:
    has_any = any(name == b"authorization" for name, _ in scope["headers"])
    found = "is not one of this server's API keys" if has_any else "is missing"
    message = f"authorization: {found}, expected Bearer and an API key; ask the operator of this server for one"
    reply = error_reply(401, message, scope["path"])
    reply.headers["www-authenticate"] = 'Bearer error="invalid_token"' if has_any else "Bearer"  # RFC 6750, section 3
    return reply


def check_listener(address: str, settings: Settings, is_open: bool) -> None:
    """Raise SettingsError if other machines can send requests to this IP address without a key, unless is_open."""
    if not (settings.api_keys or is_open or ip_address(address).is_loopback):
        advice = "set API_KEYS, or allow it with --open"
        found = "other machines could send requests, and there are no API keys"
        raise SettingsError(f"--host {address}: {found}; {advice}")


def describe_keys(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document which operations need a key."""
    document["components"]["securitySchemes"] = {"ApiKey": SCHEME}
    document["security"] = [{"ApiKey": []}]
    usual = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorReply.__name__}"}}}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            # a 401 has the form of the route's other errors
            content = operation["responses"].get("500", {}).get("content", usual)
            if path in OPEN_PATHS and method in ("get", "head"):
                operation["security"] = []
            else:
                refusal = {"description": "no API key", "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}}}
                operation["responses"]["401"] = refusal | ({} if method == "head" else {"content": content})
