"""The fields of requests that hold texts or whole numbers, and the limits of texts and tokens."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from semsearch.app.http import HttpError
from semsearch.app.settings import MOST_TEXTS, Settings
from semsearch.engine.embedder import TokenIds
from semsearch.search.query import CHARACTERS_PER_TEXT
from semsearch.search.request import CHARACTERS_PER_NAME, SimilarRequest, union_tag, whole_number

TEXT, TEXTS = union_tag("text"), union_tag("texts")  # the forms of a field that takes one text or several


def text_or_texts(value: object) -> str:
    """Return the form of a field's value, for a discriminated union."""
    if isinstance(value, list):
        return TEXTS
    return TEXT


# clients send blank texts too
ClientText = Annotated[str, Field(min_length=1, max_length=CHARACTERS_PER_TEXT)]
ModelName = Annotated[str, Field(max_length=CHARACTERS_PER_NAME)]


Text = TypeVar("Text")
Count = Annotated[int, Field(ge=1), BeforeValidator(whole_number)]
Several = Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]
OneOrSeveral = Annotated[
    Annotated[Text, Tag(TEXT)] | Annotated[Several[Text], Tag(TEXTS)], Discriminator(text_or_texts)
]


def as_list(texts: str | list[str]) -> list[str]:
    """Return the texts of a field that takes one or several."""
    if isinstance(texts, str):
        return [texts]
    return texts


def refuse_texts(texts: Sequence[str], settings: Settings, field: str = "text", query: str = "") -> None:
    """Raise HttpError with status 422 for too many texts, with 413 if they are too long together.

    A query counts with each text, because a reranker reads it with each. The tokenizer reads all of a text before it
    cuts it to the model's length, and takes seconds for a megabyte.
    """
    if len(texts) > settings.max_texts:
        raise HttpError(422, f"{field}: {len(texts)} texts, at most {settings.max_texts}; send fewer")
    count = sum(map(len, texts)) + len(query) * len(texts)
    if count > settings.max_characters:
        if query:
            of = ", because the query counts with each text"
        else:
            of = f" in {len(texts)} text{'s'[: len(texts) > 1]}"
        most = settings.max_characters
        raise HttpError(413, f"{field}: {count} characters{of}, at most {most}; send fewer or shorter texts")


def refuse_query(request: SimilarRequest, settings: Settings) -> None:
    """Raise HttpError with status 413 if the texts of a search are too long together."""
    text = request.text or request.id or ""
    refuse_texts([text], settings)
    count, most = len(text) + sum(map(len, request.without)), settings.max_characters
    if count > most:
        raise HttpError(413, f"without: {count} characters with the text, at most {most}; send fewer or shorter ones")


def refuse_truncated(tokens: Sequence[TokenIds], field: str, expected: str) -> None:
    """Raise HttpError with status 422 if one of the texts was cut, for a request that allows no truncation."""
    for place, text in enumerate(tokens):
        if text.is_truncated:
            found = f"more tokens than the model reads, with truncate false, expected at most {expected}"
            raise HttpError(422, f"{field}.{place}: {found}; shorten the text, or let it be truncated")


def refuse_tokens(count: int, texts: int, settings: Settings, field: str) -> None:
    """Raise HttpError with status 413 if a request has too many tokens; texts is the number of its texts."""
    if count > settings.max_tokens:
        found = f"{count} tokens in {texts} text{'s'[: texts > 1]}"
        raise HttpError(413, f"{field}: {found}, at most {settings.max_tokens}; send fewer or shorter texts")


def describe_limits(settings: Settings) -> str:
    """Return the description in the OpenAPI document of the limits of a request for embeddings."""
    return (
        f"At most {settings.max_texts} texts of {CHARACTERS_PER_TEXT} characters. More than {settings.max_characters} "
        f"characters together, or {settings.max_tokens} tokens with special tokens, get a 413."
    )


class ClientRequest(BaseModel):
    """A request body of clients of other APIs: unknown fields are ignored."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)
