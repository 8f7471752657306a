"""POST /v1/embeddings and GET /v1/models: what clients of OpenAI's embeddings ask for. Imported when first asked.

The requests and replies are those of https://developers.openai.com/api/reference/resources/embeddings. Any `model` is
taken, because many clients can only send the name of one of OpenAI's; the reply names the model that answered.
"""

from base64 import b64encode
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from function import errors
from function.engine.dimensions import keep_dimensions
from function.engine.embedder import TokenIds
from function.engine.quantization import Embeddings
from function.errors import Replies, echo, union_tag
from function.routes.embed_request import TextEmbedding
from function.routes.replies import json_reply, json_text
from function.routes.texts import TEXT, TEXTS, ClientRequest, ClientText, describe_limits, whole_number
from function.settings import CHARACTERS_PER_TEXT, Settings
from function.telemetry import stopwatch_of

IDS, ID_LISTS = union_tag("token ids"), union_tag("lists of token ids")
INPUT = "input"  # the field whose limits are passed


def _form(value: object) -> str:
    if not isinstance(value, list):
        return TEXT
    first = value[0] if value else None
    if isinstance(first, list):
        return ID_LISTS
    return IDS if isinstance(first, int | float) and not isinstance(first, bool) else TEXTS


class OpenAIError(BaseModel):
    """What was wrong; `param` is the field."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorReply(BaseModel):
    """An error as OpenAI's clients read it."""

    error: OpenAIError


class EmbeddingObject(BaseModel):
    """The unit embedding of one text: numbers, or their little-endian float32 in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """How many tokens the model read, special tokens included."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsReply(BaseModel):
    """Embeddings in the order of the input."""

    object: Literal["list"]
    data: list[EmbeddingObject]
    model: str
    usage: Usage


class Model(BaseModel):
    """A model that answers here."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(BaseModel):
    """All models that answer here: one."""

    object: Literal["list"]
    data: list[Model]


# the descriptions are those of other routes, because http's own differ from Python to Python
FAILED: Replies = {status: reply | {"model": OpenAIErrorReply} for status, reply in errors.FAILED.items()}
REFUSED: Replies = FAILED | {status: errors.REFUSED[status] | {"model": OpenAIErrorReply} for status in (400, 415, 429)}
NO_MODEL: Replies = FAILED | {404: {"model": OpenAIErrorReply, "description": "no such model"}}


def add_openai(app: FastAPI, embedding: TextEmbedding, settings: Settings) -> None:
    """Add the routes to the app, with the limits of these settings."""
    embedder = embedding.embedder
    model = {"id": embedder.model.name, "object": "model", "created": 0, "owned_by": "sentence-transformers"}
    most_id = embedder.vocabulary_size - 1

    def known(token: int) -> int:
        if 0 <= token <= most_id:
            return token
        raise PydanticCustomError(
            "token_id", f"expected an id of this model's tokenizer, 0 to {most_id}; send texts instead of token ids"
        )

    token_id = Annotated[
        int,
        BeforeValidator(whole_number),
        AfterValidator(known),
        Field(json_schema_extra={"minimum": 0, "maximum": most_id}),
    ]

    def all_known(ids: object, check_each: ValidatorFunctionWrapHandler) -> object:
        """Return ids that are right at once; to check each alone takes many times as long."""
        if isinstance(ids, list) and set(map(type, ids)) == {int} and min(ids) >= 0 and max(ids) <= most_id:
            return ids if len(ids) <= CHARACTERS_PER_TEXT else check_each(ids)
        return check_each(ids)

    texts_type = Annotated[list[ClientText], Field(min_length=1, max_length=settings.max_texts, fail_fast=True)]
    ids_type = Annotated[
        list[token_id],
        Field(min_length=1, max_length=CHARACTERS_PER_TEXT, fail_fast=True),
        WrapValidator(all_known),
    ]
    id_lists_type = Annotated[list[ids_type], Field(min_length=1, max_length=settings.max_texts, fail_fast=True)]

    class EmbeddingsRequest(ClientRequest):
        """A text, texts, token ids, or lists of token ids. The ids are those of this model's tokenizer.

        `dimensions` keeps the first values of each embedding and makes it a unit vector again. Only models that were
        trained for that (Matryoshka) stay good.
        """

        input: Annotated[
            Annotated[ClientText, Tag(TEXT)]
            | Annotated[texts_type, Tag(TEXTS)]
            | Annotated[ids_type, Tag(IDS)]
            | Annotated[id_lists_type, Tag(ID_LISTS)],
            Discriminator(_form),
        ]
        model: str | None = None
        encoding_format: Literal["float", "base64"] | None = None
        dimensions: Annotated[int, Field(ge=1, le=embedder.model.dim), BeforeValidator(whole_number)] | None = None
        user: str | None = None

    async def tokens_of(body: EmbeddingsRequest) -> list[TokenIds]:
        given: Any = body.input
        several = given if _form(given) in (TEXTS, ID_LISTS) else [given]
        if isinstance(several[0], str):
            return await embedding.tokenize(several, INPUT)
        return [embedder.complete(ids) for ids in several]

    @app.post(
        "/v1/embeddings",
        response_model=EmbeddingsReply,
        responses=REFUSED,
        summary="Embeddings, as OpenAI returns them",
        description=describe_limits(settings),
    )
    async def embeddings(body: EmbeddingsRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        tokens = await tokens_of(body)
        found = keep_dimensions(await embedding.embed(tokens, INPUT, stopwatch), body.dimensions)
        rows = base64_texts(found) if body.encoding_format == "base64" else await embedding.write(found)
        data = [f'{{"object":"embedding","index":{index},"embedding":{row}}}' for index, row in enumerate(rows)]
        count = sum(len(one.ids) for one in tokens)
        rest = json_text({"model": model["id"], "usage": {"prompt_tokens": count, "total_tokens": count}})
        return embedding.reply(f'{{"object":"list","data":[{",".join(data)}],{rest[1:]}', len(tokens), INPUT, stopwatch)

    @app.get("/v1/models", response_model=Models, responses=FAILED, summary="The model, as OpenAI lists its own")
    async def models() -> Response:
        return json_reply({"object": "list", "data": [model]})

    @app.get(
        "/v1/models/{name:path}",
        response_model=Model,
        responses=NO_MODEL,
        summary="The model, if this is its name",
    )
    async def one_model(name: str) -> Response:
        if name != model["id"]:
            raise HTTPException(404, f"model: found {echo(name)}, expected {model['id']!r}")
        return json_reply(model)


def base64_texts(embeddings: Embeddings) -> list[str]:
    """Return each row of embeddings (n, dim) as a string in JSON: the base64 of its little-endian float32."""
    return [f'"{b64encode(row.tobytes()).decode()}"' for row in np.ascontiguousarray(embeddings, "<f4")]
