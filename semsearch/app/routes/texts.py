"""The texts of a request, and the limits of their number, characters and tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from semsearch.app.http import HttpError
from semsearch.app.settings import Settings
from semsearch.engine.embedder import TokenIds
from semsearch.search.query import CHARACTERS_PER_TEXT

if TYPE_CHECKING:
    from semsearch.search.request import SimilarRequest


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


def refuse_query(request: "SimilarRequest", settings: Settings) -> None:
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
