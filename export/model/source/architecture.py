"""A model's architecture, read from config.json: its family, its sizes and how many tokens it can read."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.model.source.model_files import ModelError, read_json, whole_number

# model_type in config.json; each is exported and compared with transformers in tests/export/model/test_families.py
FAMILIES = (
    *("albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "mobilebert", "modernbert", "mpnet"),
    *("roberta", "roformer", "xlm-roberta"),
)
# These families count positions from the padding id + 1 instead of from 0.
OFFSET_POSITIONS = ("camembert", "mpnet", "roberta", "xlm-roberta")


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes that config.json states."""

    family: str  # one of FAMILIES
    hidden_size: int
    attention_heads: int
    vocabulary_size: int  # rows of the embedding table
    positions: int  # tokens of the longest text that the model can read, special tokens included


def read_architecture(path: Path) -> Architecture:
    """Read a config.json. Raises ModelError for another family, and for missing or impossible sizes."""
    config = read_json(path)
    family = config.get("model_type")
    if config.get("auto_map"):
        raise ModelError(
            f"{path}: auto_map names Python code that comes with the model ({json.dumps(config['auto_map'])[:80]}), "
            "expected a model of transformers itself; the export runs no code of others: choose another model"
        )
    if family not in FAMILIES:
        raise ModelError(
            f"{path}: model_type is {family}, expected a model of the BERT family ({', '.join(FAMILIES)}); "
            "choose one of those"
        )
    hidden_size = whole_number(path, config, _either(config, "hidden_size", "dim"))
    heads = whole_number(path, config, _either(config, "num_attention_heads", "n_heads"))
    whole_number(path, config, _either(config, "num_hidden_layers", "n_layers"))
    if hidden_size % heads:
        raise ModelError(
            f"{path}: a hidden size of {hidden_size} and {heads} attention heads, expected a hidden size that the "
            "heads divide; correct the file or download the model again"
        )
    positions = whole_number(path, config, "max_position_embeddings")
    if family in OFFSET_POSITIONS:
        before = 1 + (whole_number(path, config, "pad_token_id", least=0) if "pad_token_id" in config else 1)
        if positions <= before:
            raise ModelError(
                f"{path}: max_position_embeddings is {positions}, expected more than the {before} that {family} "
                "leaves unused; correct the file or download the model again"
            )
        positions -= before
    return Architecture(
        family=family,
        hidden_size=hidden_size,
        attention_heads=heads,
        vocabulary_size=whole_number(path, config, "vocab_size"),
        positions=positions,
    )


def _either(config: dict[str, Any], usual: str, distilbert: str) -> str:
    """Return the key of a size in the config: the usual one, or else DistilBERT's."""
    return usual if usual in config or distilbert not in config else distilbert
