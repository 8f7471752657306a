"""POST /similar: which texts are most like these words."""

from functools import cache
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from function.engine.index import MOST_HITS
from function.engine.loading import LoadedBundle
from function.engine.quantization import Embeddings
from function.errors import REFUSED, error_reply
from function.execution import Execution
from function.routes.replies import bytes_beyond, json_reply
from function.routes.texts import RequestText, StrictRequest, refuse_characters, whole_number
from function.settings import Settings
from function.telemetry import Stopwatch, stopwatch_of

NO_KEYWORDS = "this bundle has no keywords; expected 'semantic', or export the texts again without --no-keywords"

Part = Literal["text", "metadata"]  # of a hit, that a request may leave out


class SimilarRequest(StrictRequest):
    """Words, how many of the texts most like them are wanted, among which texts, and what of each."""

    text: RequestText
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = 5
    mode: Literal["semantic", "keyword", "hybrid"] = "semantic"
    exact: bool = False  # compare the words with every text; only the modes semantic and hybrid look at fewer
    filter: dict[str, Any] | None = None  # function/routes/filtering.py checks and describes it
    include: list[Part] = Field(default=["text", "metadata"], fail_fast=True)


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

    # `include` may leave out the others
    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class SimilarReply(BaseModel):
    """Results, best first. `truncated`: the words were more than the search reads, the rest was left out."""

    results: list[Result]
    truncated: bool


def add_similar(app: FastAPI, bundle: LoadedBundle, settings: Settings, execution: Execution) -> None:
    """Add the route over this model and this corpus; a text of too many characters or too large a reply is a 413."""
    index, passages = bundle.index, bundle.passages
    max_reply_bytes = settings.max_reply_bytes
    # called by the first request that needs them
    columns, keywords_once = cache(bundle.open_columns), cache(bundle.open_keywords)

    async def embed(text: str, stopwatch: Stopwatch) -> tuple[Embeddings, bool]:
        """Return the embedding (dim,) of a query, and whether the text was longer than the model reads."""
        (tokens,) = await execution.tokenize([text], role="query")
        (embedding,) = await execution.embed([tokens])
        stopwatch.lap("embed")
        return embedding, tokens.is_truncated

    @app.post("/similar", response_model=SimilarReply, responses=REFUSED, summary="The texts most like these words")
    async def similar(body: SimilarRequest, request: Request) -> Response:
        stopwatch = stopwatch_of(request)
        stopwatch.lap("parse")
        if refusal := refuse_characters([body.text], settings.max_characters):
            return refusal
        allowed = None
        if body.filter is not None:
            from function.routes.filtering import filtered_rows  # only a request with a filter needs it

            condition = body.filter
            allowed = await execution.run(lambda: filtered_rows(condition, columns()))
            stopwatch.lap("filter")
        if body.mode == "semantic":
            embedding, is_truncated = await embed(body.text, stopwatch)
            hits = await execution.run(lambda: index.search(embedding, body.num_results, allowed, exact=body.exact))
            stopwatch.lap("search")
        elif (keywords := keywords_once()) is None:
            return error_reply(422, f"mode: found {body.mode!r}, but {NO_KEYWORDS}")
        else:
            matches = await execution.run(lambda: keywords.match(body.text, allowed))
            is_truncated = matches.is_truncated
            stopwatch.lap("keyword")
            if body.mode == "keyword":
                hits = matches.best(body.num_results)
                stopwatch.lap("keyword")
            else:
                from function.engine.hybrid import fuse  # only a hybrid search needs it

                embedding, is_cut = await embed(body.text, stopwatch)
                hits = await execution.run(
                    lambda: fuse(index, embedding, matches, keywords.info, body.num_results, exact=body.exact)
                )
                is_truncated |= is_cut
                stopwatch.lap("search")
        results = []
        for hit in hits:
            result: dict[str, Any] = {"index": hit.row, "id": passages.id(hit.row), "score": hit.score}
            if hit.scores is not None:
                result["scores"] = hit.scores
            if "text" in body.include:
                result["text"] = passages.text(hit.row)
            if "metadata" in body.include:
                result["metadata"] = passages.metadata(hit.row)
            results.append(result)
        reply = json_reply({"results": results, "truncated": is_truncated})
        if found := bytes_beyond(reply, max_reply_bytes):
            reply = error_reply(413, _too_large(len(results), found, max_reply_bytes))
        stopwatch.lap("reply")
        return reply


def _too_large(results: int, found: int, most: int) -> str:
    """Say that the reply is of more bytes than may be."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    return f"num_results: the reply with {results} is {found} bytes, at most {most}; {advice}"
