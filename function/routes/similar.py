"""POST /similar: which texts are most like these words."""

from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from function.engine.index import MOST_HITS
from function.errors import BACKEND, REFUSED
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, refuse_characters, whole_number
from function.search import BackendError, Query, Search, SearchError
from function.settings import Settings
from function.telemetry import stopwatch_of

Part = Literal["text", "metadata"]  # of a hit, that a request may leave out


class SimilarRequest(StrictRequest):
    """Words, how many of the texts most like them are wanted, among which texts, and what of each."""

    text: RequestText
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = 5
    mode: Literal["semantic", "keyword", "hybrid"] = "semantic"
    exact: bool = False  # compare the words with every text; only the modes semantic and hybrid look at fewer
    filter: dict[str, Any] | None = None  # the search checks it, function/routes/filtering.py describes it
    include: list[Part] = Field(default=["text", "metadata"], fail_fast=True)

    def query(self) -> Query:
        """Return the same as the search takes it."""
        return Query(self.text, self.num_results, self.mode, self.exact, self.filter, self.include)


class Scores(BaseModel):
    """What a hybrid score was made from: the cosine (-1 to 1) and BM25 (0 or more)."""

    semantic: float
    keyword: float


class Result(BaseModel):
    """One text of the corpus: its row, its id, its score, itself and its other columns.

    `score` is the cosine to the words (-1 to 1) in the mode semantic, BM25 in keyword, and made from both `scores` in
    hybrid; only there are `scores` in a result.
    """

    index: int
    id: str
    score: float
    text: str
    metadata: dict[str, Any]
    scores: Scores | None = None

    # a reply leaves out what `include` does not name
    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class SimilarReply(BaseModel):
    """Results, best first. `truncated`: the words were more than the search reads, the rest was left out."""

    results: list[Result]
    truncated: bool


def add_similar(app: FastAPI, search: Search, settings: Settings) -> None:
    """Add the route that searches; a text of too many characters or too large a reply is a 413."""
    max_reply_bytes = settings.max_reply_bytes

    @app.post(
        "/similar", response_model=SimilarReply, responses=REFUSED | BACKEND, summary="The texts most like these words"
    )
    async def similar(body: SimilarRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        refuse_characters([body.text], settings)
        try:
            found = await search(body.query(), stopwatch.lap)
        except SearchError as error:
            raise HTTPException(422, str(error)) from None
        except BackendError as error:
            if error.seconds is None:
                raise HTTPException(424, str(error)) from error
            raise HTTPException(429, str(error), {"retry-after": str(error.seconds)}) from error
        reply = json_reply({"results": found.results, "truncated": found.is_truncated})
        if beyond := bytes_beyond(reply, max_reply_bytes):
            raise HTTPException(413, too_large(len(found.results), beyond, max_reply_bytes))
        stopwatch.lap("reply")
        return reply


def too_large(results: int, found: int, most: int) -> str:
    """Say that the reply is of more bytes than may be."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    return f"num_results: the reply with {results} is {found} bytes, at most {most}; {advice}"
