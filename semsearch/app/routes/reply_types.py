"""The form of the replies of the routes that do not search. mypy checks the code that makes them against it.

The OpenAPI document is made of these types, as of those in semsearch/search/reply_types.py. Only
semsearch/app/routes/schemas.py imports them while a program runs, so a start and a request do not pay for them.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from semsearch.engine.bundle import FileInfo, ModelInfo, QueriesInfo, RerankInfo


class HealthReply(TypedDict):
    """The model, if there is one, embeds texts."""

    status: Literal["ok"]


class CorpusReply(TypedDict):
    """The corpus. A key with a filter gets these fields alone, and the number of its own texts as `rows`."""

    rows: int
    corpus: Annotated[str, Field(description="the name of the texts")]
    title: str
    description: str
    columns: Annotated[dict[str, str], Field(description="the type of each column that a filter can name")]
    keywords: dict[str, Any] | None
    vectors: dict[str, Any] | None
    boost: dict[str, Any]


class _AnyInfoReply(TypedDict):
    format_version: int
    has_model: Annotated[bool, Field(description="false if all embeddings are made elsewhere, by `model`")]
    index: CorpusReply
    files: NotRequired[dict[str, FileInfo]]
    rerank: RerankInfo | None
    queries: QueriesInfo | None
    made: Annotated[str, Field(description="when the index was made: the time of its manifest.json, in UTC")]
    limits: dict[str, int]
    versions: dict[str, str]
    archive: str
    cold_start_milliseconds: dict[str, float]
    bundle: NotRequired[Annotated[dict[str, Any], Field(description="the version of a bundle that can be replaced")]]


class InfoReply(_AnyInfoReply):
    """The manifest of the bundle, the limits of requests, the versions of libraries and the phases of the start.

    The fields that begin with `model_` and `max_` are those of text-embeddings-inference.
    """

    model: ModelInfo
    model_id: str
    model_sha: str | None
    model_dtype: str
    model_type: dict[str, dict[str, str]]
    max_input_length: int
    max_client_batch_size: int
    auto_truncate: bool


class ModelElsewhere(TypedDict):
    """What is known of a model that is not in the bundle: its owner's word for it, and its dimensions."""

    name: str
    dim: int


class InfoWithoutModelReply(_AnyInfoReply):
    """The manifest of the bundle, the limits of requests, the versions of libraries and the phases of the start."""

    model: ModelElsewhere


class PredictReply(TypedDict):
    """Unit embeddings in the order of the texts. `truncated`: a text was longer than the model reads."""

    embeddings: list[list[float]]
    truncated: list[bool]


class Embedding(TypedDict):
    """An embedding as OpenAI returns it: numbers, or the base64 of its little-endian float32."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Usage(TypedDict):
    """How many tokens the model has read, and how many texts were truncated because they have more than it reads."""

    prompt_tokens: int
    total_tokens: int
    truncated_texts: int


class EmbeddingsReply(TypedDict):
    """Embeddings in the order of the texts."""

    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class ModelReply(TypedDict):
    """The model, as OpenAI describes its own."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsReply(TypedDict):
    """The only model."""

    object: Literal["list"]
    data: list[ModelReply]


class Rank(TypedDict):
    """The place of a text in the request, and its score."""

    index: int
    score: float
    text: NotRequired[str]


class RankedText(TypedDict):
    """A document of the request."""

    text: str


class RankedDocument(TypedDict):
    """The place of a document in the request, and its score."""

    index: int
    relevance_score: float
    document: NotRequired[RankedText]


class JinaReply(TypedDict):
    """The documents, best first, as Jina returns them."""

    model: str
    object: Literal["list"]
    usage: Usage
    results: list[RankedDocument]


class CohereMeta(TypedDict):
    """What was read."""

    api_version: dict[str, str]
    tokens: dict[str, int]
    warnings: NotRequired[list[str]]


class CohereReply(TypedDict):
    """The documents, best first, as Cohere returns them."""

    results: list[RankedDocument]
    meta: CohereMeta


class OpenAIError(TypedDict):
    """What was wrong, and with which parameter."""

    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorReply(TypedDict):
    """An error as OpenAI returns it."""

    error: OpenAIError


class JinaErrorReply(TypedDict):
    """An error as Jina returns it."""

    detail: str


class CohereErrorReply(TypedDict):
    """An error as Cohere returns it."""

    message: str
