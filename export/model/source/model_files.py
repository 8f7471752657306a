"""The small files beside a model's weights: JSON and the numbers in it, read with errors that name the file."""

import json
from pathlib import Path
from typing import Any


class ModelError(ValueError):
    """A model that cannot be exported: the message says where, what was found, what was expected and what to do."""


def read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    """Return the JSON object in a file; an optional file that is missing counts as an empty object.

    Raises ModelError if the file cannot be read or holds anything but an object.
    """
    if optional and not path.exists():
        return {}
    found = read_any_json(path)
    if not isinstance(found, dict):
        raise ModelError(f"{path}: holds a {type(found).__name__}, expected an object; download the model again")
    return found


def read_any_json(path: Path) -> Any:
    """Return what a JSON file holds. Raises ModelError if the file is missing, unreadable or not JSON."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(
            f"{path}: is missing; expected a sentence-transformer's folder; check the path or download the model again"
        ) from None
    except OSError as error:
        raise ModelError(
            f"{path}: cannot be read ({error.strerror}); expected a file; check its permissions"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: {error}; expected JSON; download the model again") from error


def whole_number(path: Path, config: dict[str, Any], key: str, least: int = 1) -> int:
    """Return the whole number that a config states under a key.

    path is the config's file, for the error. Raises ModelError if the key is missing, if the value is not a whole
    number (2.5, "abc" and true are not) or if it is less than `least`.
    """
    if key not in config:
        raise ModelError(f"{path}: has no {key}; expected a model of the BERT family; use one of those")
    value = config[key]
    if type(value) is not int or value < least:
        raise ModelError(
            f"{path}: {key} is {json.dumps(value)}, expected a whole number from {least} up; correct the file or "
            "download the model again"
        )
    return value
