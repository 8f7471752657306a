"""POST /rerank, /v1/rerank and /v2/rerank, for clients of TEI, Jina and Cohere. Imported by the first such request.

The requests and replies are those of https://huggingface.github.io/text-embeddings-inference, https://jina.ai/reranker
and https://docs.cohere.com/reference/rerank. Any `model` is accepted, as on /v1/embeddings.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, BeforeValidator, Discriminator, Field, RootModel, Tag

from function.engine.embedder import TokenIds
from function.engine.loading import Loaded, LoadedBundle
from function.engine.rerank.reranker import Logits, Reranker, probabilities
from function.errors import BACKEND, FAILED, REFUSED, Replies, union_tag
from function.executor import Executor
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import (
    ClientRequest,
    ClientText,
    describe_limits,
    refuse_characters,
    refuse_tokens,
    whole_number,
)
from function.settings import Settings
from function.telemetry import Stopwatch, stopwatch_of

NO_RERANKER = "rerank: this bundle has no reranker; export it again with --rerank MODEL"
TRUNCATED = "there were too many tokens, so the model did not read the end of the document or of the query"
TEXTS, DOCUMENTS = "texts", "documents"  # the fields whose limits are passed
STRING, OBJECT = union_tag("string"), union_tag("object")  # the forms of a document

Count = Annotated[int, Field(ge=1), BeforeValidator(whole_number)]


class TextObject(ClientRequest):
    """A document as an object; other fields are ignored."""

    text: ClientText


def _form(value: object) -> str:
    return STRING if isinstance(value, str) else OBJECT


Document = Annotated[Annotated[ClientText, Tag(STRING)] | Annotated[TextObject, Tag(OBJECT)], Discriminator(_form)]


class Rank(BaseModel):
    """The place of a text in the request, and its score: 0 to 1, or the model's logit with `raw_scores`."""

    index: int
    score: float
    text: str | None = None


class Ranks(RootModel[list[Rank]]):
    """The texts, best first."""


class RankedDocument(BaseModel):
    """The place of a document in the request, its score, 0 to 1, and its text, if that was requested."""

    index: int
    relevance_score: float
    document: TextObject | None = None


class Usage(BaseModel):
    """How many tokens the model read. The query counts once for each document."""

    prompt_tokens: int
    total_tokens: int


class JinaReply(BaseModel):
    """The documents, best first."""

    model: str
    object: Literal["list"]
    usage: Usage
    results: list[RankedDocument]


class Meta(BaseModel):
    """How many tokens the model read, and which documents were truncated."""

    api_version: dict[str, str]
    tokens: dict[str, int]
    warnings: list[str] | None = None


class CohereReply(BaseModel):
    """The documents, best first."""

    results: list[RankedDocument]
    meta: Meta


class JinaErrorReply(BaseModel):
    """An error as Jina's clients read it."""

    detail: str


class CohereErrorReply(BaseModel):
    """An error as Cohere's clients read it."""

    message: str


TEI_REFUSED: Replies = FAILED | REFUSED | BACKEND
JINA_REFUSED: Replies = {status: reply | {"model": JinaErrorReply} for status, reply in TEI_REFUSED.items()}
COHERE_REFUSED: Replies = {status: reply | {"model": CohereErrorReply} for status, reply in TEI_REFUSED.items()}


class Scored:
    """The texts of a request, and what the reranker found."""

    def __init__(self, reranker: Reranker, texts: Sequence[str], pairs: Sequence[TokenIds], logits: Logits) -> None:
        """Take the texts, their tokens with the query, and their logits, (n,) float32."""
        self.model = reranker.info.name
        self.texts = texts
        self.logits = logits
        self.tokens = sum(len(pair.ids) for pair in pairs)  # tokens that the model read
        self.truncated = [place for place, pair in enumerate(pairs) if pair.is_truncated]
        self.order: list[int] = np.argsort(-logits, kind="stable").tolist()  # places of the texts, best first

    def ranked(self, top_n: int | None, with_documents: bool) -> list[dict[str, Any]]:
        """Return the best documents as Jina and Cohere do."""
        scores = probabilities(self.logits)
        ranked: list[dict[str, Any]] = [
            {"index": place, "relevance_score": float(scores[place])} for place in self.order[:top_n]
        ]
        for each in ranked if with_documents else ():
            each["document"] = {"text": self.texts[each["index"]]}
        return ranked


def add_rerank(app: FastAPI, current: Callable[[], Loaded], executor: Executor, settings: Settings) -> None:
    """Add the routes to the app, with the limits of these settings. `current` returns the bundle of a request."""
    described = f"{describe_limits(settings)} The query counts with each text, because it is read with each."
    most = settings.max_texts

    class RerankRequest(ClientRequest):
        """A query, and the texts that are ordered by how well they answer it.

        `truncate`: false refuses a query and a text of more tokens than the model reads, instead of cutting off the end
        of the longer one.
        """

        query: ClientText
        texts: Annotated[list[ClientText], Field(min_length=1, max_length=most, fail_fast=True)]
        raw_scores: bool | None = None
        return_text: bool | None = None
        truncate: bool | None = None
        truncation_direction: Literal["right"] | None = None  # the tokenizer can cut off no beginning

    class DocumentsRequest(ClientRequest):
        """A query, and the documents that are ordered by how well they answer it.

        `top_n` limits the results. `max_tokens_per_doc` limits the tokens of a document that the model reads.
        """

        query: ClientText
        documents: Annotated[list[Document], Field(min_length=1, max_length=most, fail_fast=True)]
        model: str | None = None
        top_n: Count | None = None
        return_documents: bool | None = None
        max_tokens_per_doc: Count | None = None

    async def score(
        query: str,
        texts: Sequence[str],
        field: str,
        stopwatch: Stopwatch,
        most_tokens: int | None = None,
        truncate: bool | None = None,
    ) -> Scored:
        """Return the logit of each text. Raises HTTPException with 424 without a reranker, 413 beyond a limit."""
        stopwatch.lap("parse")
        bundle = current()
        if not isinstance(bundle, LoadedBundle) or bundle.manifest.rerank is None:
            raise HTTPException(424, NO_RERANKER)
        refuse_characters(texts, settings, field, query)

        def tokenize() -> tuple[Reranker, list[TokenIds]]:
            reranker = bundle.reranker
            assert reranker is not None  # the manifest has it
            return reranker, reranker.tokenize_pairs(query, texts, most_tokens)

        reranker, pairs = await executor.run(tokenize, is_long=True)
        if truncate is False and any(pair.is_truncated for pair in pairs):
            place = next(place for place, pair in enumerate(pairs) if pair.is_truncated)
            expected = f"expected at most {reranker.info.max_tokens} with those of the query"
            found = f"more tokens than the model reads, with truncate false, {expected}"
            raise HTTPException(422, f"{field}.{place}: {found}; shorten the text, or let it be truncated")
        refuse_tokens(sum(len(pair.ids) for pair in pairs), len(texts), settings, field)
        logits = await executor.score(reranker, pairs)
        stopwatch.lap("rerank")
        return Scored(reranker, texts, pairs, logits)

    def reply(content: object, field: str, texts: int, stopwatch: Stopwatch) -> Response:
        found = json_reply(content)
        if beyond := bytes_beyond(found.body, settings.max_reply_bytes):
            message = f"{field}: the reply to {texts} texts is {beyond} bytes, at most {settings.max_reply_bytes}"
            raise HTTPException(413, f"{message}; send fewer")
        stopwatch.lap("reply")
        return found

    async def score_documents(body: DocumentsRequest, stopwatch: Stopwatch) -> Scored:
        texts = [each if isinstance(each, str) else each.text for each in body.documents]
        return await score(body.query, texts, DOCUMENTS, stopwatch, body.max_tokens_per_doc)

    @app.post(
        "/rerank",
        response_model=Ranks,
        responses=TEI_REFUSED,
        summary="Texts ordered by how well they answer a query, as text-embeddings-inference returns them",
        description=described,
    )
    async def rerank_as_tei(body: RerankRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        found = await score(body.query, body.texts, TEXTS, stopwatch, truncate=body.truncate)
        scores = found.logits if body.raw_scores else probabilities(found.logits)
        ranks: list[dict[str, Any]] = [{"index": place, "score": float(scores[place])} for place in found.order]
        for each in ranks if body.return_text else ():
            each["text"] = body.texts[each["index"]]
        return reply(ranks, TEXTS, len(ranks), stopwatch)

    @app.post(
        "/v1/rerank",
        response_model=JinaReply,
        responses=JINA_REFUSED,
        summary="Documents ordered by how well they answer a query, as Jina returns them",
        description=described,
    )
    async def rerank_as_jina(body: DocumentsRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        found = await score_documents(body, stopwatch)
        content = {
            "model": found.model,
            "object": "list",
            "usage": {"prompt_tokens": found.tokens, "total_tokens": found.tokens},
            "results": found.ranked(body.top_n, with_documents=body.return_documents is not False),
        }
        return reply(content, DOCUMENTS, len(body.documents), stopwatch)

    @app.post(
        "/v2/rerank",
        response_model=CohereReply,
        responses=COHERE_REFUSED,
        summary="Documents ordered by how well they answer a query, as Cohere returns them",
        description=described,
    )
    async def rerank_as_cohere(body: DocumentsRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        found = await score_documents(body, stopwatch)
        meta: dict[str, Any] = {"api_version": {"version": "2"}, "tokens": {"input_tokens": found.tokens}}
        if found.truncated:
            meta["warnings"] = [f"documents {', '.join(map(str, found.truncated))}: {TRUNCATED}"]
        content = {"results": found.ranked(body.top_n, bool(body.return_documents)), "meta": meta}
        return reply(content, DOCUMENTS, len(body.documents), stopwatch)
