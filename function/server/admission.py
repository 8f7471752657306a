"""Refuse requests that need a model while the queue is full, before their bodies are parsed, and delay the replies."""

from asyncio import sleep

from starlette.datastructures import Headers

from function.errors import error_reply
from function.http import ASGIApp, DisconnectError, Message, Receive, Scope, Send, replay
from function.server.batching import BatchingExecutor

SEARCH = "/similar"
# paths whose POST embeds texts or scores pairs
MODEL_PATHS = (
    *(SEARCH, "/predict", "/v1/embeddings", "/embed", "/similarity", "/"),
    *("/rerank", "/v1/rerank", "/v2/rerank"),
)
WITHOUT_MODEL = b"keyword"  # part of the body of a search that needs no model
BYTES_PER_TOKEN = 8  # estimate; English in JSON has about five, so few requests are overestimated
LONGEST_WAIT = 4.0  # seconds; some clients give up after five
MOST_WAITING = 1_000  # replies with 429 that wait at the same time


class Admission:
    """Refuses requests that need a model with 429 while the queue is full, and delays each 429 by its Retry-After.

    Some callers try again at once, and each of their requests takes processor time from the model. A 429 waits no
    longer than LONGEST_WAIT. It is sent at once if MOST_WAITING others wait: to close the connection instead would take
    twice the time, because the caller opens another one.
    """

    def __init__(self, app: ASGIApp, executor: BatchingExecutor) -> None:
        self._app = app
        self._executor = executor
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises DisconnectError if the caller leaves before the body is whole."""
        is_for_model = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] in MODEL_PATHS
        if not is_for_model or scope.get("refusal"):
            await self._app(scope, receive, send)
            return
        body_bytes = int(Headers(scope=scope).get("content-length", "0"))  # 0 if it is sent in chunks
        tokens = 1 + body_bytes // BYTES_PER_TOKEN
        is_search = scope["path"] == SEARCH
        if is_search:
            tokens = min(tokens, self._executor.longest_text)  # it has one text
        refusal = self._executor.refusal(tokens)
        if refusal is not None and is_search:
            message = await receive()
            receive = replay(message, receive)
            if message.get("more_body", False) or WITHOUT_MODEL in message.get("body", b""):
                refusal = None  # if it needs the model after all, `embed` refuses it
        if refusal is None:
            with self._executor.announced(tokens):
                await self._app(scope, receive, self._delay_refusal(send))
            return
        # the body is not kept; once it is whole, CancelOnDisconnect cancels the wait of a caller that hangs up
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectError
            if not message.get("more_body", False):
                break
        reply = error_reply(refusal.status_code, refusal.detail, scope["path"])
        reply.headers.update(refusal.headers)
        await reply(scope, receive, self._delay_refusal(send))

    def _delay_refusal(self, send: Send) -> Send:
        """Return a `send` that waits before it sends a 429."""

        async def delayed_send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 429 and self._waiting < MOST_WAITING:
                seconds = int(Headers(raw=message["headers"]).get("retry-after", "1"))
                self._waiting += 1
                try:
                    await sleep(min(seconds, LONGEST_WAIT))
                finally:
                    self._waiting -= 1
            await send(message)

        return delayed_send
