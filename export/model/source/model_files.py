"""The files of a model: JSON, prompts and weights. A damaged file is refused with its path and the reader's message."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from export.errors import first_line

WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"  # lists the files if the weights are in several
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # in order of preference


class ModelError(ValueError):
    """A model that cannot be exported: the message says where, what was found, what was expected and what to do."""


@contextmanager
def reading(place: Path) -> Iterator[None]:
    """Raise ModelError, with the message of the library, for whatever the files in this place make it raise."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # a bad value can fail anywhere in transformers, tokenizers and safetensors
        raise ModelError(
            f"{place}: cannot be read as a model ({first_line(error)}); expected a sentence-transformer of the BERT "
            "family with a fast tokenizer; check the path, or download or save the model again"
        ) from error


def read_json(path: Path, optional: bool = False) -> Any:
    """Return what a JSON file holds; an optional file that is missing counts as an empty object."""
    if optional and not path.exists():
        return {}
    with reading(path):
        return json.loads(path.read_bytes())


def read_prompts(path: Path) -> dict[str, str]:
    """Return the prompts in config_sentence_transformers.json by role ("query", "document"), without the empty ones.

    A role has the prompt of its own name, or else the file's default prompt. A missing file means no prompts.
    """
    config = read_json(path, optional=True)
    with reading(path):
        prompts = {name: text.encode().decode() for name, text in (config.get("prompts") or {}).items()}
        default = "" if config.get("default_prompt_name") is None else prompts[config["default_prompt_name"]]
        query = prompts.get("query") or default
        document = next((prompts[name] for name in DOCUMENT_PROMPTS if prompts.get(name)), default)
    return {role: text for role, text in (("query", query), ("document", document)) if text}


def weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers reads weights from: model.safetensors, or the shards that its index names."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / SHARDS).is_file():
        raise ModelError(
            f"{folder}: has no {WEIGHTS}; expected weights in safetensors, which run no code when they are read; save "
            "the model again with save_pretrained(folder, safe_serialization=True)"
        )
    with reading(folder / SHARDS):
        return [folder / Path(name).name for name in sorted(set(read_json(folder / SHARDS)["weight_map"].values()))]


def hash_weights(*folders: Path) -> str:
    """Return the SHA-256 of the weights in these folders, over the files of each in the order of their names."""
    digest = hashlib.sha256()
    for folder in folders:
        with reading(folder):
            for path in weight_files(folder):
                digest.update(path.read_bytes())
    return digest.hexdigest()
