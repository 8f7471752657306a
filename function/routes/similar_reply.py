"""The reply of POST /similar, for its descriptions in the OpenAPI document and in MCP. No reply is validated again."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Scores(BaseModel):
    """The scores that make up the score of a result: the cosine (-1 to 1), BM25 (0 or more), and their sum in hybrid.

    `rerank` is the probability (0 to 1) that the reranker gives to a candidate.
    """

    semantic: float | None = None
    keyword: float | None = None
    hybrid: float | None = None
    rerank: float | None = None


class Snippet(BaseModel):
    """The part of a text to show: from `start` to before `end`, in characters (Unicode code points).

    `text` is this part, without the syntax of Markdown if it is from such a document; `highlights` are ranges in it.
    """

    start: int
    end: int
    text: str
    highlights: list[tuple[int, int]] = []


class Result(BaseModel):
    """A text of the corpus: its row number, id, score, text and metadata.

    `score` is the cosine (-1 to 1) in mode semantic and BM25 (0 or more) in mode keyword. In mode hybrid it combines
    the two `scores`. With `rerank`, it only compares the results of one search. It is null where texts are listed
    without a search.
    """

    index: int
    id: str
    score: float | None
    text: str
    metadata: dict[str, Any]
    scores: Scores | None = None
    highlights: list[tuple[int, int]] = Field(
        default=[], description="start and end of the ranges that answer the query, in characters of the text"
    )
    snippet: Snippet | None = None

    # a reply leaves out what `include` does not name, and what was not asked for
    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class GroupResult(Result):
    """A result; with `group_by` it is the best of its group, whose further results are `other_passages`."""

    group: str | None = None
    other_passages: list[Result] = []

    model_config = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class FacetValue(BaseModel):
    """A value of a column, and how many texts have it."""

    value: str | float | bool
    count: int


class SimilarReply(BaseModel):
    """The results, best first. `truncated` is true if the text was too long and its end was ignored.

    `facets` has the most frequent values of each column; `total` is the number of texts that were counted or listed.
    """

    results: list[GroupResult]
    truncated: bool
    facets: dict[str, list[FacetValue]] | None = None
    total: int | None = None
    corrected: dict[str, list[str]] | None = Field(
        default=None, description="the words of the corpus that replaced misspelled words of the text"
    )
