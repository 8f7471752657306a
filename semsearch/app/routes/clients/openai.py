"""POST /v1/embeddings and GET /v1/models: what clients of OpenAI's embeddings request. Imported when first requested.

The requests and replies are those of https://developers.openai.com/api/reference/resources/embeddings, with three
differences. No token ids are taken: those of OpenAI's tokenizers mean other words to this model. A text of too many
tokens is truncated, and `usage` counts such texts. Any `model` is taken, because many clients can only send the name of
one of OpenAI's; the reply names the model that answered.
"""

from base64 import b64encode
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from fastapi import FastAPI, Path, Request, Response
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from semsearch.app.http import HttpError
from semsearch.app.routes.error_replies import CLIENT_FAILED, CLIENT_REFUSED, describe_replies
from semsearch.app.routes.fields import ClientRequest, ClientText, Count, ModelName, OneOrSeveral
from semsearch.app.routes.predict import TextEmbedding
from semsearch.app.routes.replies import json_reply, text_reply
from semsearch.app.routes.texts import as_list, describe_limits
from semsearch.app.telemetry import stopwatch_of
from semsearch.engine.quantization import Embeddings
from semsearch.search.query import CHARACTERS_PER_TEXT
from semsearch.search.reply import json_text
from semsearch.search.request_values import echo

if TYPE_CHECKING:
    from semsearch.app.routes.reply_types import ModelReply, ModelsReply, Usage

INPUT = "input"  # the field whose limits are passed


def _refuse_token_ids(value: object) -> object:
    if isinstance(value, list) and value and isinstance(value[0], int | list):
        expected = "expected texts, because token ids of OpenAI's models mean other words here"
        raise PydanticCustomError("token_ids", f"{expected}; with LangChain, set check_embedding_ctx_length=False")
    return value


class EmbeddingsRequest(ClientRequest):
    """A text or several.

    `dimensions` keeps the first values of each embedding and makes it a unit vector again. Only models that were
    trained for that (Matryoshka) stay good.
    """

    input: Annotated[OneOrSeveral[ClientText], BeforeValidator(_refuse_token_ids)]
    model: ModelName | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Count | None = None


def add_openai(app: FastAPI, embedding: TextEmbedding) -> None:
    """Add the routes to the app."""
    name = embedding.embedder.model.name
    model: ModelReply = {"id": name, "object": "model", "created": 0, "owned_by": "sentence-transformers"}

    @app.post(
        "/v1/embeddings",
        responses=CLIENT_REFUSED,
        summary="Embeddings, as OpenAI returns them",
        tags=["embeddings"],
        description=describe_limits(embedding.settings),
    )
    async def embeddings(body: EmbeddingsRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        texts, is_base64 = as_list(body.input), body.encoding_format == "base64"
        embedding.refuse_embeddings(texts, INPUT, body.dimensions, is_base64=is_base64)
        tokens = await embedding.tokenize(texts, INPUT)
        found = await embedding.embed(tokens, INPUT, stopwatch, body.dimensions)
        if is_base64:
            rows = base64_texts(found)
        else:
            rows = await embedding.write(found)
        data = [f'{{"object":"embedding","index":{index},"embedding":{row}}}' for index, row in enumerate(rows)]
        count = sum(len(one.ids) for one in tokens)
        truncated = sum(one.is_truncated for one in tokens)
        usage: Usage = {"prompt_tokens": count, "total_tokens": count, "truncated_texts": truncated}
        rest = json_text({"model": name, "usage": usage})
        reply = f'{{"object":"list","data":[{",".join(data)}],{rest[1:]}'
        return text_reply(embedding.reply(reply, len(tokens), INPUT, stopwatch))

    @app.get("/v1/models", responses=CLIENT_FAILED, summary="The model, as OpenAI lists its own", tags=["status"])
    async def models() -> Response:
        content: ModelsReply = {"object": "list", "data": [model]}
        return json_reply(content)

    @app.get(
        "/v1/models/{name:path}",
        name="model",
        responses=CLIENT_FAILED | describe_replies({400: "bad request", 404: "no such model"}),
        summary="The model, if this is its name",
        tags=["status"],
    )
    async def one_model(name: Annotated[str, Path(max_length=CHARACTERS_PER_TEXT)]) -> Response:
        if name != model["id"]:
            raise HttpError(404, f"model: found {echo(name)}, expected {model['id']!r}")
        return json_reply(model)


def base64_texts(embeddings: Embeddings) -> list[str]:
    """Return each row of embeddings (n, dim) as a string in JSON: the base64 of its little-endian float32."""
    return [f'"{b64encode(row.tobytes()).decode()}"' for row in np.ascontiguousarray(embeddings, "<f4")]
