"""POST /predict: the embeddings of one text or of several."""

from typing import Annotated, Literal

from pydantic import BaseModel, Discriminator, Field, Tag

from function.errors import REFUSED
from function.routes.direct import DirectRoute
from function.routes.embed_request import TextEmbedding
from function.routes.replies import json_text
from function.routes.texts import TEXT, TEXTS, RequestText, StrictRequest, describe_limits, text_or_texts
from function.settings import Settings
from function.telemetry import Stopwatch


class PredictReply(BaseModel):
    """Unit embeddings in the order of the texts. `truncated`: a text was longer than the model reads."""

    embeddings: list[list[float]]
    truncated: list[bool]


def predict_route(embedding: TextEmbedding, settings: Settings) -> DirectRoute:
    """Return the route, with the limits of these settings.

    Tokens are counted as the model reads them, with special tokens and after each text was cut to the model's length.
    """
    texts_type = Annotated[list[RequestText], Field(min_length=1, max_length=settings.max_texts, fail_fast=True)]

    class PredictRequest(StrictRequest):
        """One text or several; `prompt_name` puts the model's prompt for that role before each."""

        text: Annotated[
            Annotated[RequestText, Tag(TEXT)] | Annotated[texts_type, Tag(TEXTS)],
            Discriminator(text_or_texts),
        ]
        prompt_name: Literal["query", "document"] | None = None

    async def predict(body: PredictRequest, stopwatch: Stopwatch) -> bytes:
        stopwatch.lap("parse")
        texts = [body.text] if isinstance(body.text, str) else body.text
        tokens = await embedding.tokenize(texts, "text", role=body.prompt_name or "")
        rows = await embedding.write(await embedding.embed(tokens, "text", stopwatch))
        truncated = json_text([one.is_truncated for one in tokens])
        return embedding.body(
            f'{{"embeddings":[{",".join(rows)}],"truncated":{truncated}}}', len(texts), "text", stopwatch
        )

    return DirectRoute(
        "POST",
        "/predict",
        PredictRequest,
        predict,
        summary="Embeddings of one or several texts",
        responses=REFUSED,
        description=describe_limits(settings),
        reply_model=PredictReply,
    )
