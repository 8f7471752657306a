"""Read the fields of an event, and check the type of each.

Null counts as missing, because consoles and hand-written events contain it. Error messages have types and no values,
because an event contains its caller's secrets.
"""

from typing import Any, TypeVar

from function.errors import truncate

Event = dict[str, Any]
Field = TypeVar("Field", str, bool, list[Any], dict[str, Any])

JSON_NAMES = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
EXPECTED = JSON_NAMES | {bool: "true or false", list: "a list of strings"}
COMPARE = "compare the event with the examples in the folder deploy/events/"


class EventError(ValueError):
    """An event that cannot be read."""


def read(fields: Event, name: str, kind: type[Field], inside: str = "event", default: Field | None = None) -> Field:
    """Return a field of this type, or the default if the field is missing.

    Raises EventError if the field has another type, is missing without a default, or is not valid Unicode.
    """
    found = fields.get(name)
    if found is None and default is not None:
        return default
    if not isinstance(found, kind):
        raise wrong(f"{inside}.{name}", found, EXPECTED[kind])
    if isinstance(found, str) and not found.isascii():
        encode(found, f"{inside}.{name}")
    return found


def read_texts(fields: Event, name: str, inside: str = "event") -> list[str]:
    """Return a list of strings, empty if the field is missing.

    Raises EventError if the field is not such a list, or if a string is not valid Unicode.
    """
    texts = read(fields, name, list, inside, [])
    for text in texts:
        if not isinstance(text, str):
            raise wrong(f"{inside}.{name}", text, "strings in the list")
        if not text.isascii():
            encode(text, f"{inside}.{name}")
    return texts


def encode(text: str, where: str) -> bytes:
    """Return a text in UTF-8. Raises EventError if it contains half of a surrogate pair, as escapes in JSON can."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = f"half of a surrogate pair as character {error.start}"
        raise EventError(f"{shown(where)}: found {found}, expected valid Unicode; send both halves or none") from error


def shown(text: str) -> str:
    """Return a name from an event for errors and the log: in ASCII, on one line, truncated if it is long."""
    return truncate(ascii(text)[1:-1])


def wrong(where: str, value: object, expected: str) -> EventError:
    """Return the error for a field of another type."""
    found = JSON_NAMES.get(type(value), "nothing")
    return EventError(f"{shown(where)}: found {found}, expected {expected}; {COMPARE}")
