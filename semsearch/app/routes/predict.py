"""POST /predict: the embeddings of one text or of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from semsearch.app.errors import REFUSED
from semsearch.app.http import HttpError
from semsearch.app.routes.direct import DirectRoute
from semsearch.app.routes.replies import bytes_per_text, embedding_texts, refuse_bytes
from semsearch.app.routes.texts import as_list, describe_limits, refuse_texts, refuse_tokens
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch
from semsearch.engine.embedder import Embedder, TokenIds, keep_dimensions
from semsearch.engine.quantization import Embeddings
from semsearch.search.executor import Executor
from semsearch.search.reply import json_text

if TYPE_CHECKING:
    from semsearch.app.routes.body_models import PredictRequest

FEW_VALUES = 10_000  # values of embeddings that are written in about a millisecond


@dataclass(frozen=True, slots=True)
class TextEmbedding:
    """The steps from texts to a reply. A limit that is passed raises HttpError, naming `field`.

    However many texts a request has, the model gets them in batches of its own size (Embedder.embed).
    """

    embedder: Embedder
    executor: Executor
    settings: Settings

    def refuse_embeddings(
        self, texts: Sequence[str], field: str, dimensions: int | None = None, *, is_base64: bool = False
    ) -> None:
        """Raise HttpError with status 413 if the embeddings of texts would not fit into a reply."""
        dim = self.embedder.model.dim
        most = self.settings.max_reply_bytes // bytes_per_text(min(dimensions or dim, dim), is_base64=is_base64)
        if len(texts) > most:
            found = f"{field}: the embeddings of {len(texts)} texts do not fit into a reply"
            raise HttpError(413, f"{found}, expected at most {most}; send fewer")

    async def tokenize(self, texts: Sequence[str], field: str, role: str = "") -> list[TokenIds]:
        """Return the tokens of each text, with the model's prompt for that role. Limits the texts and characters.

        Raises HttpError with status 422 for documents, if the bundle has a model for queries alone.
        """
        if role == "document" and self.embedder.model.documents:
            message = "prompt_name: found document, expected query: the model for documents is not in this bundle"
            raise HttpError(422, message)
        refuse_texts(texts, self.settings, field)
        return await self.executor.tokenize(texts, role=role)

    async def embed(
        self, tokens: Sequence[TokenIds], field: str, stopwatch: Stopwatch, dimensions: int | None = None
    ) -> Embeddings:
        """Return the unit embeddings, (n, dim) float32, or of their first `dimensions` values.

        Limits the tokens, which decide how long it takes.
        """
        if dimensions is not None and dimensions > (most := self.embedder.model.dim):
            raise HttpError(422, f"dimensions: found {dimensions}, expected at most the model's {most}; ask for fewer")
        refuse_tokens(sum(len(one.ids) for one in tokens), len(tokens), self.settings, field)
        embeddings = await self.executor.embed(tokens)
        stopwatch.lap("embed")
        return keep_dimensions(embeddings, dimensions)

    async def write(self, embeddings: Embeddings) -> list[str]:
        """Return each row of embeddings (n, dim) float32 as a list in JSON."""
        if embeddings.size <= FEW_VALUES:
            return embedding_texts(embeddings)
        return await self.executor.run(lambda: embedding_texts(embeddings))

    def reply(self, json: str, texts: int, field: str, stopwatch: Stopwatch) -> bytes:
        """Return JSON as the body of the reply to this many texts. Limits the bytes."""
        body = json.encode()
        refuse_bytes(body, self.settings.max_reply_bytes, f"{field}: the reply to {texts} texts", "send fewer")
        stopwatch.lap("reply")
        return body


def predict_route(embedding: TextEmbedding) -> DirectRoute:
    """Return the route.

    Tokens are counted as the model reads them, with special tokens and after each text was cut to the model's length.
    """

    async def predict(body: "PredictRequest", stopwatch: Stopwatch) -> bytes:
        stopwatch.lap("parse")
        texts = as_list(body.text)
        embedding.refuse_embeddings(texts, "text")
        tokens = await embedding.tokenize(texts, "text", role=body.prompt_name or "")
        rows = await embedding.write(await embedding.embed(tokens, "text", stopwatch))
        truncated = json_text([one.is_truncated for one in tokens])
        reply = f'{{"embeddings":[{",".join(rows)}],"truncated":{truncated}}}'
        return embedding.reply(reply, len(texts), "text", stopwatch)

    return DirectRoute(
        "POST",
        "/predict",
        predict,
        summary="Embeddings of one or several texts",
        responses=REFUSED,
        tag="embeddings",
        description=describe_limits(embedding.settings),
    )
