"""API keys: requests without one are refused before their body is read.

Imported only if there are keys or bound filters.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from ipaddress import ip_address
from secrets import compare_digest
from typing import TYPE_CHECKING, Any

from semsearch.app.access.binding import OPEN_PATHS, answer_bound, bind_claim, is_open
from semsearch.app.access.bound_filters import BoundFilters, misfit
from semsearch.app.access.views import ASK, UNFIT
from semsearch.app.errors import error_reply, reply_to
from semsearch.app.http import ASGIApp, HttpError, Receive, Reply, Scope, Send
from semsearch.app.middleware import discard_body
from semsearch.app.settings import ApiKey, Settings, SettingsError, hash_key, read_api_keys
from semsearch.app.telemetry import Log
from semsearch.engine.loading import AnyBundle

if TYPE_CHECKING:
    from semsearch.app.shared_memory import Handover  # workers of a server have one; a function has none

LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")  # names that browsers on this machine send for its own servers
# maximum seconds to read the body of a caller without a key, who could otherwise keep a connection
SECONDS_TO_DISCARD = 5.0
SCHEME = {"type": "http", "scheme": "bearer", "description": "One of the server's API keys."}


class StatedKeys:
    """The keys of API_KEYS, API_KEYS_FILE and API_KEY_HASHES, of which the file can be read again."""

    def __init__(self, settings: Settings, logger: Log, environment: Mapping[str, str] = os.environ) -> None:
        """Take the keys of the settings, and the environment that they were read from."""
        self._logger, self._environment = logger, environment
        self._handover: Handover | None = None
        self.latest: Sequence[ApiKey] = settings.api_keys

    async def get(self) -> Sequence[ApiKey]:
        """Return the keys."""
        return self.latest

    def read_again(self) -> None:
        """Read the keys again. If that fails, those that were read before stay valid."""
        try:
            self._accept(read_api_keys(self._environment))
        except SettingsError as error:
            self._logger.error("API keys were not read", extra={"error": str(error)})

    def follow(self, handover: "Handover") -> None:
        """Accept the keys that the process before this one accepted, and leave what this one accepts to the next one.

        A new worker is a copy of the process that read the keys at the server's start. Some were removed since.
        """
        self._handover = handover
        left = handover.read()
        if left is not None:
            self.latest = [ApiKey(**key) for key in json.loads(left or b"[]")]  # none if they are not known

    def _accept(self, keys: Sequence[ApiKey]) -> None:
        """Let these keys be valid. They are left to the next process first."""
        if self._handover is not None:
            self._handover.write(json.dumps([asdict(key) for key in keys]).encode())
        self.latest = keys


class ApiKeys:
    """Replies 401 to requests without a valid key, except on OPEN_PATHS; binds the key's filter to other requests."""

    def __init__(self, app: ASGIApp, keys: Callable[[], Awaitable[Sequence[ApiKey]]], filters: BoundFilters) -> None:
        """Take the app, a function that returns the keys, called for each request that needs one, and their filters."""
        self._app = app
        self._keys, self._filters = keys, filters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        A direct invocation needs no key and finds all texts, because Lambda has checked its AWS credentials.
        """
        if is_open(scope):
            await answer_bound(self._app, None, scope, receive, send)
            return
        keys = await self._keys()
        key = find_key(scope, keys)
        if key is None:
            await _refusal(scope)(scope, receive, send)
            with suppress(TimeoutError):
                async with asyncio.timeout(SECONDS_TO_DISCARD):
                    await discard_body(receive)
            return
        scope["log_fields"]["key"] = key.name
        reason = self._filters.reason_against(key, keys)
        if reason is None:
            await answer_bound(self._app, key.filter, scope, receive, send)
        else:
            error = HttpError(503, f"{UNFIT}; {ASK}", reason=reason)
            await reply_to(error, scope["path"])(scope, receive, send)


def find_key(scope: Scope, keys: Sequence[ApiKey]) -> ApiKey | None:
    """Return the key of a request, or None. The time it takes does not reveal which key matches, or how nearly."""
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, given = b"".join(values[:1]).partition(b" ")
    digest = hash_key(given.strip().decode("latin-1"))
    found = [key for key in keys if compare_digest(key.sha256, digest)]  # compares all keys, always
    if found and len(values) == 1 and scheme.lower() == b"bearer":
        return found[0]
    return None


def _refusal(scope: Scope) -> Reply:
    has_any = any(name == b"authorization" for name, _ in scope["headers"])
    found = "is missing"
    if has_any:
        found = "is not one of this server's API keys"
    message = f"authorization: {found}, expected Bearer and an API key; ask the operator of this server for one"
    reply = error_reply(401, message, scope["path"])
    if has_any:  # RFC 6750, section 3
        reply.headers["www-authenticate"] = 'Bearer error="invalid_token"'
    else:
        reply.headers["www-authenticate"] = "Bearer"
    return reply


def access_layers(
    bundle: AnyBundle, settings: Settings, keys: "StatedKeys | None", filters: BoundFilters
) -> list[Callable[[ASGIApp], ASGIApp]]:
    """Return the ASGI layers for the keys and for the filters of the settings, innermost first.

    A key whose filter does not fit the bundle is reported, and refused alone. Raises SettingsError if JWT_FILTER, which
    all requests have, does not fit.
    """
    layers: list[Callable[[ASGIApp], ASGIApp]] = []
    if settings.jwt_filter:
        reason = misfit({settings.jwt_filter.rpartition("=")[2]: {"$eq": ""}}, bundle.manifest)
        if reason is not None:
            raise SettingsError(f"JWT_FILTER: {reason}")
        layers.append(partial(bind_claim, jwt_filter=settings.jwt_filter))
    if keys is not None:
        layers.append(partial(ApiKeys, keys=keys.get, filters=filters))
        filters.check(keys.latest)
    return layers


def check_listener(address: str, settings: Settings, is_open: bool) -> None:
    """Raise SettingsError if other machines could send requests to this IP address without a key, unless is_open."""
    if not (settings.api_keys or settings.api_keys_arn or is_open or ip_address(address).is_loopback):
        advice = "set API_KEYS, or allow it with --open"
        found = "other machines could send requests, and there are no API keys"
        raise SettingsError(f"--host {address}: {found}; {advice}")


def accepted_hosts(address: str, settings: Settings) -> tuple[str, ...]:
    """Return the names in the header Host that a server at this IP address accepts, () for any name.

    A server for this machine alone accepts the machine's own names and the allowed ones. Any other server accepts any
    name, unless the settings allow some.
    """
    if not (settings.allowed_hosts or ip_address(address).is_loopback):
        return ()
    own = f"[{address}]" if ":" in address else address
    return tuple(dict.fromkeys([*LOCAL_NAMES, own, *settings.allowed_hosts]))


def describe_keys(document: dict[str, Any]) -> None:
    """Declare in an OpenAPI document which operations need a key, and what they answer without one that can be used."""
    document["components"]["securitySchemes"] = {"ApiKey": SCHEME}
    document["security"] = [{"ApiKey": []}]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path in OPEN_PATHS and method == "get":
                operation["security"] = []
                continue
            replies = operation["responses"]
            content = replies["500"]["content"]  # the form of the route's other errors
            headers = {"WWW-Authenticate": {"schema": {"type": "string"}}}
            replies["401"] = {"description": "no API key", "headers": headers, "content": content}
            replies["503"] = {"description": "the key's filter does not fit the bundle", "content": content}
