"""POST /similar: which texts are most like these words."""

from functools import cache
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from function.engine.index import MOST_HITS
from function.engine.loading import LoadedBundle
from function.errors import REFUSED, error_reply
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, refuse_characters, whole_number
from function.settings import Settings
from function.telemetry import stopwatch_of

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

    # `include` may leave out the others
    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class SimilarReply(BaseModel):
    """Results, best first. `truncated`: the words were more than the model reads, the rest was left out."""

    results: list[Result]
    truncated: bool


def add_similar(app: FastAPI, bundle: LoadedBundle, settings: Settings) -> None:
    """Add the route over this model and this corpus; a text of too many characters or too large a reply is a 413."""
    embedder, index, passages = bundle.embedder, bundle.index, bundle.passages
    max_reply_bytes = settings.max_reply_bytes
    columns = cache(bundle.open_columns)  # called by the first request with a filter

    @app.post("/similar", response_model=SimilarReply, responses=REFUSED, summary="The texts most like these words")
    async def similar(body: SimilarRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        if refusal := refuse_characters([body.text], settings.max_characters):
            return refusal
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
