"""The properties of a cross-encoder, read from its own files.

Two layouts exist. Most, such as ms-marco-MiniLM, are a transformers model with a classification head; modules.json can
list it as the only module. Others, such as ettin-reranker, are a transformer with pooling and further modules of
sentence-transformers, of which the last one returns the score.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from export.model.source.model_files import ModelError, read_json
from export.model.source.modules import MODULES, list_modules
from export.model.source.source import Source, read_route
from export.model.source.steps import SCORES

# Maximum tokens of a pair, as in ms-marco models. A search scores dozens of pairs; longer ones would take seconds.
MOST_TOKENS = 512
HEAD = "ForSequenceClassification"  # the end of the names of transformers' classes with a classification head
# Functions that keep the order of the logits, which are what the bundle's model returns
ACTIVATIONS = ("torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity")
# Numbers of labels. With two, the score is how much more likely the second label (1, "relevant") is.
LABELS = (1, 2)
EXPECTED = "expected a cross-encoder with one label, or with two of which the second means relevant"


def read_cross_encoder(folder: Path, name: str, revision: str | None = None) -> Source:
    """Return the properties of a cross-encoder; `dim` is its number of labels.

    `pooling` is "" if it has a classification head.
    Raises ModelError if a file is missing, contradicts another, or states something that the export does not support.
    """
    modules = list_modules(folder) if (folder / MODULES).exists() else []
    _check_sentence_config(folder / "config_sentence_transformers.json")
    if len(modules) > 1:
        kinds = [kind for kind, _ in modules]
        if (
            kinds[:2] != ["Transformer", "Pooling"]
            or kinds[-1] != "Dense"
            or not set(kinds[2:]) <= {"Dense", "LayerNorm"}
        ):
            raise ModelError(
                f"{folder / MODULES}: lists {', '.join(kinds)}; expected a cross-encoder: a Transformer alone, or with "
                "Pooling, Dense, LayerNorm and at last a Dense for the score; choose another model"
            )
        source = read_route(folder, name, revision, modules, last_output=SCORES)
        labels, where = source.full_dim, modules[-1][1] / "config.json"
        if source.steps[-1].activation != "Identity":
            raise ModelError(f"{where}: activation_function is {source.steps[-1].activation}, expected Identity")
    else:
        source = read_route(modules[0][1] if modules else folder, name, revision, None, pooling="")
        where = source.folder / "config.json"
        labels = _read_head(where)
    if labels not in LABELS:
        raise ModelError(f"{where}: has {labels} labels; {EXPECTED}; choose another model")
    return replace(source, dim=labels, max_tokens=min(source.max_tokens, MOST_TOKENS))


def _read_head(path: Path) -> int:
    """Return the number of labels of a model with a classification head, which its config.json states."""
    config = read_json(path)
    stated = config.get("architectures")
    name = stated[0] if isinstance(stated, list) and stated else None
    if not isinstance(name, str) or not name.endswith(HEAD):
        raise ModelError(f"{path}: architectures is {stated}, expected a class that ends with {HEAD}; {EXPECTED}")
    sentence = config.get("sentence_transformers")
    _check_activation(path, sentence.get("activation_fn") if isinstance(sentence, dict) else None)
    _check_activation(path, config.get("sbert_ce_default_activation_function"))
    labels = config.get("id2label")
    return len(labels) if isinstance(labels, dict) else int(config.get("num_labels", 2))  # transformers' default is 2


def _check_sentence_config(path: Path) -> None:
    config = read_json(path, optional=True)
    _check_activation(path, config.get("activation_fn"))
    if config.get("default_prompt_name") is not None:
        raise ModelError(f"{path}: has a default prompt, expected none for a cross-encoder; choose another model")


def _check_activation(path: Path, name: Any) -> None:
    """Raise ModelError for an activation that would change the order of the scores; None means the default."""
    if name is not None and name not in ACTIVATIONS:
        raise ModelError(
            f"{path}: the activation of the scores is {str(name)[:80]}, expected {' or '.join(ACTIVATIONS)}; choose "
            "another model"
        )
