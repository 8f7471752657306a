"""POST /similar: the texts that are closest to a text, in meaning, in words or in both."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from semsearch.app.errors import BACKEND, MISSING, REFUSED
from semsearch.app.http import HttpError
from semsearch.app.routes.direct import DirectRoute
from semsearch.app.routes.fields import RequestText, StrictRequest, refuse_texts, whole_number
from semsearch.app.routes.replies import json_bytes, refuse_bytes
from semsearch.app.settings import CHARACTERS_PER_TEXT, Settings
from semsearch.app.telemetry import Stopwatch
from semsearch.engine.semantic.index import MOST_HITS
from semsearch.search.query import (
    MOST_CANDIDATES,
    MOST_IN_GROUP,
    MOST_OFFSET,
    BackendError,
    Query,
    Search,
    SearchError,
    UnknownIdError,
)

MOST_COLUMNS = 10  # maximum columns of `sort` and of `facets`

Part = Literal["text", "metadata"]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]


class RerankOptions(StrictRequest):
    """How many of the best texts the reranker scores: the more, the better the results and the slower the search."""

    candidates: Annotated[int, Field(ge=1, le=MOST_CANDIDATES), BeforeValidator(whole_number)] = 20


# The docstring and the descriptions are published: in the OpenAPI document, and as the tool of POST /mcp.
class SimilarRequest(StrictRequest):
    """A search: the text or the id, the number of results, the mode, a metadata filter and the fields to return."""

    text: RequestText | None = Field(
        default=None,
        description="What to look for, in a few words or a sentence. Without a text and an id, all texts that pass the "
        "filter are listed.",
    )
    num_results: Annotated[int, Field(ge=1, le=MOST_HITS), BeforeValidator(whole_number)] = Field(
        default=5, description="How many texts to return, or how many groups with `group_by`."
    )
    mode: Literal["semantic", "keyword", "hybrid"] | None = Field(
        default=None,
        description="semantic: texts with a similar meaning. keyword: texts with these words, for names and codes; "
        "words between quotation marks must occur. hybrid: both. The default is hybrid for a text, and semantic for an "
        "id or if the corpus has no keywords.",
    )
    prefix: bool = Field(
        default=False,
        description="In the modes keyword and hybrid: the last word of the text is still being typed, so words that "
        "begin with it are found too. A blank or a punctuation mark after it completes it.",
    )
    exact: bool = Field(
        default=False, description="Find the best of all texts. Otherwise a very large corpus is searched in part."
    )
    # the search checks the filter, and semsearch/app/routes/schemas.py adds its JSON Schema
    filter: dict[str, Any] | None = Field(default=None, description="Return only texts whose metadata match.")
    include: list[Part] = Field(
        default=["text", "metadata"],
        fail_fast=True,
        description="The fields of each result to return, besides index, id and score.",
    )
    id: Annotated[str, Field(min_length=1, max_length=CHARACTERS_PER_TEXT)] | None = Field(
        default=None, description="Return texts that are similar to the text with this id, instead of `text`."
    )
    offset: Annotated[int, Field(ge=0, le=MOST_OFFSET), BeforeValidator(whole_number)] = Field(
        default=0, description="How many results to skip. Use the same num_results for all pages."
    )
    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None, description="Leave out results with a lower score."
    )
    group_by: ColumnName | None = Field(
        default=None,
        description="Return one result for each value of this column of strings, such as `path` for documents; further "
        "texts of the group are in `other_passages`.",
    )
    group_size: Annotated[int, Field(ge=1, le=MOST_IN_GROUP), BeforeValidator(whole_number)] = Field(
        default=3, description="How many texts of a group to return at most."
    )
    sort: Annotated[dict[ColumnName, Literal["asc", "desc"]], Field(min_length=1, max_length=MOST_COLUMNS)] | None = (
        Field(default=None, description="Order the texts by columns instead of by score, such as {'price': 'asc'}.")
    )
    facets: Annotated[list[ColumnName], Field(max_length=MOST_COLUMNS)] = Field(
        default=[], description="Columns whose values, or ranges of numbers, are counted among the filtered texts."
    )
    facets_of: Literal["matching", "results"] = Field(
        default="matching",
        description="Which texts `facets` counts. matching: all that pass the filter and, in mode keyword, have a word "
        "of the text. results: the best 100 texts, which are the same for all pages.",
    )
    highlights: bool = Field(
        default=False,
        description="Return for each result a snippet of its text, and which characters of it answer the query.",
    )

    fusion_weight: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="In mode hybrid: the share of the meaning in the score, from 0 (words alone) to 1, instead of the "
        "share that the corpus was exported with. The other modes ignore it.",
    )

    correct: bool = Field(
        default=True,
        description="In the modes keyword and hybrid: replace misspelled words that no text has by words of the texts.",
    )
    queries: Literal["model"] | None = Field(
        default=None,
        description="model: the model embeds the text, also where a table learned from the corpus does it by default. "
        "Slower, and better for long questions.",
    )
    # the search checks the boosts
    boost: dict[str, Any] | None = Field(
        default=None,
        description="What columns add to the score of the best texts, instead of the default of the corpus, such as "
        "{'date': {'half_life': '30d', 'weight': 0.2}, 'in_stock': {'equals': true, 'weight': 0.1}, "
        "'popularity': {'log': true, 'weight': 0.05}}. {} adds nothing.",
    )
    rerank: RerankOptions | None = Field(
        default=None,
        description="Score the best texts once more with a slower and more accurate model, which reads the query and a "
        "text together, and order them by both scores.",
    )

    def query(self) -> Query:
        """Return the request as the search takes it."""
        rerank = None if self.rerank is None else self.rerank.candidates
        return Query(**dict(self) | {"rerank": rerank})  # their fields have the same names


def similar_route(search: Search, settings: Settings) -> DirectRoute:
    """Return the route. A text with too many characters and a reply with too many bytes are answered with 413."""

    async def similar(body: SimilarRequest, stopwatch: Stopwatch) -> bytes:
        stopwatch.lap("parse")
        refuse_texts([body.text or body.id or ""], settings)
        try:
            found = await search(body.query(), stopwatch.lap)
        except SearchError as error:
            raise HttpError(404 if isinstance(error, UnknownIdError) else 422, str(error)) from None
        except BackendError as error:
            if error.seconds is None:
                raise HttpError(424, str(error)) from error
            raise HttpError(429, str(error), {"retry-after": str(error.seconds)}) from error
        reply = json_bytes(found.reply())
        refuse_large_reply(reply, len(found.results), settings)
        stopwatch.lap("reply")
        return reply

    # semsearch/app/routes/schemas.py describes the reply: the reply's models would lengthen each start
    return DirectRoute(
        "POST",
        "/similar",
        SimilarRequest,
        similar,
        summary="The texts closest to a text",
        responses=REFUSED | BACKEND | MISSING,
    )


def refuse_large_reply(body: bytes, results: int, settings: Settings) -> None:
    """Raise HttpError with status 413 if a reply with this number of results is too large."""
    advice = "ask for fewer" if results > 1 else "split the long texts of the corpus"
    refuse_bytes(body, settings.max_reply_bytes, f"num_results: the reply with {results}", advice)
