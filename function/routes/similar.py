"""POST /similar: which texts are most like these words."""

from typing import Annotated, Any

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from function.engine.index import MOST_HITS
from function.engine.loading import LoadedBundle
from function.errors import REFUSED, error_reply
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, refuse_characters, whole_number
from function.settings import Settings
from function.telemetry import stopwatch_of


class SimilarRequest(StrictRequest):
    """Words, and how many of the texts most like them are wanted."""

    text: RequestText
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = 5


class Result(BaseModel):
    """One text of the corpus: its row, its id, its cosine to the words (-1 to 1), itself and its other columns."""

    index: int
    id: str
    score: float
    text: str
    metadata: dict[str, Any]


class SimilarReply(BaseModel):
    """Results, best first. `truncated`: the words were more than the model reads, the rest was left out."""

    results: list[Result]
    truncated: bool


def add_similar(app: FastAPI, bundle: LoadedBundle, settings: Settings) -> None:
    """Add the route over this model and this corpus; a text of too many characters or too large a reply is a 413."""
    embedder, index, passages = bundle.embedder, bundle.index, bundle.passages
    max_reply_bytes = settings.max_reply_bytes

    @app.post("/similar", response_model=SimilarReply, responses=REFUSED, summary="The texts most like these words")
    async def similar(body: SimilarRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        if refusal := refuse_characters([body.text], settings.max_characters):
            return refusal
        tokens = embedder.tokenize([body.text], role="query")
        embedding = embedder.embed(tokens)[0]
        stopwatch.lap("embed")
        hits = index.search(embedding, body.num_results)
        stopwatch.lap("search")
        results = []
        for hit in hits:
            passage = passages[hit.row]
            results.append(
                {
                    "index": hit.row,
                    "id": passage.id,
                    "score": hit.score,
                    "text": passage.text,
                    "metadata": passage.metadata,
                }
            )
        reply = json_reply({"results": results, "truncated": tokens[0].is_truncated})
        if found := bytes_beyond(reply, max_reply_bytes):
            reply = error_reply(413, _too_large(len(results), found, max_reply_bytes))
        stopwatch.lap("reply")
        return reply


def _too_large(results: int, found: int, most: int) -> str:
    """Say that the reply is of more bytes than may be."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    return f"num_results: the reply with {results} is {found} bytes, at most {most}; {advice}"
