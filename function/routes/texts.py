"""What a request may call a text, and what a whole number."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from function.errors import error_reply


def _check_text(text: str) -> str:
    if not text or text.isspace():
        raise PydanticCustomError("blank", "expected words, not an empty or blank text")
    try:
        text.encode()
    except UnicodeEncodeError as error:  # JSON can escape half of a surrogate pair: "\\ud800"
        raise PydanticCustomError("unicode", "expected valid Unicode, not half a surrogate pair") from error
    return text


# The same for the OpenAPI document. U+001C to U+001F and U+0085 are white space for Python and not for every regex.
NOT_BLANK = {"minLength": 1, "pattern": r"[^\s\x1c-\x1f\x85]"}


def whole_number(number: object) -> object:
    """Return 2 for 2.0: JSON has one kind of number, and a JSON Schema that asks for integers allows 2.0."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


RequestText = Annotated[str, AfterValidator(_check_text), Field(json_schema_extra=NOT_BLANK)]


def refuse_characters(texts: Sequence[str], most: int) -> Response | None:
    """Return the 413 for texts that have more than `most` characters together, None if they do not.

    The tokenizer reads all of a text before it cuts it to the model's length, and takes seconds for a megabyte.
    """
    count = sum(map(len, texts))
    if count <= most:
        return None
    found = f"{count} characters in {len(texts)} text{'s'[: len(texts) > 1]}"
    return error_reply(413, f"text: {found}, at most {most}; send fewer or shorter texts")


class StrictRequest(BaseModel):
    """A request body that takes no value of another type and no field it does not know."""

    model_config = ConfigDict(strict=True, extra="forbid")
