"""The properties of a cross-encoder, read from its own files.

Two layouts exist. Most, such as ms-marco-MiniLM, are a transformers model with a classification head; modules.json can
list it as the only module. Others, such as ettin-reranker, are a transformer with pooling and further modules of
sentence-transformers, of which the last one returns the score.
"""

from dataclasses import replace
from pathlib import Path

from export.model.source.model_files import ModelError, read_json, reading
from export.model.source.modules import MODULES, SCORES, list_modules
from export.model.source.source import Source, read_route

# Maximum tokens of a pair, as in ms-marco models. A search scores dozens of pairs; longer ones would take seconds.
MOST_TOKENS = 512
HEAD = "ForSequenceClassification"  # the end of the names of transformers' classes with a classification head
# Functions that keep the order of the logits, which are what the bundle's model returns; None is the default
ACTIVATIONS = (None, "torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity")
# Numbers of labels. With two, the score is how much more likely the second label (1, "relevant") is.
LABELS = (1, 2)


def read_cross_encoder(folder: Path, name: str, revision: str | None = None) -> Source:
    """Return the properties of a cross-encoder; `dim` is its number of labels.

    `pooling` is "" if it has a classification head.
    Raises ModelError if a file is missing or damaged, or states something that the export does not support.
    """
    modules = list_modules(folder) if (folder / MODULES).exists() else []
    kinds = [kind for kind, _ in modules]
    sentence = read_json(folder / "config_sentence_transformers.json", optional=True)
    with reading(folder):
        activations = {sentence.get("activation_fn")}
        prompt = sentence.get("default_prompt_name")
    if len(modules) > 1:
        is_supported = kinds[:2] == ["Transformer", "Pooling"] and set(kinds[2:]) <= {"Dense", "LayerNorm"}
        if not is_supported or kinds[-1] != "Dense":
            raise ModelError(
                f"{folder / MODULES}: lists {', '.join(kinds)}; expected a cross-encoder: a Transformer alone, or with "
                "Pooling, Dense, LayerNorm and at last a Dense for the score; choose another model"
            )
        source = read_route(folder, name, revision, modules, last_output=SCORES)
        labels = source.full_dim
        activations.add(f"torch.nn.modules.linear.{source.steps[-1].activation}")
    else:
        source = read_route(modules[0][1] if modules else folder, name, revision, None, pooling="")
        config = read_json(source.folder / "config.json")
        with reading(source.folder / "config.json"):
            labels = len(config.get("id2label") or range(config.get("num_labels", 2)))  # transformers' default is 2
            labels = labels if str(config["architectures"][0]).endswith(HEAD) else 0
            stated = config.get("sentence_transformers") or {}
            activations |= {stated.get("activation_fn"), config.get("sbert_ce_default_activation_function")}
    if labels not in LABELS or prompt is not None or not activations.issubset(ACTIVATIONS):
        raise ModelError(
            f"{folder}: has {labels} labels, the default prompt {prompt} and the activation "
            f"{', '.join(map(str, activations - {None})) or None}; expected a cross-encoder with one label, or two of "
            f"which the second means relevant, no prompt, and one of {', '.join(map(str, ACTIVATIONS[1:]))}; choose "
            "another model"
        )
    return replace(source, dim=labels, max_tokens=min(source.max_tokens, MOST_TOKENS))
