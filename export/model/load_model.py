"""Load a model with transformers, and check that each of its tensors comes from the checkpoint.

If a checkpoint lacks a tensor that the model needs, transformers and optimum initialize that tensor with random
numbers and print a warning. Such a model could be exported, and its search would find nothing.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from export.error_text import first_line
from export.model.source.model_files import ModelError
from export.model.source.source import Source
from export.model.source.weights import SHARDS, WEIGHTS, read_shapes

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The export does not read these tensors: it pools the last layer's token vectors itself.
POOLER = re.compile(r"^pooler\.")
# Unused tensors of other tasks, or of older releases.
LEFTOVER = re.compile(
    r"^("
    r"cls|lm_head|classifier|pre_classifier|qa_outputs|predictions|sop_classifier|seq_relationship|pooler|"
    r"vocab_transform|vocab_layer_norm|vocab_projector|"
    r"discriminator_predictions|generator_predictions|generator_lm_head|"
    r"embeddings\.(position_ids|token_type_ids)$"
    r")(\.|$)"
)
NAMES_IN_A_MESSAGE = 3


def silence_transformers() -> None:
    """Switch off transformers' warnings and progress bars; this module checks what the warnings report."""
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def load_model(source: Source) -> "PreTrainedModel":
    """Return the source's own model, in float32, ready to run. A source without pooling has a classification head.

    Raises ModelError if the checkpoint is damaged, if a tensor is missing, unknown or of another shape than the
    model's, or if a weight is not a finite number.
    """
    import torch  # torch and transformers take seconds to import
    from transformers import AutoModel, AutoModelForSequenceClassification

    shapes = read_shapes(source.folder)
    silence_transformers()
    try:
        model, loading = (AutoModel if source.pooling else AutoModelForSequenceClassification).from_pretrained(
            str(source.folder),
            dtype=torch.float32,
            attn_implementation="eager",  # the plainest one
            ignore_mismatched_sizes=True,  # they are reported all together below
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except Exception as error:  # a bad value in config.json can fail anywhere in transformers
        raise ModelError(
            f"{source.folder}: transformers cannot load the model ({first_line(error)}); expected a config.json and "
            "weights that belong together; download the model again"
        ) from error
    _check_names_and_shapes(source, model, loading, shapes)
    _check_values(source, model)
    model.eval()
    return cast("PreTrainedModel", model)


def _check_names_and_shapes(
    source: Source, model: "PreTrainedModel", loading: dict[str, Iterable[str]], shapes: dict[str, list[int]]
) -> None:
    """Raise ModelError unless the checkpoint holds just the model's tensors; loading is transformers' own report."""
    tensors = model.state_dict()
    unfilled = [name for name, tensor in tensors.items() if tensor.is_meta]  # listed in the index, missing in the file
    expected = {name: list(tensor.shape) for name, tensor in tensors.items()}
    differences = {
        "missing": [*unfilled, *(name for name in loading["missing_keys"] if not POOLER.match(name))],
        "unexpected": [name for name in loading["unexpected_keys"] if not LEFTOVER.match(name)],
        "of another shape": [
            f"{name} {_shape_of(name, shapes)} instead of {expected[name]}" for name in loading["mismatched_keys"]
        ],
    }
    found = [f"{len(names)} {kind} ({_some(names)})" for kind, names in differences.items() if names]
    if found:
        raise ModelError(
            f"{_weights(source)}: {', '.join(found)}; expected exactly the tensors of the {source.family} model that "
            "config.json describes; download the model again, or save it again with its own config"
        )


def _check_values(source: Source, model: "PreTrainedModel") -> None:
    """Raise ModelError if a weight is NaN or infinite."""
    import torch

    broken = [name for name, tensor in model.state_dict().items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        raise ModelError(
            f"{_weights(source)}: NaN or infinity in {len(broken)} tensors ({_some(broken)}); expected finite "
            "numbers; download the model again, or save it in float32 if its numbers are too large for 16 bits"
        )


def _weights(source: Source) -> Path:
    single = source.folder / WEIGHTS
    return single if single.is_file() else source.folder / SHARDS


def _shape_of(name: str, shapes: dict[str, list[int]]) -> list[int] | None:
    """Return the shape of a tensor in the checkpoint, where the model's name may precede the tensor's."""
    return next((shape for stored, shape in shapes.items() if stored == name or stored.endswith(f".{name}")), None)


def _some(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    rest = len(names) - NAMES_IN_A_MESSAGE
    return ", ".join(sorted(names)[:NAMES_IN_A_MESSAGE]) + (f" and {rest} more" if rest > 0 else "")
