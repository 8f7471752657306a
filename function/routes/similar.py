"""POST /similar: which texts are most like these words."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from function.engine.embedder import Embedder
from function.engine.index import MOST_HITS, Index
from function.engine.passages import Passages
from function.engine.quantization import Embeddings
from function.errors import REFUSED, error_reply
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, whole_number
from function.telemetry import Stopwatch, stopwatch_of

if TYPE_CHECKING:
    from function.engine.keywords import Keywords

NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or export the texts again without --no-keywords"


class SimilarRequest(StrictRequest):
    """Words, and how many of the texts most like them are wanted."""

    text: RequestText
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = 5
    mode: Literal["semantic", "keyword", "hybrid"] = "semantic"


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


class SimilarReply(BaseModel):
    """Results, best first. `truncated`: the words were more than the search reads, the rest was left out."""

    results: list[Result]
    truncated: bool


def add_similar(
    app: FastAPI,
    embedder: Embedder,
    index: Index,
    passages: Passages,
    open_keywords: "Callable[[], Keywords | None]",
    max_reply_bytes: int,
) -> None:
    """Add the route over this model and this corpus; a reply of more than max_reply_bytes is a 413.

    open_keywords is called when a request first asks for keywords.
    """
    keywords_once = cache(open_keywords)

    def embed(text: str, stopwatch: Stopwatch) -> tuple[Embeddings, bool]:
        """Return the embedding (dim,) of a query, and whether the text was longer than the model reads."""
        (tokens,) = embedder.tokenize([text], role="query")
        (embedding,) = embedder.embed([tokens])
        stopwatch.lap("embed")
        return embedding, tokens.is_truncated

    @app.post("/similar", response_model=SimilarReply, responses=REFUSED, summary="The texts most like these words")
    async def similar(body: SimilarRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        if body.mode == "semantic":
            embedding, is_truncated = embed(body.text, stopwatch)
            hits = index.search(embedding, body.num_results)
            stopwatch.lap("search")
        elif (keywords := keywords_once()) is None:
            return error_reply(422, f"mode: found {body.mode!r}, but {NO_KEYWORDS}")
        else:
            matches = keywords.match(body.text)
            is_truncated = matches.is_truncated
            stopwatch.lap("keyword")
            if body.mode == "keyword":
                hits = matches.best(body.num_results)
                stopwatch.lap("keyword")
            else:
                from function.engine.hybrid import fuse  # only a hybrid search needs it

                embedding, is_cut = embed(body.text, stopwatch)
                hits = fuse(index, embedding, matches, keywords.info, body.num_results)
                is_truncated |= is_cut
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
                | ({"scores": hit.scores} if hit.scores is not None else {})
            )
        reply = json_reply({"results": results, "truncated": is_truncated})
        if found := bytes_beyond(reply, max_reply_bytes):
            reply = error_reply(413, _too_large(len(results), found, max_reply_bytes))
        stopwatch.lap("reply")
        return reply


def _too_large(results: int, found: int, most: int) -> str:
    """Say that the reply is of more bytes than may be."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    return f"num_results: the reply with {results} is {found} bytes, at most {most}; {advice}"
