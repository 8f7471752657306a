"""From texts to embeddings within the limits of one request: shared by all routes that return embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import HTTPException, Response

from function.engine.embedder import Embedder, TokenIds
from function.engine.quantization import Embeddings
from function.execution import Execution
from function.routes.replies import bytes_beyond, text_reply
from function.routes.texts import refuse_characters
from function.settings import Settings
from function.telemetry import Stopwatch


@dataclass(frozen=True, slots=True)
class TextEmbedding:
    """The steps from texts to a reply. A limit that is passed raises HTTPException with status 413, naming `field`.

    However many texts a request has, the model gets them in batches of its own size (Embedder.embed).
    """

    embedder: Embedder
    execution: Execution
    settings: Settings

    async def tokenize(self, texts: Sequence[str], field: str, role: str = "") -> list[TokenIds]:
        """Return the tokens of each text, with the model's prompt for that role. Limits the characters."""
        refuse_characters(texts, self.settings, field)
        return await self.execution.tokenize(texts, role=role)

    async def embed(self, tokens: Sequence[TokenIds], field: str, stopwatch: Stopwatch) -> Embeddings:
        """Return the unit embeddings, (n, dim) float32. Limits the tokens, which decide how long it takes."""
        most = self.settings.max_tokens
        if (count := sum(len(one.ids) for one in tokens)) > most:
            found = f"{count} tokens in {len(tokens)} text{'s'[: len(tokens) > 1]}"
            raise HTTPException(413, f"{field}: {found}, at most {most}; send fewer or shorter texts")
        embeddings = await self.execution.embed(tokens)
        stopwatch.lap("embed")
        return embeddings

    def reply(self, json: str, texts: int, field: str, stopwatch: Stopwatch) -> Response:
        """Return JSON as the reply to this many texts. Limits the bytes."""
        reply = text_reply(json)
        most = self.settings.max_reply_bytes
        if found := bytes_beyond(reply, most):
            message = f"{field}: the reply to {texts} texts is {found} bytes, at most {most}; send fewer"
            raise HTTPException(413, message)
        stopwatch.lap("reply")
        return reply
