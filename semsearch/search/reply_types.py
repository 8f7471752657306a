"""The form of the replies of a search: hits, facets and passages. mypy checks the code that makes them against it.

The OpenAPI document is made of these types, with their docstrings and descriptions. Nothing else imports them while a
program runs, so a start and a request do not pay for them.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from semsearch.engine.bundle import QueryEmbedder

Ranges: TypeAlias = list[tuple[int, int]]


class Scores(TypedDict, total=False):
    """The scores that make up the score of a result: the cosine (-1 to 1), BM25 (0 or more), and their sum in hybrid.

    `rerank` is the probability (0 to 1) that the reranker gives to a candidate.
    """

    semantic: float
    keyword: float
    hybrid: float
    boost: Annotated[float, Field(description="what the boosts of columns added")]
    rerank: float


class Snippet(TypedDict):
    """The part of a text to show: from `start` to before `end`, in characters (Unicode code points).

    `text` is this part, without the syntax of Markdown if it is from such a document; `highlights` are ranges in it.
    """

    start: int
    end: int
    text: str
    highlights: Ranges


class InFile(TypedDict):
    """A text that can be in a file with lines."""

    lines: NotRequired[
        Annotated[
            list[int],
            Field(
                description="the first and the last line of its file that have the text, from 1",
                min_length=2,
                max_length=2,
            ),
        ]
    ]
    cells: NotRequired[
        Annotated[
            list[int],
            Field(description="the cells of a notebook that have these two lines, from 1", min_length=2, max_length=2),
        ]
    ]


class Result(InFile):
    """A text of the corpus: its row number, id, score, text and metadata.

    `score` is the cosine (-1 to 1) in mode semantic and BM25 (0 or more) in mode keyword. In mode hybrid it combines
    the two `scores`. With `rerank`, it only compares the results of one search. It is null where texts are listed
    without a search.
    """

    # a reply leaves out what `include` does not name, and what was not asked for
    index: int
    id: str
    score: float | None
    text: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    source: NotRequired[Annotated[str, Field(description="the text with its Markdown")]]
    scores: NotRequired[Scores]
    highlights: NotRequired[
        Annotated[
            Ranges, Field(description="start and end of the ranges that answer the query, in characters of the text")
        ]
    ]
    snippet: NotRequired[Snippet]


class SectionPlace(TypedDict):
    """The place of a section in a document."""

    path: str
    url: NotRequired[str]
    version: NotRequired[str]
    language: NotRequired[str]


class GroupResult(Result):
    """A result; with `group_by` it is the best of its group, whose further results are `other_passages`."""

    group: NotRequired[str | None]
    other_passages: NotRequired[Sequence[Result]]
    also_in: NotRequired[
        Annotated[list[SectionPlace], Field(description="where other documents have the same section")]
    ]


class FacetValue(TypedDict):
    """A value of a column, and how many texts have it."""

    value: str | float | bool
    count: int


_From = TypedDict("_From", {"from": NotRequired[float | str]})  # the name is a word of Python


class FacetRange(_From):
    """A range of numbers or dates, which the filter {"$gte": from, "$lt": to} finds, and how many texts are in it.

    `from` or `to` is left out if no number or date is so low or high.
    """

    to: NotRequired[float | str]
    count: int


Facets: TypeAlias = dict[str, list[FacetValue] | list[FacetRange]]


class SimilarReply(TypedDict):
    """The results, best first. `truncated` is true if the text was too long and its end was ignored.

    `facets` has the most frequent values of each column, or ranges of many numbers or dates; `total` is the number of
    texts that were counted or listed.
    """

    results: list[GroupResult]
    truncated: bool
    facets: NotRequired[Facets]
    total: NotRequired[int]
    corrected: NotRequired[
        Annotated[
            dict[str, list[str]],
            Field(description="the words of the corpus that replaced misspelled words of the text"),
        ]
    ]
    queries: NotRequired[
        Annotated[QueryEmbedder, Field(description="what embedded the text, if the corpus has a query table")]
    ]
    index: NotRequired[
        Annotated[
            str,
            Field(description="when the index was made, if files have changed since, or its last update had an error"),
        ]
    ]


class PassageReply(InFile):
    """A text of the corpus: its row number, id, text and metadata."""

    index: int
    id: str
    text: str
    metadata: dict[str, Any]


class FoundPassageReply(PassageReply):
    """A text by its id. If passages around it were requested, `before` and `after` have them in the document's order.

    Without that, both are left out of the reply.
    """

    before: NotRequired[Sequence[PassageReply]]
    after: NotRequired[Sequence[PassageReply]]


class DocumentReply(TypedDict):
    """The passages of a document in the order of its text; `total` is the number of all its passages."""

    path: str
    total: int
    passages: Sequence[PassageReply]
