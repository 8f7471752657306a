"""POST /predict: the embeddings of one text or of several."""

from typing import Annotated, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Discriminator, Field, Tag

from function.errors import REFUSED
from function.routes.embed_request import TextEmbedding
from function.routes.replies import json_text
from function.routes.texts import TEXT, TEXTS, RequestText, StrictRequest, describe_limits, text_or_texts
from function.settings import Settings
from function.telemetry import stopwatch_of


class PredictReply(BaseModel):
    """Unit embeddings in the order of the texts. `truncated`: a text was longer than the model reads."""

    embeddings: list[list[float]]
    truncated: list[bool]


def add_embeddings(app: FastAPI, embedding: TextEmbedding, settings: Settings) -> None:
    """Add the route to the app, with the limits of these settings.

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

    @app.post(
        "/predict",
        response_model=PredictReply,
        responses=REFUSED,
        summary="Embeddings of one or several texts",
        description=describe_limits(settings),
    )
    async def predict(body: PredictRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        texts = [body.text] if isinstance(body.text, str) else body.text
        tokens = await embedding.tokenize(texts, "text", role=body.prompt_name or "")
        rows = await embedding.write(await embedding.embed(tokens, "text", stopwatch))
        truncated = json_text([one.is_truncated for one in tokens])
        return embedding.reply(
            f'{{"embeddings":[{",".join(rows)}],"truncated":{truncated}}}', len(texts), "text", stopwatch
        )
