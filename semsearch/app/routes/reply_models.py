"""What the routes reply, as models for the OpenAPI document alone.

Only semsearch/app/routes/schemas.py imports them. The routes write their JSON themselves, so a start and a request do
not pay for these models.
"""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from semsearch.app.errors import ErrorReply
from semsearch.engine.bundle import FileInfo, ModelInfo, QueriesInfo, RerankInfo
from semsearch.engine.tokenizer import SpelledToken


class Scores(BaseModel):
    """The scores that make up the score of a result: the cosine (-1 to 1), BM25 (0 or more), and their sum in hybrid.

    `rerank` is the probability (0 to 1) that the reranker gives to a candidate.
    """

    semantic: float | None = None
    keyword: float | None = None
    hybrid: float | None = None
    boost: float | None = Field(default=None, description="what the boosts of columns added")
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
    source: str = Field(default="", description="the text with its Markdown")
    scores: Scores | None = None
    highlights: list[tuple[int, int]] = Field(
        default=[], description="start and end of the ranges that answer the query, in characters of the text"
    )
    snippet: Snippet | None = None

    # a reply leaves out what `include` does not name, and what was not asked for
    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class SectionPlace(BaseModel):
    """The place of a section in a document."""

    path: str
    url: str = ""
    version: str = ""
    language: str = ""


class GroupResult(Result):
    """A result; with `group_by` it is the best of its group, whose further results are `other_passages`."""

    group: str | None = None
    other_passages: list[Result] = []
    also_in: list[SectionPlace] = Field(default=[], description="where other documents have the same section")

    model_config: ClassVar[ConfigDict] = ConfigDict(json_schema_extra={"required": ["index", "id", "score"]})


class FacetValue(BaseModel):
    """A value of a column, and how many texts have it."""

    value: str | float | bool
    count: int


class FacetRange(BaseModel):
    """A range of numbers or dates, which the filter {"$gte": from, "$lt": to} finds, and how many texts are in it.

    `from` or `to` is left out if no number or date is so low or high.
    """

    from_: float | str | None = Field(default=None, alias="from")
    to: float | str | None = None
    count: int


class SimilarReply(BaseModel):
    """The results, best first. `truncated` is true if the text was too long and its end was ignored.

    `facets` has the most frequent values of each column, or ranges of many numbers or dates; `total` is the number of
    texts that were counted or listed.
    """

    results: list[GroupResult]
    truncated: bool
    facets: dict[str, list[FacetValue] | list[FacetRange]] | None = None
    total: int | None = None
    corrected: dict[str, list[str]] | None = Field(
        default=None, description="the words of the corpus that replaced misspelled words of the text"
    )
    queries: Literal["table", "model"] | None = Field(
        default=None, description="what embedded the text, if the corpus has a query table"
    )


class HealthReply(BaseModel):
    """The model embeds texts."""

    status: Literal["ok"]


class CorpusReply(BaseModel):
    """The corpus. A key with a filter gets these fields alone, and the number of its own texts as `rows`."""

    rows: int
    corpus: str = Field(description="the name of the texts")
    title: str
    description: str
    columns: dict[str, str] = Field(description="the type of each column that a filter can name")
    keywords: dict[str, Any] | None
    vectors: dict[str, Any] | None
    boost: dict[str, Any]


class InfoReply(BaseModel):
    """The manifest of the bundle, the limits of requests, the versions of libraries and the phases of the start.

    The fields that begin with `model_` and `max_` are those of text-embeddings-inference.
    """

    format_version: int
    model: ModelInfo
    index: CorpusReply
    files: dict[str, FileInfo] | None = None
    rerank: RerankInfo | None = None
    queries: QueriesInfo | None = None
    made: str = Field(description="when the index was made: the time of its manifest.json, in UTC")
    model_id: str
    model_sha: str | None
    model_dtype: str
    model_type: dict[str, dict[str, str]]
    max_input_length: int
    max_client_batch_size: int
    auto_truncate: bool
    limits: dict[str, int]
    versions: dict[str, str]
    archive: str
    cold_start_milliseconds: dict[str, float]
    bundle: dict[str, Any] | None = Field(default=None, description="the version of a bundle that can be replaced")


class Embedding(BaseModel):
    """An embedding as OpenAI returns it: numbers, or the base64 of its little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    """How many tokens were read, and of how many texts the end was not, because the model reads no more tokens."""

    prompt_tokens: int
    total_tokens: int
    truncated_texts: int


class EmbeddingsReply(BaseModel):
    """Embeddings in the order of the texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class ModelReply(BaseModel):
    """The model, as OpenAI describes its own."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsReply(BaseModel):
    """The only model."""

    object: Literal["list"]
    data: list[ModelReply]


class Rank(BaseModel):
    """The place of a text in the request, and its score."""

    index: int
    score: float
    text: str | None = None


class RankedText(BaseModel):
    """A document of the request."""

    text: str


class RankedDocument(BaseModel):
    """The place of a document in the request, and its score."""

    index: int
    relevance_score: float
    document: RankedText | None = None


class JinaReply(BaseModel):
    """The documents, best first, as Jina returns them."""

    model: str
    object: Literal["list"]
    usage: Usage
    results: list[RankedDocument]


class CohereMeta(BaseModel):
    """What was read."""

    api_version: dict[str, str]
    tokens: dict[str, int]
    warnings: list[str] = []


class CohereReply(BaseModel):
    """The documents, best first, as Cohere returns them."""

    results: list[RankedDocument]
    meta: CohereMeta


class OpenAIError(BaseModel):
    """What was wrong, and with which parameter."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorReply(BaseModel):
    """An error as OpenAI returns it."""

    error: OpenAIError


class JinaErrorReply(BaseModel):
    """An error as Jina returns it."""

    detail: str


class CohereErrorReply(BaseModel):
    """An error as Cohere returns it."""

    message: str


REPLIES: dict[str, Any] = {  # the reply with status 200 of each operation that does not describe its own
    "similar": SimilarReply,
    "health": HealthReply,
    "info": InfoReply,
    "embeddings": EmbeddingsReply,
    "models": ModelsReply,
    "model": ModelReply,
    "embed": list[list[float]],
    "similarity": list[float],
    "embed_or_compare": list[list[float]] | list[float],
    "tokenize": list[list[SpelledToken]],
    "rerank": list[Rank],
    "rerank_jina": JinaReply,
    "rerank_cohere": CohereReply,
}
ERRORS: dict[str, type[BaseModel]] = {  # the errors of paths, the first that a path begins with
    "/v1/rerank": JinaErrorReply,
    "/v2/rerank": CohereErrorReply,
    "/v1/": OpenAIErrorReply,
    "/": ErrorReply,
}
