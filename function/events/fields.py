"""The fields of events, read with a check of their types.

Null counts as missing, because consoles and hand-written events send it for what they leave out. Messages name types
and no values: an event holds its callers' secrets.
"""

from typing import Any

from function.errors import cut

Event = dict[str, Any]

JSON_NAMES = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
COMPARE = "compare the event with the examples in the folder deploy/events/"


class EventError(ValueError):
    """An event that cannot be read; the message names the field, what was found and what was expected."""


def read_text(fields: Event, name: str, inside: str = "event") -> str:
    """Return a field that must be a string of valid Unicode. Raises EventError if it is not."""
    text = fields.get(name)
    if not isinstance(text, str):
        raise wrong(f"{inside}.{name}", text, "a string")
    if not text.isascii():
        encode(text, f"{inside}.{name}")
    return text


def read_optional_text(fields: Event, name: str, default: str, inside: str = "event") -> str:
    """Return a field that must be a string of valid Unicode if it is there. Raises EventError if it is not."""
    return default if fields.get(name) is None else read_text(fields, name, inside)


def read_texts(fields: Event, name: str, inside: str = "event") -> list[str]:
    """Return a field that must be a list of strings, empty if it is missing. Raises EventError if it is not."""
    texts = fields.get(name)
    if texts is None:
        return []
    if not isinstance(texts, list):
        raise wrong(f"{inside}.{name}", texts, "a list of strings")
    for text in texts:
        if not isinstance(text, str):
            raise wrong(f"{inside}.{name}", text, "strings in the list")
        if not text.isascii():
            encode(text, f"{inside}.{name}")
    return texts


def read_object(fields: Event, name: str, inside: str = "event") -> Event:
    """Return a field that must be an object, empty if it is missing. Raises EventError if it is not."""
    found = fields.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise wrong(f"{inside}.{name}", found, "an object")
    return found


def encode(text: str, where: str) -> bytes:
    """Return a text in UTF-8. Raises EventError if JSON has escaped half of a surrogate pair in it."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        found = f"half of a surrogate pair as character {error.start}"
        raise EventError(f"{shown(where)}: found {found}, expected valid Unicode; send both halves or none") from error


def shown(text: str) -> str:
    """Return a name from an event as an error may show it: in part if it is long, in ASCII, on one line."""
    return cut(ascii(text)[1:-1])


def wrong(where: str, value: object, expected: str) -> EventError:
    """Return the error for a field of another type."""
    found = JSON_NAMES.get(type(value), "nothing")
    return EventError(f"{shown(where)}: found {found}, expected {expected}; {COMPARE}")
