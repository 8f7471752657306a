"""What `Search` sends, to a bundle in this process or to a server: typed arguments, as the JSON that both read."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from semsearch.engine.errors import ExpectedError
from semsearch.engine.values import TEXT_TYPES, Id, exact_number, exact_time, id_of_number, id_text
from semsearch.search.query import CHARACTERS_PER_TEXT, MOST_AROUND

PROMPT_ROLES = ("query", "document")
# the arguments' names of the fields that have others
ARGUMENTS = {"num_results": "top_k", "rerank.candidates": "rerank", "prompt_name": "role"}
RENAMED = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in ARGUMENTS))

Role = Literal["query", "document"]
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a bundle holds. `version` is the SHA-256 of its manifest.json, None if the server does not show it."""

    model: str
    version: str | None
    rows: int
    columns: dict[str, str]  # types by name
    has_texts: bool  # False if they are in S3 Vectors
    made: str  # when the index was made, such as 2026-11-27T10:00:00Z; "" if an older server does not say


class ServerError(ExpectedError, OSError):
    """A server that did not answer, or with an error. `status` is that of HTTP, None if there was no answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def json_value(value: object, where: str) -> Any:
    """Return a value as JSON can hold it: scalars of NumPy as Python's, dates as text, any other collection as a list.

    A Decimal is a number, and a UUID, a Period or an Interval is its text, as `index` keeps them. Raises ValueError,
    which begins with `where`, for a value that is none of these, or that would lose digits.
    """
    if value is None or type(value) in (str, int, bool):
        return value
    if type(value).__name__ in TEXT_TYPES:
        return str(value)
    if isinstance(value, np.datetime64 | datetime):
        return _time(value, where)
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        return json_value(value.item(), where)
    if isinstance(value, Decimal | float):
        return _number(value, where)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(name): json_value(each, f"{where}.{name}") for name, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [json_value(each, where) for each in value]
    found = f"{type(value).__name__} {str(value)[:60]!r}"
    raise ValueError(
        f"{where}: found {found}, expected text, a number, a date, True, False, None or a list; convert it"
    )


def _time(value: np.datetime64 | datetime, where: str) -> str:
    found = exact_time(value)
    if found is None:
        raise ValueError(f"{where}: found {value}, expected a time in whole microseconds; round it")
    return found


def _number(value: Decimal | float, where: str) -> int | float:
    if not math.isfinite(value):
        raise ValueError(f"{where}: found {value}, expected a finite number")
    found = exact_number(value) if isinstance(value, Decimal) else float(value)
    if found is None:
        raise ValueError(f"{where}: found {value}, expected a number that 64 bits hold; round it")
    return found


def with_ids_as_text(condition: Any, *, is_id: bool = False) -> Any:
    """Return a filter in JSON with text in place of numbers for the column `id`: `index` made text of them."""
    if isinstance(condition, list):
        return [with_ids_as_text(each, is_id=is_id) for each in condition]
    if isinstance(condition, dict):
        return {name: with_ids_as_text(each, is_id=is_id or name == "id") for name, each in condition.items()}
    if is_id and type(condition) in (int, float):
        return id_of_number(condition)
    return condition


def search_body(text: str | None, id: Id | None, stated: Mapping[str, Any]) -> Body:
    """Return the JSON of /similar for the arguments of a search that differ from their defaults.

    Other fields are left out: an older server refuses fields that it does not know.
    Raises ValueError for a value that JSON cannot hold, and for a text that is too long.
    """
    body: Body = {name: json_value(value, name) for name, value in stated.items() if name != "vector"}
    if "vector" in stated:
        body["vector"] = vector_of(stated["vector"])
    if "top_k" in body:
        body["num_results"] = body.pop("top_k")
    if body.get("rerank") is not None:
        body["rerank"] = {"candidates": body["rerank"]}
    if text is not None:
        body["text"] = json_value(text, "text")
    if id is not None:
        body["id"] = checked_id(id)
    if text is None and id is None and "vector" not in body:
        body.setdefault("filter", {})  # lists all texts; a request without it is refused
    for name in ("text", "id"):
        if isinstance(body.get(name), str):
            _check_length(body[name], name)
    return body


def checked_id(id: object) -> str | None:
    """Return an id as text, as `index` stores it. Raises ValueError for another type."""
    if id is None:
        return None
    found = id_text(json_value(id, "id"))
    if found is None:
        raise ValueError(f"id: found {id!r:.60}, expected text or a number")
    return found


def checked_ids(ids: Iterable[object]) -> list[str]:
    """Return ids as text. Raises ValueError for a string, whose characters would be ids, and for other types in it."""
    if isinstance(ids, str):
        raise ValueError(f"ids: found {ids!r:.60}, expected several ids, such as a list")
    return [checked_id(each) or "" for each in ids]


def requested_columns(body: Body) -> list[str]:
    """Return the columns that a frame of the hits of a request has besides those that each frame has."""
    requested = {
        "group": body.get("group_by") is not None,
        "snippet": bool(body.get("highlights")),
        "source": "source" in body.get("include", ()),
    }
    return [name for name, is_requested in requested.items() if is_requested]


def vector_of(vector: object) -> list[float]:
    """Return the numbers of an embedding, such as an array or a tensor. Raises ValueError for anything else."""
    try:
        numbers = np.asarray(vector, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"vector: found {vector!s:.60}, expected finite numbers in one dimension, such as (384,)")
    found: list[float] = numbers.tolist()
    return found


def count_around(count: object, where: str) -> int:
    """Return a number of passages around another one. Raises ValueError for one that a server would refuse."""
    found = json_value(count, where)
    if type(found) is not int or not 0 <= found <= MOST_AROUND:
        raise ValueError(f"{where}: found {count!r:.60}, expected a whole number from 0 to {MOST_AROUND}")
    return found


def checked_texts(texts: object) -> list[str]:
    """Return the texts to embed. Raises ValueError, which names the first one that is blank, too long or no text."""
    several = json_value(texts, "texts")
    if not isinstance(several, list) or not several:
        raise ValueError(f"texts: found {texts!r:.60}, expected a text or a list with at least one")
    for number, text in enumerate(several):
        where = f"texts.{number}"
        if not isinstance(text, str) or not text or text.isspace():
            raise ValueError(f"{where}: found {text!r:.60}, expected words, not a blank text or another type")
        if not _is_unicode(text):
            raise ValueError(f"{where}: found half a surrogate pair, expected valid Unicode")
        _check_length(text, where)
    return several


def check_role(role: object) -> None:
    """Raise ValueError unless this is a role of `embed`."""
    if role is not None and role not in PROMPT_ROLES:
        raise ValueError(
            f"role: found {role!r}, expected {' or '.join(map(repr, PROMPT_ROLES))}, or None for no prompt"
        )


def as_written(message: str) -> str:
    """Return an error about fields of a request with the names of the arguments."""
    return RENAMED.sub(lambda found: ARGUMENTS[found[0]], message)


def _check_length(text: str, where: str) -> None:
    if len(text) > CHARACTERS_PER_TEXT:
        found = f"a text of {len(text)} characters"
        raise ValueError(f"{where}: {found}, at most {CHARACTERS_PER_TEXT}; split it")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
