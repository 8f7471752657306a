"""POST /mcp: the corpus as a tool for agents, over the Model Context Protocol. Imported when first asked.

One request is answered by itself, with plain JSON, without sessions and streams: in Lambda the next request may reach
another process. Two eras of the protocol are spoken. In the revision 2026-07-28 each request says everything, in its
`_meta` and in headers; the revisions before it begin with `initialize`, which leaves nothing behind here.
Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http and the same page of
2025-11-25. Left out, because a server may: streams (GET), sessions (DELETE), and lists of messages, which the revision
2025-06-18 has removed.
"""

from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import from_json
from starlette.datastructures import Headers

from semsearch.app.mcp.tools import NO_INSTRUCTIONS, Object, Tools, failed, text_tools
from semsearch.app.routes.error_replies import ERROR_REPLIES, Replies, error_replies
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch, stopwatch_of
from semsearch.search.reply import json_bytes
from semsearch.search.request import CHARACTERS_PER_NAME, describe_errors
from semsearch.search.request_values import echo, whole_number
from semsearch.version import VERSION

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18")  # the first is offered to a client that asks for another one
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022
STATUSES = {METHOD_NOT_FOUND: 404}  # HTTP status of errors in the modern revision; the others are 400
CACHED: dict[str, int | str] = {"ttlMs": 300_000, "cacheScope": "private"}  # the tool changes with a new bundle only
CACHED_METADATA = "public, max-age=300"
META = "io.modelcontextprotocol/"
UNREAD = f"Search documents, whose index is being made. {NO_INSTRUCTIONS}"
OAUTH_METADATA = "/.well-known/oauth-protected-resource"
ISSUER_VARIABLE = "jwtIssuer"  # the variable of an API Gateway's stage that names the issuer of tokens
LOCAL = {"localhost", "127.0.0.1", "::1"}


RpcId = int | str


class RpcError(ValueError):
    """A message that cannot be answered, by its code in JSON-RPC or MCP. `id` is set if the message is not valid."""

    def __init__(self, code: int, message: str, data: Object | None = None, id: RpcId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.id = id

    def answer(self, id: RpcId | None) -> Object:
        """Return the answer to the request with this id, None if it has none."""
        content: Object = {"code": self.code, "message": str(self)}
        content |= {} if self.data is None else {"data": self.data}
        return {"jsonrpc": "2.0", "id": id, "error": content}


class RpcMessage(BaseModel):
    """A request or a notification, which has no `id`. Clients send no answers, because nothing is asked of them."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    jsonrpc: Literal["2.0"]
    method: Annotated[str, Field(max_length=CHARACTERS_PER_NAME)]
    id: Annotated[int, BeforeValidator(whole_number)] | Annotated[str, Field(max_length=CHARACTERS_PER_NAME)] = ""
    params: Object = {}

    def is_notification(self) -> bool:
        """Return whether no answer is expected."""
        return "id" not in self.model_fields_set


ANSWER: dict[str, Any] = {
    "type": "object",
    "required": ["jsonrpc", "id"],
    "properties": {
        "jsonrpc": {"type": "string", "const": "2.0"},
        "id": {"type": ["string", "integer", "null"]},
        "result": {"type": "object"},
        "error": {"type": "object"},
    },
}
FORBIDDEN = error_replies({403: "the origin of a web page that may not ask"})
ANSWERED: Replies = {
    200: {"description": "a result or an error", "content": {"application/json": {"schema": ANSWER}}},
    202: {"description": "a notification, which has no answer"},
    400: {"description": "not a message", "content": {"application/json": {"schema": ANSWER}}},
    404: {"description": "no such method", "content": {"application/json": {"schema": ANSWER}}},
}


def add_mcp(app: FastAPI, tools: Tools, settings: Settings) -> None:
    """Add the route to the app. With `?tools=corpus`, the corpus's own tool is the only one."""

    @app.post(
        "/mcp",
        responses=ERROR_REPLIES | FORBIDDEN | ANSWERED,
        summary="The search as a tool, in the Model Context Protocol",
        tags=["search"],
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": RpcMessage.model_json_schema()}},
            }
        },
    )
    async def mcp(request: Request) -> Response:
        _check_origin(request.headers.get("origin"), settings)
        wanted, body = request.query_params.get("tools"), await request.body()
        found, status = await respond(body, tools, stopwatch_of(request), request.headers, wanted)
        if found is None:
            return Response(status_code=status)
        return Response(json_bytes(found), status, media_type="application/json")

    @app.get(OAUTH_METADATA, include_in_schema=False)
    @app.get(f"{OAUTH_METADATA}/mcp", include_in_schema=False)
    async def metadata(request: Request) -> Response:
        """Name the issuer of tokens (RFC 9728). Nothing of the reply is the caller's: caches may keep it."""
        event = request.scope.get("aws.event") or {}
        issuer = (event.get("stageVariables") or {}).get(ISSUER_VARIABLE)
        domain = (event.get("requestContext") or {}).get("domainName")
        if not (issuer and domain):
            raise HTTPException(404)  # as for any path that there is not
        place = settings.api_base_path.rstrip("/") + request.url.path.removeprefix(OAUTH_METADATA)
        found = {
            "resource": f"https://{domain}{place}",
            "authorization_servers": [issuer],
            "bearer_methods_supported": ["header"],
        }
        return Response(json_bytes(found), media_type="application/json", headers={"cache-control": CACHED_METADATA})


async def respond(
    body: bytes, tools: Tools | str, stopwatch: Stopwatch, headers: Headers | None = None, wanted: str | None = None
) -> tuple[Object | None, int]:
    """Return the answer to the message in a body, and its HTTP status. The arguments are those of `answer`."""
    try:
        message = read_message(body)
    except RpcError as error:
        return error.answer(error.id), 400
    return await answer(message, tools, stopwatch, headers, wanted)


async def answer(
    message: RpcMessage,
    tools: Tools | str,
    stopwatch: Stopwatch,
    headers: Headers | None = None,
    wanted: str | None = None,
) -> tuple[Object | None, int]:
    """Return the answer to a message, which is None for a notification, and its HTTP status.

    tools is a string while the texts are being read: it says why they cannot be searched. headers is None for a
    transport that has none and that can tell its client of other tools. wanted is the value of `?tools=`.
    """
    is_modern: bool | None = None  # not known yet
    try:
        is_modern = _check_version(message, headers)
        stopwatch.lap("parse")
        if message.is_notification():
            return None, 202
        result = await _result_of(message, tools, is_modern, stopwatch, wanted, can_notify=headers is None)
        stopwatch.lap("reply")
        return {"jsonrpc": "2.0", "id": message.id, "result": result}, 200
    except RpcError as error:
        status = 200  # each message of the handshake era has it
        if is_modern is not False:
            status = STATUSES.get(error.code, 400)
        return error.answer(None if message.is_notification() else message.id), status


async def _result_of(
    message: RpcMessage, tools: Tools | str, is_modern: bool, stopwatch: Stopwatch, wanted: str | None, can_notify: bool
) -> Object:
    """Return the result of a method. Raises RpcError if there is no such method or its parameters are wrong."""
    if wanted not in (None, "corpus"):
        raise RpcError(INVALID_PARAMS, f"?tools: found {echo(wanted)}, expected corpus; leave it out for all tools")
    params, alone = message.params, wanted is not None
    service = "semsearch" if isinstance(tools, str) else tools.settings.powertools_service_name
    server = {"name": service, "version": VERSION}
    modern: Object = {}
    if is_modern:
        modern = {"resultType": "complete", "_meta": {f"{META}serverInfo": server}}
    cached = modern | CACHED if is_modern else {}
    match message.method:
        case "tools/list":
            if isinstance(tools, str):
                return {"tools": text_tools(UNREAD)} | cached
            return {"tools": await tools.definitions(is_corpus_alone=alone)} | cached
        case "tools/call":
            if isinstance(tools, str):
                return failed(tools) | modern
            name, arguments = params.get("name"), params.get("arguments") or {}
            if name not in (names := tools.names(is_corpus_alone=alone)):
                raise RpcError(INVALID_PARAMS, f"params.name: found {echo(name)}, expected one of {names}")
            if not isinstance(arguments, dict):
                raise RpcError(INVALID_PARAMS, f"params.arguments: expected an object, found {echo(arguments)}")
            return await tools.call(str(name), arguments, stopwatch) | modern
        case "server/discover" | "initialize" if is_modern == (message.method == "server/discover"):
            about: Object = {"capabilities": {"tools": {"listChanged": True} if can_notify else {}}}
            if isinstance(tools, str):
                about["instructions"] = UNREAD
            else:
                about["instructions"] = await tools.describe()
            if is_modern:
                return {"supportedVersions": [MODERN, *LEGACY]} | about | cached
            asked = params.get("protocolVersion")
            return {"protocolVersion": asked if asked in LEGACY else LEGACY[0], "serverInfo": server} | about
        case "ping" if not is_modern:
            return {}
    raise RpcError(METHOD_NOT_FOUND, f"method: found {echo(message.method)}, expected tools/list or tools/call")


def _check_origin(origin: str | None, settings: Settings) -> None:
    """Raise HTTPException with status 403 for a web page's request that did not come from this machine.

    A page may lead a browser to a server on the same machine by another name (DNS rebinding), and then its origin is
    the only sign of it.
    """
    if origin is None or origin in settings.mcp_origins or "*" in settings.mcp_origins:
        return
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        host = None
    if host not in LOCAL:
        message = f"origin: found {echo(origin)}, expected none or one of MCP_ORIGINS; add it to that setting"
        raise HTTPException(403, message)


def read_message(body: bytes) -> RpcMessage:
    """Return the message in a body. Raises RpcError if it is not one of JSON-RPC."""
    try:
        content = from_json(body, allow_inf_nan=False)  # unlike Python's reader, it refuses what could not be sent back
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"body: not readable: {error}; expected JSON") from None
    try:
        return RpcMessage.model_validate(content)
    except ValidationError as error:
        id = whole_number(content.get("id")) if isinstance(content, dict) else None
        if not isinstance(id, int | str) or isinstance(id, bool):
            id = None
        raise RpcError(INVALID_REQUEST, describe_errors(error.errors(), "message"), id=id) from None


def _check_version(message: RpcMessage, headers: Headers | None) -> bool:
    """Return whether a message is of the modern era. Raises RpcError if its version or its headers are wrong."""
    meta = message.params.get("_meta")
    if not isinstance(meta, dict):
        meta = {}
    stated, inside = headers and headers.get("mcp-protocol-version"), meta.get(f"{META}protocolVersion")
    if message.method == "initialize" and inside is None:
        return False  # it negotiates the version in its params
    if headers is not None and stated is not None and inside is not None:
        _check_header(headers, "mcp-protocol-version", inside)
    for version in (stated, inside):
        if version not in (None, MODERN, *LEGACY):
            data = {"supported": [MODERN, *LEGACY], "requested": version}
            raise RpcError(UNSUPPORTED_VERSION, f"unsupported protocol version {echo(version)}", data)
    is_modern = MODERN in (stated, inside) or message.method == "server/discover"
    if not is_modern or message.is_notification():
        return is_modern  # no rule says which headers a notification has
    if inside is None or not isinstance(meta.get(f"{META}clientCapabilities"), dict):
        wanted = f"{META}protocolVersion and {META}clientCapabilities"
        raise RpcError(INVALID_PARAMS, f"params._meta: expected {wanted}")
    if headers is None:
        return True
    expected = {"mcp-protocol-version": inside, "mcp-method": message.method}
    if message.method == "tools/call":
        expected["mcp-name"] = message.params.get("name")
    for name, value in expected.items():
        _check_header(headers, name, value)
    return True


def _check_header(headers: Headers, name: str, value: Any) -> None:
    """Raise RpcError if a header has another value than the message."""
    header = headers.get(name)
    if header != value:
        raise RpcError(HEADER_MISMATCH, f"header {name}: found {echo(header)}, but the message has {echo(value)}")
