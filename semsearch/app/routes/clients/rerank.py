"""POST /rerank, /v1/rerank and /v2/rerank, for clients of TEI, Jina and Cohere. Imported by the first such request.

The requests and replies are those of https://huggingface.github.io/text-embeddings-inference, https://jina.ai/reranker
and https://docs.cohere.com/reference/rerank. Any `model` is accepted, as on /v1/embeddings.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from fastapi import FastAPI, Request, Response
from numpy.typing import NDArray
from pydantic import Discriminator, Tag

from semsearch.app.errors import REFUSED
from semsearch.app.http import HttpError
from semsearch.app.routes.error_replies import CLIENT_REFUSED, describe_replies, error_replies
from semsearch.app.routes.fields import ClientRequest, ClientText, Count, ModelName, Several
from semsearch.app.routes.replies import refuse_bytes, text_reply
from semsearch.app.routes.texts import describe_limits, refuse_texts, refuse_tokens, refuse_truncated
from semsearch.app.settings import Settings
from semsearch.app.telemetry import Stopwatch, stopwatch_of
from semsearch.engine.embedder import TokenIds
from semsearch.engine.loading import AnyBundle, require_texts
from semsearch.engine.rerank.reranker import Logits, Reranker, probabilities
from semsearch.search.executor import Executor
from semsearch.search.reply import json_bytes
from semsearch.search.request_values import union_tag

if TYPE_CHECKING:
    from semsearch.app.routes.reply_types import CohereMeta, CohereReply, JinaReply, Rank, RankedDocument

STRING, OBJECT = union_tag("string"), union_tag("object")  # the forms of a document


class TextObject(ClientRequest):
    """A document as an object; other fields are ignored."""

    text: ClientText


def _form(value: object) -> str:
    if isinstance(value, str):
        return STRING
    return OBJECT


StringOrObject = Annotated[
    Annotated[ClientText, Tag(STRING)] | Annotated[TextObject, Tag(OBJECT)], Discriminator(_form)
]


class RerankRequest(ClientRequest):
    """A query, and the texts that are ordered by how well they answer it.

    `truncate`: false refuses a query and a text of more tokens than the model reads, instead of cutting off the end of
    the longer one.
    """

    field: ClassVar[str] = "texts"  # the field whose limits are passed
    max_tokens_per_doc: ClassVar[None] = None  # TEI has no such limit

    query: ClientText
    texts: Several[ClientText]
    raw_scores: bool | None = None
    return_text: bool | None = None
    truncate: bool | None = None
    truncation_direction: Literal["right"] | None = None  # the tokenizer can cut off no beginning


class DocumentsRequest(ClientRequest):
    """A query, and the documents that are ordered by how well they answer it.

    `top_n` limits the results. `max_tokens_per_doc` limits the tokens of a document that the model reads.
    """

    field: ClassVar[str] = "documents"

    query: ClientText
    documents: Several[StringOrObject]
    model: ModelName | None = None
    top_n: Count | None = None
    return_documents: bool | None = None
    max_tokens_per_doc: Count | None = None

    @property
    def texts(self) -> list[str]:
        """Return the texts of the documents."""
        return [each if isinstance(each, str) else each.text for each in self.documents]


@dataclass(frozen=True, slots=True)
class RerankScores:
    """The logit of each text, (n,) float32, and the places of those of which the model did not read all."""

    model: str
    logits: Logits
    tokens: int  # tokens that the model read; the query counts with each text
    truncated: list[int]

    def ranks(self, scores: NDArray[Any]) -> list[tuple[int, float]]:
        """Return the place and the score of each text, best first."""
        return [(place, float(scores[place])) for place in np.argsort(-self.logits, kind="stable").tolist()]

    def results(self, body: DocumentsRequest, *, with_texts: bool) -> "list[RankedDocument]":
        """Return the best documents as Jina and Cohere do."""
        texts = body.texts
        ranks = self.ranks(probabilities(self.logits))[: body.top_n]
        documents: list[RankedDocument] = [{"index": place, "relevance_score": score} for place, score in ranks]
        if with_texts:
            for document in documents:
                document["document"] = {"text": texts[document["index"]]}
        return documents


@dataclass(frozen=True, slots=True)
class Reranking:
    """The steps from a request to a reply. A limit that is passed raises HttpError."""

    current: Callable[[], AnyBundle]  # returns the bundle of a request
    executor: Executor
    settings: Settings

    async def score(self, body: RerankRequest | DocumentsRequest, stopwatch: Stopwatch) -> RerankScores:
        """Return the scores of the texts. Raises HttpError with 424 without a reranker, 413 beyond a limit."""
        current, texts = self.current(), body.texts
        if current.manifest.rerank is None:  # nor has a bundle whose texts are in S3 Vectors
            if current.embedder is None:
                raise HttpError(424, "rerank: an index without a model has no reranker; use another server")
            raise HttpError(424, "rerank: this bundle has no reranker; index the texts again with --rerank MODEL")
        bundle = require_texts(current)
        refuse_texts(texts, self.settings, body.field, body.query)

        def tokenize() -> tuple[Reranker, list[TokenIds]]:
            reranker = bundle.reranker
            assert reranker is not None  # the manifest has it
            return reranker, reranker.tokenize_pairs(body.query, texts, body.max_tokens_per_doc)

        reranker, pairs = await self.executor.run(tokenize)
        if isinstance(body, RerankRequest) and body.truncate is False:
            refuse_truncated(pairs, body.field, f"{reranker.info.max_tokens} with those of the query")
        tokens = sum(len(pair.ids) for pair in pairs)
        refuse_tokens(tokens, len(texts), self.settings, body.field)
        logits = await self.executor.score(reranker, pairs)
        stopwatch.lap("rerank")
        truncated = [place for place, pair in enumerate(pairs) if pair.is_truncated]
        return RerankScores(reranker.info.name, logits, tokens, truncated)

    def reply(self, content: object, body: RerankRequest | DocumentsRequest, stopwatch: Stopwatch) -> Response:
        """Return the reply to a request. Limits the bytes."""
        found, where = json_bytes(content), f"{body.field}: the reply to {len(body.texts)} texts"
        refuse_bytes(found, self.settings.max_reply_bytes, where, "send fewer")
        stopwatch.lap("reply")
        return text_reply(found)


def add_rerank(app: FastAPI, reranking: Reranking) -> None:
    """Add the routes to the app."""
    described = f"{describe_limits(reranking.settings)} The query counts with each text, because it is read with each."
    post = partial(app.post, description=described, tags=["reranking"])
    ordered = "ordered by how well they answer a query, as"
    documents_refused = CLIENT_REFUSED | describe_replies({422: "invalid", 424: "backend"})

    @post(
        "/rerank",
        responses=error_replies(REFUSED | {424: "the bundle has no reranker"}),
        summary=f"Texts {ordered} text-embeddings-inference returns them",
    )
    async def rerank(body: RerankRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        found = await reranking.score(body, stopwatch)
        scores = found.logits if body.raw_scores else probabilities(found.logits)
        ranks: list[Rank] = [{"index": place, "score": score} for place, score in found.ranks(scores)]
        if body.return_text:
            for rank in ranks:
                rank["text"] = body.texts[rank["index"]]
        return reranking.reply(ranks, body, stopwatch)

    @post("/v1/rerank", responses=documents_refused, summary=f"Documents {ordered} Jina returns them")
    async def rerank_jina(body: DocumentsRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        found = await reranking.score(body, stopwatch)
        content: JinaReply = {
            "model": found.model,
            "object": "list",
            "usage": {
                "prompt_tokens": found.tokens,
                "total_tokens": found.tokens,
                "truncated_texts": len(found.truncated),
            },
            "results": found.results(body, with_texts=body.return_documents is not False),
        }
        return reranking.reply(content, body, stopwatch)

    @post("/v2/rerank", responses=documents_refused, summary=f"Documents {ordered} Cohere returns them")
    async def rerank_cohere(body: DocumentsRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        found = await reranking.score(body, stopwatch)
        meta: CohereMeta = {"api_version": {"version": "2"}, "tokens": {"input_tokens": found.tokens}}
        if found.truncated:
            reason = "there were too many tokens, so the model did not read the end of the document or of the query"
            meta["warnings"] = [f"documents {', '.join(map(str, found.truncated))}: {reason}"]
        content: CohereReply = {"results": found.results(body, with_texts=bool(body.return_documents)), "meta": meta}
        return reranking.reply(content, body, stopwatch)
