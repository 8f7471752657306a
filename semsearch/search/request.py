"""The request of a search, as /similar, MCP and `semsearch.Search` take it. pydantic checks its values.

`describe_errors` turns the errors of pydantic into one line.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from semsearch.engine.hits import MOST_HITS
from semsearch.search.query import CHARACTERS_PER_TEXT, MOST_CANDIDATES, MOST_COLUMNS, MOST_IN_GROUP, MOST_OFFSET
from semsearch.search.request_values import (
    NUMBER_FORM,
    WORD_FORM,
    check_filter_size,
    check_text,
    echo,
    form_of_score,
    truncate,
    union_tag,
    whole_number,
)

LONGEST_VECTOR = 4_096  # maximum numbers of `vector`
MOST_WITHOUT = 20  # maximum texts of `without`
LONGEST_WITHOUT = 1_000  # maximum characters of each of them: every word of them is looked up
CHARACTERS_PER_NAME = 200  # maximum length of the name of a column, a model or a method of MCP
MOST_DESCRIBED = 3  # maximum errors of one body that are described


class StrictRequest(BaseModel):
    """A request body that accepts neither values of another type nor unknown fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")


# The JSON Schema of a text that is not blank. U+001C to U+001F and U+0085 are white space in Python, but not in every
# regex.
NOT_BLANK: dict[str, Any] = {"minLength": 1, "pattern": r"[^\s\x1c-\x1f\x85]"}

RequestText = Annotated[
    str, Field(max_length=CHARACTERS_PER_TEXT, json_schema_extra=NOT_BLANK), AfterValidator(check_text)
]
ExcludedWords = Annotated[
    str, Field(max_length=LONGEST_WITHOUT, json_schema_extra=NOT_BLANK), AfterValidator(check_text)
]

Part = Literal["text", "metadata", "source"]
ColumnName = Annotated[str, Field(min_length=1, max_length=CHARACTERS_PER_NAME)]

Score = Annotated[float, Field(allow_inf_nan=False)]
LeastScore = Annotated[
    Annotated[Score, Tag(NUMBER_FORM)] | Annotated[Literal["floor"], Tag(WORD_FORM)], Discriminator(form_of_score)
]

NOT_ZERO: dict[str, Any] = {"contains": {"not": {"const": 0}}}  # the JSON Schema of numbers that are not all 0
QueryVector = Annotated[
    list[Score], Field(min_length=1, max_length=LONGEST_VECTOR, fail_fast=True, json_schema_extra=NOT_ZERO)
]


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
    # the search checks what the filter holds, and semsearch/app/routes/schemas.py adds its JSON Schema
    filter: Annotated[dict[str, Any], AfterValidator(check_filter_size)] | None = Field(
        default=None, description="Return only texts whose metadata match."
    )
    include: list[Part] = Field(
        default=["text", "metadata"],
        fail_fast=True,
        max_length=len(get_args(Part)),
        description="The fields of each result to return, besides index, id and score. source is the text with its "
        "Markdown.",
    )
    id: Annotated[str, Field(min_length=1, max_length=CHARACTERS_PER_TEXT)] | None = Field(
        default=None, description="Return texts that are similar to the text with this id, instead of `text`."
    )
    vector: QueryVector | None = Field(
        default=None,
        description="The embedding of the query, made elsewhere with the model of the index, instead of `text`. With a "
        "text, the mode is hybrid: the text gives the words, and the vector the meaning.",
    )
    offset: Annotated[int, Field(ge=0, le=MOST_OFFSET), BeforeValidator(whole_number)] = Field(
        default=0, description="How many results to skip. Use the same num_results for all pages."
    )
    min_score: LeastScore | None = Field(
        default=None,
        description="Leave out results with a lower score. floor: leave out results if their score says that nothing "
        "relevant was found, as measured when the index was made.",
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
        Field(default=None, description='Order the texts by columns instead of by score, such as {"price": "asc"}.')
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
        "share that the index was made with. The other modes ignore it.",
    )

    correct: bool = Field(
        default=True,
        description="In the modes keyword and hybrid: replace misspelled words that no text has by words of the texts.",
    )
    without: Annotated[list[ExcludedWords], Field(max_length=MOST_WITHOUT)] = Field(
        default=[],
        description="In the modes keyword and hybrid: leave out texts with one of these words, or with all words of "
        "one of these texts.",
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


class LocalRequest(SimilarRequest):
    """A search in the process of its caller, which needs no limits that protect a server."""

    num_results: Annotated[int, Field(ge=1), BeforeValidator(whole_number)] = 5
    offset: Annotated[int, Field(ge=0), BeforeValidator(whole_number)] = 0
    filter: dict[str, Any] | None = None


# fields that agents are offered over MCP; rerank and min_score only if the corpus has what they need
OFFERED = (
    "text",
    "num_results",
    "mode",
    "filter",
    "id",
    "offset",
    "group_by",
    "sort",
    "facets",
    "rerank",
    "min_score",
)
NOT_OFFERED = {  # the other fields, and why an agent needs no description of them
    "vector": "an agent has none",
    "prefix": "for a text that is still being typed",
    "exact": "for comparisons: slower, and nearly the same results",
    "include": "an agent reads the text and the metadata",
    "group_size": "the default is enough",
    "facets_of": "the default counts what a filter can find",
    "highlights": "marks for eyes",
    "fusion_weight": "the index has a measured one",
    "correct": "the default helps",
    "without": "an agent leaves out results itself, or writes a filter",
    "queries": "the corpus's owner has chosen",
    "boost": "the corpus's owner has chosen",
}


def describe_errors(errors: Sequence[Any], whole: str = "body") -> str:
    """Return a description of pydantic's first errors in one line. `whole` names the value that has the fields."""
    described = [_describe(one, whole) for one in errors[:MOST_DESCRIBED]]
    if len(errors) > MOST_DESCRIBED:
        described.append(f"and {len(errors) - MOST_DESCRIBED} more")
    return "; ".join(described)


def _describe(error: dict[str, Any], whole: str) -> str:
    place = error["loc"][1:] if whole == "body" else error["loc"]  # FastAPI puts "body" or "query" before it
    parts = [str(part) for part in place]
    field = truncate(".".join(part for part in parts if part != union_tag(part[1:-1]))) or whole
    message = error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] in ("missing", "extra_forbidden"):
        return f"{field}: {message}"
    return f"{field}: {message}, found {echo(error['input'])}"
