"""POST /embed, /similarity, /tokenize and /, for clients of text-embeddings-inference. Imported when first asked.

The requests and replies are those of https://huggingface.github.io/text-embeddings-inference. POST / takes the requests
of /embed and of /similarity, because huggingface_hub's InferenceClient sends both there when it has a server's address.
"""

from typing import Annotated, Literal

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, RootModel, Tag
from pydantic_core import PydanticCustomError

from function.engine.dimensions import keep_dimensions
from function.engine.embedder import TokenIds
from function.engine.token_spans import spell
from function.errors import REFUSED, union_tag
from function.routes.embed_request import TextEmbedding
from function.routes.replies import json_text
from function.routes.texts import (
    TEXT,
    TEXTS,
    ClientRequest,
    ClientText,
    describe_limits,
    refuse_characters,
    refuse_tokens,
    text_or_texts,
    whole_number,
)
from function.settings import Settings
from function.telemetry import Stopwatch, stopwatch_of

EMBED, SIMILARITY = union_tag("embed"), union_tag("similarity")
INPUTS = "inputs"  # the field whose limits are passed
TOKENS_AT_ONCE = 5_000  # tokens that are written as JSON in some milliseconds, in which the writer holds the GIL

Prompt = Literal["query", "document"] | None
Truncation = Literal["right"] | None  # from the end; the tokenizer can cut off no beginning


def _task(value: object) -> str:
    inputs = value.get(INPUTS) if isinstance(value, dict) else getattr(value, INPUTS, None)
    return EMBED if isinstance(inputs, str | list) or inputs is None else SIMILARITY


def _check_normalize(normalize: bool) -> bool:
    if normalize:
        return True
    raise PydanticCustomError("normalize", "expected true, because the model itself makes unit embeddings")


class EmbedReply(RootModel[list[list[float]]]):
    """Unit embeddings in the order of the texts."""


class SimilarityReply(RootModel[list[float]]):
    """The cosine of the source sentence and each sentence, -1 to 1."""


class Token(BaseModel):
    """A token: its id, and the characters `start` to `stop` of the text; a special token has none."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


class TokenizeReply(RootModel[list[list[Token]]]):
    """The tokens of each text."""


class SimilarityParameters(ClientRequest):
    """How the sentences of a comparison are read; see /embed."""

    truncate: bool | None = None
    truncation_direction: Truncation = None
    prompt_name: Prompt = None


def add_tei(app: FastAPI, embedding: TextEmbedding, settings: Settings) -> None:
    """Add the routes to the app, with the limits of these settings."""
    embedder = embedding.embedder
    most = settings.max_texts
    texts_type = Annotated[list[ClientText], Field(min_length=1, max_length=most, fail_fast=True)]
    inputs_type = Annotated[
        Annotated[ClientText, Tag(TEXT)] | Annotated[texts_type, Tag(TEXTS)],
        Discriminator(text_or_texts),
    ]

    class EmbedRequest(ClientRequest):
        """One text or several.

        `truncate`: false refuses a text of more tokens than the model reads, instead of cutting off its end.
        `normalize` can only be true: the model returns unit embeddings. `dimensions` keeps the first values of each
        embedding; only models that were trained for that (Matryoshka) stay good.
        """

        inputs: inputs_type
        truncate: bool | None = None
        truncation_direction: Truncation = None
        prompt_name: Prompt = None
        normalize: (
            Annotated[bool, AfterValidator(_check_normalize), Field(json_schema_extra={"const": True})] | None
        ) = None
        dimensions: Annotated[int, Field(ge=1, le=embedder.model.dim), BeforeValidator(whole_number)] | None = None

    class Sentences(ClientRequest):
        """A sentence, and those that it is compared with."""

        source_sentence: ClientText
        sentences: Annotated[list[ClientText], Field(min_length=1, max_length=max(1, most - 1), fail_fast=True)]

    class SimilarityRequest(ClientRequest):
        """A sentence, those that it is compared with, and how they are read."""

        inputs: Sentences
        parameters: SimilarityParameters | None = None

    class TokenizeRequest(ClientRequest):
        """One text or several, to be split into tokens."""

        inputs: inputs_type
        add_special_tokens: bool = True
        prompt_name: Prompt = None

    class AnyRequest(
        RootModel[
            Annotated[
                Annotated[EmbedRequest, Tag(EMBED)] | Annotated[SimilarityRequest, Tag(SIMILARITY)],
                Discriminator(_task),
            ]
        ]
    ):
        """A request to /embed or to /similarity."""

    async def tokens_of(texts: list[str], prompt: Prompt, truncate: bool | None) -> list[TokenIds]:
        """Return the tokens of each text. Raises HTTPException if one is too long and must not be cut."""
        tokens = await embedding.tokenize(texts, INPUTS, role=prompt or "")
        if truncate is False and any(one.is_truncated for one in tokens):
            place = next(place for place, one in enumerate(tokens) if one.is_truncated)
            found = (
                f"more tokens than the model reads, with truncate false, expected at most {embedder.model.max_tokens}"
            )
            raise HTTPException(422, f"{INPUTS}.{place}: {found}; shorten the text, or let it be truncated")
        return tokens

    async def embed(body: EmbedRequest, stopwatch: Stopwatch) -> Response:
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        tokens = await tokens_of(texts, body.prompt_name, body.truncate)
        found = keep_dimensions(await embedding.embed(tokens, INPUTS, stopwatch), body.dimensions)
        return embedding.reply(f"[{','.join(await embedding.write(found))}]", len(texts), INPUTS, stopwatch)

    async def similarity(body: SimilarityRequest, stopwatch: Stopwatch) -> Response:
        texts = [body.inputs.source_sentence, *body.inputs.sentences]
        parameters = body.parameters or SimilarityParameters()
        tokens = await tokens_of(texts, parameters.prompt_name, parameters.truncate)
        source, *others = await embedding.embed(tokens, INPUTS, stopwatch)
        cosines = [min(1.0, max(-1.0, float(other @ source))) for other in others]  # rounding can pass 1
        return embedding.reply(json_text(cosines), len(texts), INPUTS, stopwatch)

    def begin(request: Request) -> Stopwatch:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        return stopwatch

    described = describe_limits(settings)

    @app.post(
        "/embed",
        response_model=EmbedReply,
        responses=REFUSED,
        summary="Embeddings, as text-embeddings-inference returns them",
        description=described,
    )
    async def embed_route(body: EmbedRequest, request: Request) -> Response:
        return await embed(body, begin(request))

    @app.post(
        "/similarity",
        response_model=SimilarityReply,
        responses=REFUSED,
        summary="How alike a sentence is to others",
        description=described,
    )
    async def similarity_route(body: SimilarityRequest, request: Request) -> Response:
        return await similarity(body, begin(request))

    @app.post(
        "/",
        response_model=EmbedReply | SimilarityReply,
        responses=REFUSED,
        summary="The same as /embed or /similarity, by the form of inputs",
        description=described,
    )
    async def either_route(body: AnyRequest, request: Request) -> Response:
        if isinstance(body.root, EmbedRequest):
            return await embed(body.root, begin(request))
        return await similarity(body.root, begin(request))

    @app.post(
        "/tokenize",
        response_model=TokenizeReply,
        responses=REFUSED,
        summary="The tokens of one or several texts, all of them",
        description=described,
    )
    async def tokenize(body: TokenizeRequest, request: Request) -> Response:
        stopwatch = begin(request)
        texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
        refuse_characters(texts, settings, INPUTS)
        role = body.prompt_name or ""

        def spell_all() -> str:
            lists, count = [], 0
            for text in texts:
                tokens = spell(*embedder.encode(text, role), with_special=body.add_special_tokens)
                count += len(tokens)
                refuse_tokens(count, len(texts), settings, INPUTS)
                starts = range(0, len(tokens), TOKENS_AT_ONCE)
                parts = [json_text(tokens[start : start + TOKENS_AT_ONCE])[1:-1] for start in starts]
                lists.append(f"[{','.join(parts)}]")
            return f"[{','.join(lists)}]"

        spelled = await embedding.executor.run(spell_all, is_long=True)
        stopwatch.lap("tokenize")
        return embedding.reply(spelled, len(texts), INPUTS, stopwatch)
