"""POST /similar: which texts are most like these words."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from function.engine.embedder import Embedder
from function.engine.index import MOST_HITS, Index
from function.engine.passages import Passages
from function.errors import REFUSED, error_reply
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, whole_number
from function.telemetry import stopwatch_of

if TYPE_CHECKING:
    from function.engine.columns import Columns

Part = Literal["text", "metadata"]  # of a hit, that a request may leave out


class SimilarRequest(StrictRequest):
    """Words, how many of the texts most like them are wanted, among which texts, and what of each."""

    text: RequestText
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = 5
    filter: dict[str, Any] | None = None  # function/routes/filtering.py checks and describes it
    include: list[Part] = Field(default=["text", "metadata"], fail_fast=True)


class Result(BaseModel):
    """One text of the corpus: its row, its id, its cosine to the words (-1 to 1), itself and its other columns."""

    index: int
    id: str
    score: float
    text: str
    metadata: dict[str, Any]

    model_config = ConfigDict(
        json_schema_extra={"required": ["index", "id", "score"]}
    )  # `include` may leave out others


class SimilarReply(BaseModel):
    """Results, best first. `truncated`: the words were more than the model reads, the rest was left out."""

    results: list[Result]
    truncated: bool


def add_similar(
    app: FastAPI,
    embedder: Embedder,
    index: Index,
    passages: Passages,
    open_columns: "Callable[[], Columns]",
    max_reply_bytes: int,
) -> None:
    """Add the route over this model and this corpus; a reply of more than max_reply_bytes is a 413.

    open_columns is called once, for the first request with a filter.
    """
    columns = cache(open_columns)

    @app.post("/similar", response_model=SimilarReply, responses=REFUSED, summary="The texts most like these words")
    async def similar(body: SimilarRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        allowed = None
        if body.filter is not None:
            from function.routes.filtering import filtered_rows  # only a request with a filter needs it

            allowed = filtered_rows(body.filter, columns())
            stopwatch.lap("filter")
        tokens = embedder.tokenize([body.text], role="query")
        embedding = embedder.embed(tokens)[0]
        stopwatch.lap("embed")
        hits = index.search(embedding, body.num_results, allowed)
        stopwatch.lap("search")
        results = []
        for hit in hits:
            result: dict[str, Any] = {"index": hit.row, "id": passages.id(hit.row), "score": hit.score}
            if "text" in body.include:
                result["text"] = passages.text(hit.row)
            if "metadata" in body.include:
                result["metadata"] = passages.metadata(hit.row)
            results.append(result)
        reply = json_reply({"results": results, "truncated": tokens[0].is_truncated})
        if found := bytes_beyond(reply, max_reply_bytes):
            reply = error_reply(413, _too_large(len(results), found, max_reply_bytes))
        stopwatch.lap("reply")
        return reply


def _too_large(results: int, found: int, most: int) -> str:
    """Say that the reply is of more bytes than may be."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    return f"num_results: the reply with {results} is {found} bytes, at most {most}; {advice}"
