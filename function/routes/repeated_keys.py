"""Refuse JSON in which an object has a key twice: nobody could know which value counts.

Imported when it is needed: a request without more colons than fields has no repeated key.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast


class RepeatedKeyError(ValueError):
    """A key that an object has several times; `place` is the path of the key, from the outermost object."""

    def __init__(self, place: Sequence[str], count: int) -> None:
        self.place = [key.encode("utf-8", "replace").decode() for key in place]  # JSON can escape half a surrogate pair
        self.found = f"found {count} times in one object, expected each key once; send one of them"
        super().__init__(f"{'.'.join(self.place)}: {self.found}")


class _RepeatedError(Exception):
    pass


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        raise _RepeatedError
    return found


_DECODER = json.JSONDecoder(object_pairs_hook=_each_once)


def refuse_repeated_keys(body: bytes) -> object:
    """Return the value that a body of JSON has. Raise RepeatedKeyError if an object in it has a key twice.

    Returns None for a body that is not JSON, which the code that reads it refuses.
    """
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        return _DECODER.decode(text)
    except _RepeatedError:
        raise _find_repeated(json.loads(text, object_pairs_hook=tuple)) from None
    except (ValueError, RecursionError):
        return None


def _find_repeated(value: object) -> RepeatedKeyError:
    """Return the error for the first repeated key. Objects are tuples of pairs, arrays are lists.

    Only one path at a time is in memory, since a body may hold millions of values.
    """
    place: list[str] = []
    pending: list[Iterator[tuple[object, object]]] = []
    while True:
        if isinstance(value, tuple):
            for key, count in Counter(name for name, _ in value).most_common(1):
                if count > 1:
                    return RepeatedKeyError([*place, key], count)
        pending.append(iter(value) if isinstance(value, tuple) else enumerate(cast("list[object]", value)))
        while (inner := next((each for each in pending[-1] if isinstance(each[1], tuple | list)), None)) is None:
            pending.pop()
            place.pop()
        place.append(str(inner[0]))
        value = inner[1]
