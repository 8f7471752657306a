"""Load a model with transformers, and check that each of its tensors comes from the checkpoint.

If a checkpoint lacks a tensor that the model needs, transformers and optimum initialize that tensor with random
numbers and print a warning. Such a model could be exported, and its search would find nothing.
"""

from typing import TYPE_CHECKING, cast

from export.model.source.model_files import ModelError, reading
from export.model.source.source import Source

if TYPE_CHECKING:
    from transformers import PreTrainedModel

POOLER = "pooler."  # unused tensors: the export pools the last layer's token vectors itself


def silence_transformers() -> None:
    """Switch off transformers' warnings and progress bars; this module checks what the warnings report."""
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def load_model(source: Source) -> "PreTrainedModel":
    """Return the source's own model, in float32, ready to run. A source without pooling has a classification head.

    Raises ModelError if transformers cannot load the checkpoint, or if it lacks a tensor of the model.
    """
    import torch  # torch and transformers take seconds to import
    from transformers import AutoModel, AutoModelForSequenceClassification

    silence_transformers()
    with reading(source.folder):
        model, loading = (AutoModel if source.pooling else AutoModelForSequenceClassification).from_pretrained(
            str(source.folder),
            dtype=torch.float32,
            attn_implementation="eager",  # the plainest one
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    if missing := sorted(name for name in loading["missing_keys"] if not name.startswith(POOLER)):
        raise ModelError(
            f"{source.folder}: the weights lack {len(missing)} tensors, such as {missing[0]}; expected those of the "
            f"{source.family} model that config.json describes; download the model again"
        )
    model.eval()
    return cast("PreTrainedModel", model)
