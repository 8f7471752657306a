"""From texts to embeddings within the limits of one request: shared by all routes that return embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.engine.embedder import Embedder, TokenIds
from function.engine.quantization import Embeddings
from function.executor import Executor
from function.http import HttpError
from function.routes.replies import bytes_beyond, embedding_texts, text_reply
from function.routes.texts import refuse_characters, refuse_tokens
from function.settings import Settings
from function.telemetry import Stopwatch

if TYPE_CHECKING:
    from fastapi import Response

FEW_VALUES = 10_000  # values of embeddings that are written in about a millisecond


@dataclass(frozen=True, slots=True)
class TextEmbedding:
    """The steps from texts to a reply. A limit that is passed raises HttpError with status 413, naming `field`.

    However many texts a request has, the model gets them in batches of its own size (Embedder.embed).
    """

    embedder: Embedder
    executor: Executor
    settings: Settings

    async def tokenize(self, texts: Sequence[str], field: str, role: str = "") -> list[TokenIds]:
        """Return the tokens of each text, with the model's prompt for that role. Limits the characters.

        Raises HttpError with status 422 for documents, if the bundle has a model for queries alone.
        """
        if role == "document" and self.embedder.model.documents:
            message = "prompt_name: found document, expected query: the model for documents is not in this bundle"
            raise HttpError(422, message)
        refuse_characters(texts, self.settings, field)
        return await self.executor.tokenize(texts, role=role)

    async def embed(self, tokens: Sequence[TokenIds], field: str, stopwatch: Stopwatch) -> Embeddings:
        """Return the unit embeddings, (n, dim) float32. Limits the tokens, which decide how long it takes."""
        refuse_tokens(sum(len(one.ids) for one in tokens), len(tokens), self.settings, field)
        embeddings = await self.executor.embed(tokens)
        stopwatch.lap("embed")
        return embeddings

    async def write(self, embeddings: Embeddings) -> list[str]:
        """Return each row of embeddings (n, dim) float32 as a list in JSON."""
        if embeddings.size <= FEW_VALUES:
            return embedding_texts(embeddings)
        return await self.executor.run(lambda: embedding_texts(embeddings), is_long=True)

    def reply(self, json: str, texts: int, field: str, stopwatch: Stopwatch) -> "Response":
        """Return JSON as the reply of a route of FastAPI to this many texts. Limits the bytes."""
        return text_reply(self.body(json, texts, field, stopwatch))

    def body(self, json: str, texts: int, field: str, stopwatch: Stopwatch) -> bytes:
        """Return JSON as the body of the reply to this many texts. Limits the bytes."""
        body = json.encode()
        most = self.settings.max_reply_bytes
        if found := bytes_beyond(body, most):
            message = f"{field}: the reply to {texts} texts is {found} bytes, at most {most}; send fewer"
            raise HttpError(413, message)
        stopwatch.lap("reply")
        return body
