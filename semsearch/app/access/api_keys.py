"""Access control: API keys, and filters that are bound to a key or to a claim of a JWT and limit what a caller finds.

A request without a key is refused before its body is read. If a filter is bound to a request, `Views` passes the routes
only a view of the bundle, which contains the texts that match. Imported only if there are keys or bound filters.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from http.client import HTTPException
from ipaddress import ip_address
from secrets import compare_digest
from time import monotonic
from typing import Any

from semsearch.app.errors import ErrorReply, error_reply
from semsearch.app.http import ASGIApp, HttpError, Receive, Reply, Scope, Send
from semsearch.app.settings import ApiKey, Settings, SettingsError, hash_key, read_hashes
from semsearch.app.telemetry import Log
from semsearch.engine.loading import Loaded, LoadedBundle, LoadedTexts
from semsearch.engine.metadata.filters import FilterError, read_filter
from semsearch.search.executor import Executor
from semsearch.search.query import Found, Lap, Query, Search
from semsearch.search.search import make_search

# Paths whose GET and HEAD need no key, because they reveal nothing about the texts. MCP clients request the last two
# before they have a token.
OPEN_PATHS = (
    *("/health", "/"),
    *("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"),
)
SCHEME = {"type": "http", "scheme": "bearer", "description": "One of the server's API keys."}
SECONDS_KEPT = 60.0  # keys from AWS are read again after this time, so a removed key works for at most this time
STORE_TIMEOUT = 2.0  # maximum seconds between two bytes of the reply of AWS that contains the keys
# By the service in an ARN: the operation that reads the keys, the request's field for the ARN, and the path of the keys
# in the reply.
STORES = {
    "secretsmanager": ("secretsmanager.GetSecretValue", "SecretId", ("SecretString",)),
    "ssm": ("AmazonSSM.GetParameter", "Name", ("Parameter", "Value")),
}
ASK = "ask the operator of this server"
MOST_VIEWS = 64  # maximum number of views that are kept open; each takes one byte for each text of the corpus

# The filter that is bound to the key or the token of the current request; None means all texts. It has no default, so
# code outside of a request, such as in a thread of an executor, raises LookupError and finds no text.
bound_filter: ContextVar[dict[str, Any] | None] = ContextVar("bound filter")


class ApiKeys:
    """Replies 401 to requests without a valid key, except on OPEN_PATHS; binds the key's filter to other requests."""

    def __init__(self, app: ASGIApp, keys: Callable[[], Sequence[ApiKey]]) -> None:
        """Take the app and a function that returns the keys, which is called for each request that needs a key."""
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        A direct invocation needs no key and finds all texts, because Lambda has checked its AWS credentials.
        """
        if _is_open(scope):
            await _answer_bound(self._app, None, scope, receive, send)
        elif (key := self._find_key(scope)) is None:
            await _refusal(scope)(scope, receive, send)
        else:
            scope["log_fields"]["key"] = key.name
            await _answer_bound(self._app, key.filter, scope, receive, send)

    def _find_key(self, scope: Scope) -> ApiKey | None:
        """Return the key of a request, or None. The time it takes does not reveal which key matches, or how nearly."""
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        scheme, _, given = b"".join(values[:1]).partition(b" ")
        digest = hash_key(given.strip().decode("latin-1"))
        found = [key for key in self._keys() if compare_digest(key.sha256, digest)]  # compares all keys, always
        return found[0] if found and len(values) == 1 and scheme.lower() == b"bearer" else None


def bind_claim(app: ASGIApp, jwt_filter: str) -> ASGIApp:
    """Return an app that limits each request to the texts whose COLUMN equals the CLAIM of its token.

    jwt_filter is CLAIM=COLUMN. API Gateway has verified the token. A token without the claim gets 403.
    """
    claim, _, column = jwt_filter.rpartition("=")

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        value: Any = scope.get("aws.event")
        for name in ("requestContext", "authorizer", "jwt", "claims", claim):
            value = value.get(name) if isinstance(value, dict) else None
        if _is_open(scope):
            await _answer_bound(app, None, scope, receive, send)
        elif isinstance(value, str) and value:
            await _answer_bound(app, {column: {"$eq": value}}, scope, receive, send)
        else:
            message = f"authorization: the token has no claim {claim!r}, expected one with a text; ask its issuer"
            await error_reply(403, message, scope["path"])(scope, receive, send)

    return answer


def _is_open(scope: Scope) -> bool:
    return (scope.get("method") == "GET" and scope.get("path") in OPEN_PATHS) or bool(scope.get("is_direct"))


async def _answer_bound(
    app: ASGIApp, condition: dict[str, Any] | None, scope: Scope, receive: Receive, send: Send
) -> None:
    token = bound_filter.set(condition)
    try:
        await app(scope, receive, send)
    finally:
        bound_filter.reset(token)


def _refusal(scope: Scope) -> Reply:
    has_any = any(name == b"authorization" for name, _ in scope["headers"])
    found = "is not one of this server's API keys" if has_any else "is missing"
    message = f"authorization: {found}, expected Bearer and an API key; ask the operator of this server for one"
    reply = error_reply(401, message, scope["path"])
    reply.headers["www-authenticate"] = 'Bearer error="invalid_token"' if has_any else "Bearer"  # RFC 6750, section 3
    return reply


def access_layers(bundle: Loaded, settings: Settings, logger: Log) -> list[Callable[[ASGIApp], ASGIApp]]:
    """Return the ASGI layers for the keys and filters of the settings, innermost first.

    Raises SettingsError if keys cannot be read, or if a bound filter does not fit the bundle.
    """
    stored = StoredKeys(settings, logger) if settings.api_keys_arn else None
    get = (lambda: settings.api_keys) if stored is None else stored.get
    filters = {f"the filter of {key.name}": key.filter for key in get() if key.filter is not None}
    layers: list[Callable[[ASGIApp], ASGIApp]] = []
    if settings.jwt_filter:
        filters["JWT_FILTER"] = {settings.jwt_filter.rpartition("=")[2]: {"$eq": ""}}
        layers.append(partial(bind_claim, jwt_filter=settings.jwt_filter))
    for where, condition in filters.items():
        if not isinstance(bundle, LoadedTexts):
            raise SettingsError(f"{where}: the texts are in S3 Vectors, expected in the bundle; publish with the texts")
        try:
            read_filter(condition, bundle.column_kinds)
        except FilterError as error:
            raise SettingsError(f"{where}: {error}; name a column of the bundle") from error
    return [*layers, partial(ApiKeys, keys=get)] if stored or settings.api_keys else layers


class Views:
    """Returns the bundle and the search for each request, limited to the texts that match its bound filter."""

    def __init__(self, current: Callable[[], Loaded], search: Search, executor: Executor) -> None:
        """Take the function that returns the whole bundle of the current request, and the search over that bundle."""
        self._whole, self._search, self._executor = current, search, executor
        self._open: dict[str, tuple[Loaded, LoadedTexts, Search]] = {}

    def current(self) -> Loaded:
        """Return the bundle for the current request, or a view of it if a filter is bound.

        Raises HttpError with 503 if the filter does not fit the bundle.
        """
        condition = bound_filter.get()
        return self._whole() if condition is None else self._view(condition)[0]

    async def search(self, query: Query, lap: Lap) -> Found:
        """Search the bundle, or the view of it that the current request may see."""
        condition = bound_filter.get()
        if condition is None:
            return await self._search(query, lap)
        view, search = self._view(condition)
        if not isinstance(view, LoadedBundle):  # S3 Vectors must rank the texts of the view alone
            query = replace(query, filter=condition if query.filter is None else {"$and": [condition, query.filter]})
        found = await search(query, lap)
        for result in found.results:
            for each in (result, *result.get("other_passages", ())):
                each["index"] = view.number(each["index"])
        return found

    def _view(self, condition: dict[str, Any]) -> tuple[LoadedTexts, Search]:
        whole, name = self._whole(), json.dumps(condition, sort_keys=True)
        if (known := self._open.get(name)) is None or known[0] is not whole:
            if not isinstance(whole, LoadedTexts):
                raise HttpError(503, f"key: its filter needs texts in the bundle, found them in S3 Vectors; {ASK}")
            try:
                view = whole.view(condition)
            except FilterError as error:
                raise HttpError(503, f"key: its filter does not fit this bundle; {ASK}") from error
            known = whole, view, make_search(view, self._executor)
            # drop the views of a bundle that was replaced
            kept = [each for each in self._open.items() if each[1][0] is whole][1 - MOST_VIEWS :]
            self._open = {**dict(kept), name: known}
        return known[1:]


class StoredKeys:
    """Keys in a secret of AWS Secrets Manager or a parameter of AWS Systems Manager, read again each minute."""

    def __init__(self, settings: Settings, logger: Log, environment: Mapping[str, str] = os.environ) -> None:
        """Read the keys. Raises SettingsError if that fails."""
        self._arn, self._others, self._logger = settings.api_keys_arn, settings.api_keys, logger
        self._environment = environment
        self._keys, self._read_at = self._read(), monotonic()

    def get(self) -> Sequence[ApiKey]:
        """Return the keys, including those of the settings. If reading them again fails, keep the keys read before."""
        if monotonic() - self._read_at >= SECONDS_KEPT:
            self._read_at = monotonic()
            try:
                self._keys = self._read()
            except SettingsError:
                self._logger.exception("API keys were not read", extra={})
        return self._keys

    def _read(self) -> Sequence[ApiKey]:
        content = self._content(self._arn)
        if content.startswith("arn:"):  # the parameter of the stack can contain the ARN of ApiKeysArn
            content = self._content(content)
        return *self._others, *(read_hashes(f"API_KEYS_ARN: {self._arn}", content) if content.strip() else ())

    def _content(self, arn: str) -> str:
        from semsearch.aws.requests import CredentialsError, Service

        found = re.match(r"arn:(aws[\w-]*):(secretsmanager|ssm):([a-z0-9-]+):\d{12}:", arn)
        if found is None:
            expected = "expected the ARN of a secret in Secrets Manager or of a parameter in Systems Manager"
            raise SettingsError(f"API_KEYS_ARN: {arn!r}, {expected}; copy it from there")
        partition, service, region = found.groups()
        target, field, path = STORES[service]
        suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
        address = f"https://{service}.{region}.{suffix}"
        body = json.dumps({field: arn} | ({"WithDecryption": True} if service == "ssm" else {})).encode()
        headers = {"content-type": "application/x-amz-json-1.1", "x-amz-target": target}
        try:
            store = Service(service, region, address, STORE_TIMEOUT, self._environment)
            with store.request("POST", "/", headers, body) as reply:
                content = json.loads(reply.read())
            for name in path:
                content = content[name]
        except (CredentialsError, OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            # the reply can hold the secret, so the error does not show it
            advice = "check the ARN, and that the role may read it"
            raise SettingsError(f"API_KEYS_ARN: {arn} was not read ({type(error).__name__}); {advice}") from error
        return str(content)


def check_listener(address: str, settings: Settings, is_open: bool) -> None:
    """Raise SettingsError if other machines could send requests to this IP address without a key, unless is_open."""
    if not (settings.api_keys or settings.api_keys_arn or is_open or ip_address(address).is_loopback):
        advice = "set API_KEYS, or allow it with --open"
        found = "other machines could send requests, and there are no API keys"
        raise SettingsError(f"--host {address}: {found}; {advice}")


def describe_keys(document: dict[str, Any]) -> None:
    """Declare in an OpenAPI document which operations need a key."""
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
