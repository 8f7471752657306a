"""The small files beside a model's weights: JSON and the prompts, read with errors that name the file."""

import json
from pathlib import Path
from typing import Any

DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # in order of preference


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


def read_prompts(path: Path) -> dict[str, str]:
    """Return the prompts in config_sentence_transformers.json by role ("query", "document"), without the empty ones.

    A role has the prompt of its own name, or else the file's default prompt. A missing file means no prompts.
    Raises ModelError if the prompts are not texts by name, or if the default prompt is missing.
    """
    config = read_json(path, optional=True)
    prompts = _texts_by_name(path, config.get("prompts"))
    name = config.get("default_prompt_name")
    if name is not None and (not isinstance(name, str) or name not in prompts):
        raise ModelError(
            f"{path}: default_prompt_name is {name!r}, expected null or one of {', '.join(prompts) or 'no prompts'}; "
            "correct the file or download the model again"
        )
    default = prompts[name] if name is not None else ""
    query = prompts.get("query") or default
    document = next((prompts[name] for name in DOCUMENT_PROMPTS if prompts.get(name)), default)
    return {role: text for role, text in (("query", query), ("document", document)) if text}


def _texts_by_name(path: Path, prompts: Any) -> dict[str, str]:
    if prompts is None:
        return {}
    remedy = 'expected texts by name, as in {"query": "query: "}; correct the file or download the model again'
    if not isinstance(prompts, dict):
        raise ModelError(f"{path}: prompts is a {type(prompts).__name__}, {remedy}")
    for name, text in prompts.items():
        if not isinstance(text, str):
            raise ModelError(f"{path}: the prompt {name!r} is {text!r}, {remedy}")
        # half a surrogate pair is valid in JSON and impossible in UTF-8
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ModelError(f"{path}: the prompt {name!r} is {text!a}, which is not Unicode text; {remedy}")
    return prompts
