"""POST /embed, /similarity, /tokenize and /, for clients of text-embeddings-inference. Imported when first requested.

The requests and replies are those of https://huggingface.github.io/text-embeddings-inference. POST / takes the requests
of /embed and of /similarity, because huggingface_hub's InferenceClient sends both there when it has a server's address.
"""

from functools import partial
from typing import Annotated, Literal

from fastapi import FastAPI, Request, Response
from pydantic import Discriminator, RootModel, Tag

from semsearch.app.errors import REFUSED
from semsearch.app.routes.error_replies import error_replies
from semsearch.app.routes.fields import ClientRequest, ClientText, Count, OneOrSeveral, Several
from semsearch.app.routes.predict import TextEmbedding
from semsearch.app.routes.replies import text_reply
from semsearch.app.routes.texts import as_list, describe_limits, refuse_texts, refuse_tokens, refuse_truncated
from semsearch.app.telemetry import stopwatch_of
from semsearch.engine.embedder import TokenIds
from semsearch.engine.tokenizer import spell
from semsearch.search.reply import json_text
from semsearch.search.request_values import union_tag

EMBED, SIMILARITY = union_tag("embed"), union_tag("similarity")
INPUTS = "inputs"  # the field whose limits are passed

Prompt = Literal["query", "document"] | None


class TruncationOptions(ClientRequest):
    """The prompt of texts, and whether those of more tokens than the model reads are refused; see EmbedRequest."""

    truncate: bool | None = None
    truncation_direction: Literal["right"] | None = None  # from the end; the tokenizer can cut off no beginning
    prompt_name: Prompt = None


class EmbedRequest(TruncationOptions):
    """One text or several.

    `truncate`: false refuses a text of more tokens than the model reads, instead of cutting off its end. `normalize`
    can only be true: the model returns unit embeddings. `dimensions` keeps the first values of each embedding; only
    models that were trained for that (Matryoshka) stay good.
    """

    inputs: OneOrSeveral[ClientText]
    normalize: Literal[True] | None = None
    dimensions: Count | None = None


class Sentences(ClientRequest):
    """A sentence, and those that it is compared with."""

    source_sentence: ClientText
    sentences: Several[ClientText]


class SimilarityRequest(ClientRequest):
    """A sentence, those that it is compared with, and how they are read."""

    inputs: Sentences
    parameters: TruncationOptions | None = None


class TokenizeRequest(ClientRequest):
    """One text or several, to be split into tokens."""

    inputs: OneOrSeveral[ClientText]
    add_special_tokens: bool = True
    prompt_name: Prompt = None


def _task(value: object) -> str:
    inputs = value.get(INPUTS) if isinstance(value, dict) else getattr(value, INPUTS, None)
    if isinstance(inputs, str | list) or inputs is None:
        return EMBED
    return SIMILARITY


AnyTask = Annotated[EmbedRequest, Tag(EMBED)] | Annotated[SimilarityRequest, Tag(SIMILARITY)]


class AnyRequest(RootModel[Annotated[AnyTask, Discriminator(_task)]]):
    """A request to /embed or to /similarity."""


def add_tei(app: FastAPI, embedding: TextEmbedding) -> None:
    """Add the routes to the app."""
    settings, model = embedding.settings, embedding.embedder.model
    post = partial(
        app.post, responses=error_replies(REFUSED), description=describe_limits(settings), tags=["embeddings"]
    )

    async def tokens_of(texts: list[str], options: TruncationOptions) -> list[TokenIds]:
        tokens = await embedding.tokenize(texts, INPUTS, options.prompt_name or "")
        if options.truncate is False:
            refuse_truncated(tokens, INPUTS, str(model.max_tokens))
        return tokens

    @post("/embed", summary="Embeddings, as text-embeddings-inference returns them")
    async def embed(body: EmbedRequest, request: Request) -> Response:
        stopwatch, texts = stopwatch_of(request), as_list(body.inputs)
        embedding.refuse_embeddings(texts, INPUTS, body.dimensions)
        tokens = await tokens_of(texts, body)
        rows = await embedding.write(await embedding.embed(tokens, INPUTS, stopwatch, body.dimensions))
        return text_reply(embedding.reply(f"[{','.join(rows)}]", len(tokens), INPUTS, stopwatch))

    @post("/similarity", name="similarity", summary="How alike a sentence is to others")
    async def compare(body: SimilarityRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        texts = [body.inputs.source_sentence, *body.inputs.sentences]
        tokens = await tokens_of(texts, body.parameters or TruncationOptions())
        source, *others = await embedding.embed(tokens, INPUTS, stopwatch)
        cosines = [min(1.0, max(-1.0, float(other @ source))) for other in others]  # rounding can pass 1
        return text_reply(embedding.reply(json_text(cosines), len(texts), INPUTS, stopwatch))

    @post("/", summary="The same as /embed or /similarity, by the form of inputs")
    async def embed_or_compare(body: AnyRequest, request: Request) -> Response:
        if isinstance(body.root, EmbedRequest):
            return await embed(body.root, request)
        return await compare(body.root, request)

    @post("/tokenize", summary="The tokens of one or several texts, all of them")
    async def tokenize(body: TokenizeRequest, request: Request) -> Response:
        stopwatch, texts = stopwatch_of(request), as_list(body.inputs)
        refuse_texts(texts, settings, INPUTS)

        def spell_all() -> str:
            lists, count = [], 0
            for text in texts:
                pieces = embedding.embedder.encode(text, body.prompt_name or "")
                lists.append(spell(*pieces, with_special=body.add_special_tokens))
                count += len(lists[-1])
                refuse_tokens(count, len(texts), settings, INPUTS)
            return json_text(lists)

        spelled = await embedding.executor.run(spell_all)
        stopwatch.lap("tokenize")
        return text_reply(embedding.reply(spelled, len(texts), INPUTS, stopwatch))
