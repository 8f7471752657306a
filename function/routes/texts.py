"""The fields of requests that hold texts or whole numbers, and the limits of texts, tokens and fields."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from function.errors import union_tag
from function.http import HttpError
from function.settings import CHARACTERS_PER_TEXT, Settings

LARGEST_GROWTH = 18  # characters in NFKC of one character: U+FDFA has the most
PIECE = 128  # characters of a text that are compared with their NFKC together

# maximum fields of one body; pydantic describes each unknown field, which takes seconds for a body of 6 MB
MOST_FIELDS = 100

TEXT, TEXTS = union_tag("text"), union_tag("texts")  # the forms of a field that takes one text or several


def text_or_texts(value: object) -> str:
    """Return the form of a field's value, for a discriminated union."""
    return TEXTS if isinstance(value, list) else TEXT


def _check_text(text: str) -> str:
    if not text or text.isspace():
        raise PydanticCustomError("blank", "expected words, not an empty or blank text")
    return _check_unicode(text)


def _check_unicode(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can escape half of a surrogate pair: "\\ud800"
        raise PydanticCustomError("unicode", "expected valid Unicode, not half a surrogate pair") from error
    return text


# The JSON Schema of a text that is not blank. U+001C to U+001F and U+0085 are white space in Python, but not in every
# regex.
NOT_BLANK = {"minLength": 1, "pattern": r"[^\s\x1c-\x1f\x85]"}


ClientText = Annotated[str, AfterValidator(_check_unicode), Field(min_length=1)]  # clients send blank texts too


def whole_number(number: object) -> object:
    """Return 2 for 2.0: JSON has one kind of number, and a JSON Schema that asks for integers allows 2.0."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


RequestText = Annotated[str, AfterValidator(_check_text), Field(json_schema_extra=NOT_BLANK)]


def refuse_characters(texts: Sequence[str], settings: Settings, field: str = "text", query: str = "") -> None:
    """Raise HttpError with status 413 if texts have too many characters, each or together.

    A query counts with each text, because a reranker reads it with each. The tokenizer reads all of a text before it
    cuts it to the model's length, and takes seconds for a megabyte. Keyword search and some tokenizers read a text in
    NFKC, so its characters count there too: one of them can become 18.
    """
    count, longest = sum(map(len, texts)) + len(query) * len(texts), max(len(query), *map(len, texts))
    if count > settings.max_characters:
        of = ", because the query counts with each text" if query else f" in {len(texts)} text{'s'[: len(texts) > 1]}"
        most = settings.max_characters
        raise HttpError(413, f"{field}: {count} characters{of}, at most {most}; send fewer or shorter texts")
    if longest > CHARACTERS_PER_TEXT:
        found = f"a text of {longest} characters"
        raise HttpError(413, f"{field}: {found}, at most {CHARACTERS_PER_TEXT}; split it")
    if count <= CHARACTERS_PER_TEXT // LARGEST_GROWTH:
        return
    count, of_query = 0, _nfkc_length(query)
    for text in texts:
        length = _nfkc_length(text)
        count += length + of_query
        for characters, most in ((max(length, of_query), CHARACTERS_PER_TEXT), (count, settings.max_characters)):
            if characters > most:
                beyond = f"more than {most} characters in Unicode's form NFKC"
                raise HttpError(413, f"{field}: {beyond}, at most {most}; send fewer or shorter texts")


def _nfkc_length(text: str) -> int:
    """Return the number of characters of a text in NFKC, those of composed marks counted one by one.

    The text is read in pieces, because NFKC takes quadratic time for a run of marks. Most pieces are in NFKC already,
    which is quick to find out.
    """
    if text.isascii():
        return len(text)
    from unicodedata import is_normalized  # only long texts that are not ASCII need it

    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
    return sum(len(piece) if is_normalized("NFKC", piece) else sum(map(_growth, piece)) for piece in pieces)


@lru_cache(1024)
def _growth(character: str) -> int:
    from unicodedata import normalize

    return len(normalize("NFKC", character))


def refuse_fields(found: object, where: str) -> None:
    """Raise HttpError with status 422 if a JSON value is an object with more than MOST_FIELDS fields."""
    if isinstance(found, dict) and len(found) > MOST_FIELDS:
        advice = "send only those that /openapi.json describes"
        raise HttpError(422, f"{where}: {len(found)} fields, expected at most {MOST_FIELDS}; {advice}")


def refuse_tokens(count: int, texts: int, settings: Settings, field: str) -> None:
    """Raise HttpError with status 413 if a request has too many tokens; texts is the number of its texts."""
    if count > settings.max_tokens:
        found = f"{count} tokens in {texts} text{'s'[: texts > 1]}"
        raise HttpError(413, f"{field}: {found}, at most {settings.max_tokens}; send fewer or shorter texts")


def describe_limits(settings: Settings) -> str:
    """Return the description in the OpenAPI document of the limits of a request for embeddings."""
    return (
        f"At most {settings.max_texts} texts. More than {settings.max_characters} characters together, "
        f"{CHARACTERS_PER_TEXT} in one text, or {settings.max_tokens} tokens with special tokens get a 413."
    )


class StrictRequest(BaseModel):
    """A request body that accepts neither values of another type nor unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")


class ClientRequest(BaseModel):
    """A request body of clients of other APIs: unknown fields are ignored."""

    model_config = ConfigDict(strict=True)
