"""POST /similar: the texts that are closest to a text, in meaning, in words or in both."""

from typing import Annotated, Any, Literal

from fastapi import FastAPI, HTTPException, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from function.engine.semantic.index import MOST_HITS
from function.errors import BACKEND, REFUSED
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, refuse_characters, whole_number
from function.search import BackendError, Query, Search, SearchError
from function.settings import Settings
from function.telemetry import stopwatch_of

Part = Literal["text", "metadata"]


# The docstring and the descriptions are published: in the OpenAPI document, and as the tool of POST /mcp.
class SimilarRequest(StrictRequest):
    """A search: the text, the number of results, the mode, a metadata filter and the fields to return."""

    text: RequestText = Field(description="What to look for, in a few words or a sentence.")
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = Field(
        default=5, description="How many texts to return."
    )
    mode: Literal["semantic", "keyword", "hybrid"] = Field(
        default="semantic",
        description="semantic: texts with a similar meaning. keyword: texts with these words, for names and codes; "
        "words between quotation marks must occur. hybrid: both.",
    )
    exact: bool = Field(
        default=False, description="Compare with every text. Otherwise a very large corpus is searched in part."
    )
    # the search checks the filter, and function/routes/filtering.py adds its JSON Schema
    filter: dict[str, Any] | None = Field(default=None, description="Return only texts whose metadata match.")
    include: list[Part] = Field(
        default=["text", "metadata"],
        fail_fast=True,
        description="The fields of each result to return, besides index, id and score.",
    )

    def query(self) -> Query:
        """Return the request as the search takes it."""
        return Query(self.text, self.num_results, self.mode, self.exact, self.filter, self.include)


class Scores(BaseModel):
    """The two scores of a hybrid result: the cosine (-1 to 1) and BM25 (0 or more)."""

    semantic: float
    keyword: float


class Result(BaseModel):
    """A text of the corpus: its row number, id, score, text and metadata.

    `score` is the cosine (-1 to 1) in mode semantic and BM25 (0 or more) in mode keyword. In mode hybrid it combines
    the two `scores`, which only this mode returns.
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
    """The results, best first. `truncated` is true if the text was too long and its end was ignored."""

    results: list[Result]
    truncated: bool


def add_similar(app: FastAPI, search: Search, settings: Settings) -> None:
    """Add the route. A text with too many characters and a reply with too many bytes are answered with 413."""
    max_reply_bytes = settings.max_reply_bytes

    @app.post(
        "/similar", response_model=SimilarReply, responses=REFUSED | BACKEND, summary="The texts closest to a text"
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
    """Return the message of the 413 for a reply that is too large."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    return f"num_results: the reply with {results} is {found} bytes, at most {most}; {advice}"
