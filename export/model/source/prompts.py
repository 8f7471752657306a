"""The prompts in config_sentence_transformers.json, which a model expects before a query or a document."""

from pathlib import Path
from typing import Any

from export.model.source.model_files import ModelError, read_json

DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # in order of preference


def read_prompts(path: Path) -> dict[str, str]:
    """Return the prompts by role ("query", "document"), without the empty ones.

    A role has the prompt of its own name, or else the file's default prompt. A missing file
    means no prompts. Raises ModelError if the prompts are not texts by name, or if the default prompt is missing.
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
