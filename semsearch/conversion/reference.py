"""Run the original model with transformers on a few texts, and check that the exported graph agrees with it.

Every export does this. The check shares no code with the export: transformers tokenizes and runs the model, one text
at a time without padding, and torch does the pooling and the modules after it.
"""

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Embeddings
from semsearch.indexing.models.modules import ModelError, Step, reading, weight_files
from semsearch.indexing.models.source import Source

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

LEAST_ORIGINAL_COSINE = 0.9999  # least cosine between two float32 models; rounding alone stays far above
REFERENCE_TEXTS = (
    "hello",
    "The Quick Brown Fox, aged 7, jumped over 13 lazy dogs.",
    "Żółć, naïve café, Москва, 東京, 🦆",
    'def main():\n    print("hello")  # a text need not be prose',
    "An earthquake shook the capital early on Sunday, but no buildings were damaged and nobody was hurt. " * 2,
)
LONG_TEXT = "every model cuts off the end of this "  # repeated until it is longer than the model can read
POOLER = "pooler."  # unused tensors: the export pools the last layer's token vectors itself
LONGEST_RUN = 1024  # tokens; for longer inputs attention takes too much memory, so only their beginning is embedded


def silence_transformers() -> None:
    """Switch off transformers' warnings and progress bars; `load_original` checks what the warnings report."""
    from transformers import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def load_original(source: Source, attention: str | None = "eager") -> "tuple[PreTrainedModel, Any]":
    """Return the source's own model, in float32, and its tokenizer. A source without pooling has a classification head.

    attention is transformers' name of an implementation: the plainest one, or None for the fastest that the model has.

    If a checkpoint lacks a tensor that the model needs, transformers and optimum initialize that tensor with random
    numbers and print a warning. Such a model could be exported, and its search would find nothing.
    Raises ModelError for it, and if transformers cannot load the model or its tokenizer.
    """
    import torch  # torch and transformers take seconds to import
    from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

    silence_transformers()
    with reading(source.folder):
        model, loading = (AutoModel if source.pooling else AutoModelForSequenceClassification).from_pretrained(
            str(source.folder),
            dtype=torch.float32,
            attn_implementation=attention,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(
            str(source.folder), use_fast=True, local_files_only=True, trust_remote_code=False
        )
    if missing := sorted(name for name in loading["missing_keys"] if not name.startswith(POOLER)):
        found = f"lacks {len(missing)} tensors of a {source.family} model, such as {missing[0]}"
        raise ModelError(f"{source.folder}: {found}, expected all; download the model again")
    return cast("PreTrainedModel", model.eval()), tokenizer


def reference_texts(source: Source) -> list[str]:
    """Return REFERENCE_TEXTS and a text that is longer than the model reads."""
    return [*REFERENCE_TEXTS, LONG_TEXT * source.max_tokens]


def run_original(source: Source) -> Embeddings:
    """Return the unit embeddings (n, dim) float32 that transformers computes for `reference_texts`.

    Raises ModelError if the model or its tokenizer cannot be loaded or run, or if the model lacks weights.
    """
    import torch

    model, tokenizer = load_original(source)
    embeddings = []
    with reading(source.folder), torch.no_grad():
        for text in reference_texts(source):
            cased = text.lower() if source.lower_case else text
            ids = tokenizer(cased, truncation=True, max_length=source.max_tokens)["input_ids"][:LONGEST_RUN]
            tokens = model(input_ids=torch.tensor([ids])).last_hidden_state.double()
            (kept,) = pool_original(source, tokens, torch.ones(1, len(ids)))[:, : source.dim].numpy()
            embeddings.append(kept / np.linalg.norm(kept))
    return np.array(embeddings, np.float32)


def pool_original(source: Source, tokens: "Tensor", mask: "Tensor") -> "Tensor":
    """Return what pooling and the modules after it make of the tokens of n texts: (n, source.full_dim).

    tokens is (n, tokens, hidden size); mask is (n, tokens), 1 for a token and 0 for padding, which is at the end.
    """
    import torch
    from torch.nn import functional

    column = mask.to(tokens).unsqueeze(-1)
    if source.pooling == "mean":
        x = (tokens * column).sum(dim=1) / column.sum(dim=1)
    elif source.pooling == "cls":
        x = tokens[:, 0]
    else:
        x = tokens.masked_fill(column == 0, -torch.inf).amax(dim=1)
    for step in source.steps:
        tensors = {name: tensor.to(x) for name, tensor in load_tensors(step).items()}
        if step.kind == "Dense":
            x = getattr(torch.nn, step.activation)()(functional.linear(x, **tensors))
        elif step.kind == "LayerNorm":
            x = functional.layer_norm(x, x.shape[1:], **tensors)
        else:
            x = functional.normalize(x, dim=1)
    return x


def check_agreement(source: Source, original: Embeddings, exported: Embedder) -> None:
    """Raise ModelError unless the exported float32 model returns what `run_original` returned."""
    tokens = [replace(one, ids=one.ids[:LONGEST_RUN]) for one in exported.tokenize(reference_texts(source))]
    least = float((exported.embed(tokens) * original).sum(axis=1).min())
    if not least >= LEAST_ORIGINAL_COSINE:  # refuses NaN too
        raise ModelError(
            f"{source.folder}: the exported model and the original one agree to a cosine of {least:.6f} only, expected "
            f"at least {LEAST_ORIGINAL_COSINE}; tokenizer.json contradicts tokenizer_config.json, or the graph "
            "computes something else: save the model again with its own fast tokenizer, or choose another model"
        )


@cache
def load_tensors(step: Step) -> "dict[str, Tensor]":
    """Return a step's weights as float32 tensors of torch, by the name of the parameter.

    A Dense has "weight" (outputs, inputs) and perhaps "bias" (outputs,), a LayerNorm both as (outputs,), a Normalize
    none.
    """
    from safetensors.torch import load_file

    if step.kind == "Normalize":
        return {}
    (path,) = weight_files(step.folder)
    return {name.rpartition(".")[2]: tensor.float() for name, tensor in load_file(path).items()}
