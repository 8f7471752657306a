"""POST /predict: the embeddings of one text or of several."""

from typing import Annotated, Literal

import numpy as np
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, Discriminator, Field, Tag

from function.errors import REFUSED, error_reply, union_tag
from function.execution import Execution
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, refuse_characters
from function.settings import Settings
from function.telemetry import stopwatch_of

TEXT, TEXTS = union_tag("text"), union_tag("texts")
DECIMALS = 9  # as far as a float32 of this size goes


def _form(value: object) -> str:
    return TEXTS if isinstance(value, list) else TEXT


class PredictReply(BaseModel):
    """Unit embeddings in the order of the texts. `truncated`: a text was longer than the model reads."""

    embeddings: list[list[float]]
    truncated: list[bool]


def add_embeddings(app: FastAPI, settings: Settings, execution: Execution) -> None:
    """Add the route to the app, with the limits of these settings.

    Tokens are counted as the model reads them, with special tokens and after each text was cut to the model's length.
    More of them, more characters, or a reply of too many bytes, is a 413.
    """
    max_tokens, max_reply_bytes = settings.max_tokens, settings.max_reply_bytes
    texts_type = Annotated[list[RequestText], Field(min_length=1, max_length=settings.max_texts, fail_fast=True)]

    class PredictRequest(StrictRequest):
        """One text or several; `prompt_name` puts the model's prompt for that role before each."""

        text: Annotated[
            Annotated[RequestText, Tag(TEXT)] | Annotated[texts_type, Tag(TEXTS)],
            Discriminator(_form),
        ]
        prompt_name: Literal["query", "document"] | None = None

    @app.post(
        "/predict",
        response_model=PredictReply,
        responses=REFUSED,
        summary="Embeddings of one or several texts",
        description=f"At most {settings.max_texts} texts; more than {settings.max_characters} characters together, or "
        f"than {max_tokens} tokens with special tokens, get a 413.",
    )
    async def predict(body: PredictRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        texts = [body.text] if isinstance(body.text, str) else body.text
        if refusal := refuse_characters(texts, settings.max_characters):
            return refusal
        tokens = await execution.tokenize(texts, role=body.prompt_name or "")
        if (count := sum(len(one.ids) for one in tokens)) > max_tokens:
            message = f"text: {count} tokens in {len(texts)} texts, at most {max_tokens}; send fewer or shorter texts"
            return error_reply(413, message)
        embeddings = await execution.embed(tokens)
        stopwatch.lap("embed")
        rounded = np.round(embeddings.astype(np.float64), DECIMALS).tolist()
        reply = json_reply({"embeddings": rounded, "truncated": [one.is_truncated for one in tokens]})
        if found := bytes_beyond(reply, max_reply_bytes):
            message = f"text: the reply to {len(texts)} texts is {found} bytes, at most {max_reply_bytes}; send fewer"
            reply = error_reply(413, message)
        stopwatch.lap("reply")
        return reply
