"""The values of a request: the functions that check them, and how an error shows them.

The models of requests call these functions, and so does a start, which imports no pydantic.
"""

from reprlib import Repr
from typing import Any

from pydantic_core import PydanticCustomError

LONGEST_ECHO = 60  # maximum characters of a wrong value, or of an unknown field's name, in an error

_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, LONGEST_ECHO, LONGEST_ECHO


def check_text(text: str) -> str:
    """Return the text. Raises PydanticCustomError if it is empty or blank."""
    if not text or text.isspace():
        raise PydanticCustomError("blank", "expected words, not an empty or blank text")
    return text


def whole_number(number: object) -> object:
    """Return 2 for 2.0: JSON has one kind of number, and a JSON Schema that asks for integers allows 2.0."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number


def check_filter_size(condition: dict[str, Any]) -> dict[str, Any]:
    """Return the filter. Raises PydanticCustomError if it has too many values."""
    from semsearch.engine.metadata.filters import MOST_FILTER_VALUES, count_values  # only a request with a filter

    if (count := count_values(condition)) > MOST_FILTER_VALUES:
        message = f"expected at most {MOST_FILTER_VALUES} values, lists and objects included, not {count}"
        raise PydanticCustomError("too_long", message)
    return condition


def union_tag(form: str) -> str:
    """Return the tag of one form of a value; `describe_errors` distinguishes it from a field's name."""
    return f"<{form}>"


NUMBER_FORM, WORD_FORM = union_tag("number"), union_tag("word")  # the forms of `min_score`
TEXT_FORM, TEXTS_FORM = union_tag("text"), union_tag("texts")  # the forms of a field that takes one text or several


def form_of_score(value: object) -> str:
    """Return the form of a value of `min_score`, for a discriminated union."""
    if isinstance(value, str):
        return WORD_FORM
    return NUMBER_FORM


def form_of_texts(value: object) -> str:
    """Return the form of a value that is one text or several, for a discriminated union."""
    if isinstance(value, list):
        return TEXTS_FORM
    return TEXT_FORM


def truncate(text: str) -> str:
    """Return a text, or its first LONGEST_ECHO characters and an ellipsis if it is longer."""
    if len(text) <= LONGEST_ECHO:
        return text
    return text[:LONGEST_ECHO] + "…"


def echo(value: object) -> str:
    """Return the repr of a JSON value; of a long or deep one only some of it, in about LONGEST_ECHO characters."""
    return truncate(_SHORT.repr(value))
