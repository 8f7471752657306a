"""Run the original model with transformers on a few texts, and check that the exported graph agrees with it.

Every export does this. The check shares no code with the export: transformers tokenizes and runs the model, one text
at a time without padding, NumPy does the pooling, and torch the modules after it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from export.errors import first_line
from export.model.load_model import load_model
from export.model.source.model_files import ModelError
from export.model.source.modules import Step, load_tensors
from export.model.source.source import Source
from function.engine.embedder import Embedder
from function.engine.quantization import Embeddings

LEAST_ORIGINAL_COSINE = 0.9999  # least cosine between two float32 models; rounding alone stays far above
TEXTS = (
    "hello",
    "The Quick Brown Fox, aged 7, jumped over 13 lazy dogs.",
    "Żółć, naïve café, Москва, 東京, 🦆",
    'def main():\n    print("hello")  # a text need not be prose',
    "An earthquake shook the capital early on Sunday, but no buildings were damaged and nobody was hurt. " * 2,
)
LONG_TEXT = "every model cuts off the end of this "  # repeated until it is longer than the model can read
LONGEST_RUN = 1024  # tokens; for longer inputs attention takes too much memory, so only their beginning is embedded


@dataclass(frozen=True, slots=True)
class Original:
    """The token ids and the embeddings that the original model has for the texts."""

    texts: list[str]
    ids: list[list[int]]  # special tokens included, at most max_tokens
    embeddings: Embeddings  # (n, dim) float32 of unit length, of the first LONGEST_RUN ids of each text


def run_original(source: Source) -> Original:
    """Return transformers' ids and embeddings of TEXTS and of one text that is longer than the model reads.

    Raises ModelError if the model or its tokenizer cannot be loaded, or if the model lacks weights.
    """
    import torch

    texts = [*TEXTS, LONG_TEXT * source.max_tokens]
    model = load_model(source)
    ids = _tokenize(source, texts)
    embeddings = []
    for text in (one[:LONGEST_RUN] for one in ids):
        try:
            with torch.no_grad():
                tokens = model(input_ids=torch.tensor([text])).last_hidden_state[0].numpy().astype(np.float64)
        except Exception as error:  # a bad value in config.json can fail anywhere in transformers
            raise ModelError(
                f"{source.folder / 'config.json'}: transformers cannot run the model it describes "
                f"({first_line(error)}); expected the config it was trained with; download the model again"
            ) from error
        pooled = pool(tokens, source.pooling)
        for step in source.steps:
            pooled = apply_step(step, pooled)
        kept = pooled[: source.dim]
        embeddings.append(kept / np.linalg.norm(kept))
    return Original(texts, ids, np.array(embeddings, np.float32))


def pool(tokens: NDArray[np.float64], pooling: str) -> NDArray[np.float64]:
    """Return the embedding of a text, (n,), from those of its tokens, (tokens, n)."""
    pooled: NDArray[np.float64] = {"mean": tokens.mean(axis=0), "cls": tokens[0], "max": tokens.max(axis=0)}[pooling]
    return pooled


def apply_step(step: Step, embedding: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a module after pooling makes of one embedding, (n,), computed by torch in float64."""
    import torch

    tensors = {name: tensor.double() for name, tensor in load_tensors(step).items()}
    x = torch.from_numpy(embedding)
    if step.kind == "Dense":
        x = getattr(torch.nn, step.activation)()(torch.nn.functional.linear(x, **tensors))
    elif step.kind == "LayerNorm":
        x = torch.nn.functional.layer_norm(x, x.shape, **tensors)
    else:
        x = torch.nn.functional.normalize(x, dim=0)
    return np.asarray(x.numpy(), np.float64)


def _tokenize(source: Source, texts: list[str]) -> list[list[int]]:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(source.folder), use_fast=True, local_files_only=True, trust_remote_code=False
        )
        cased = [text.lower() if source.lower_case else text for text in texts]
        limits = {"truncation": True, "max_length": source.max_tokens, "padding": False}
        return [list(tokenizer(text, **limits)["input_ids"]) for text in cased]
    except Exception as error:  # an unknown type: a tokenizer's files can hold anything
        raise ModelError(
            f"{source.folder}: transformers cannot use its tokenizer ({first_line(error)}); expected tokenizer.json "
            "and tokenizer_config.json of a fast tokenizer; save the model again with its own fast tokenizer"
        ) from error


def check_agreement(source: Source, original: Original, exported: Embedder) -> None:
    """Raise ModelError unless the exported float32 model returns the token ids and embeddings of the original."""
    tokens = exported.tokenize(original.texts)
    for text, found, expected in zip(original.texts, tokens, original.ids, strict=True):
        if found.ids != expected:
            raise ModelError(
                f"{source.folder}: tokenizer.json reads {text[:40]!r} as {found.ids[:8]}, transformers as "
                f"{expected[:8]}; expected the same ids; tokenizer.json contradicts tokenizer_config.json: save the "
                "model again with its own fast tokenizer"
            )
    embeddings = exported.embed([replace(one, ids=one.ids[:LONGEST_RUN]) for one in tokens])
    cosines = (embeddings * original.embeddings).sum(axis=1)
    if not cosines.min() >= LEAST_ORIGINAL_COSINE:  # refuses NaN too
        raise ModelError(
            f"{source.folder}: the exported graph and the original model agree to a cosine of {cosines.min():.6f} "
            f"only, expected at least {LEAST_ORIGINAL_COSINE}; the graph computes something else: choose another model"
        )
