"""Run an original cross-encoder with transformers on a few pairs, and check that the exported graph agrees with it.

Every export of a reranker does this. The check shares no code with the export: transformers tokenizes and runs the
model, one pair at a time without padding; NumPy does the pooling, and torch the modules after it.
"""

from dataclasses import dataclass
from inspect import signature

import numpy as np

from export.errors import first_line
from export.model.load_model import load_model
from export.model.reference import LONG_TEXT, TEXTS, apply_step, pool
from export.model.source.model_files import ModelError
from export.model.source.source import Source
from function.engine.rerank.reranker import Logits, Reranker

LARGEST_DIFFERENCE = 1e-3  # largest difference between two float32 logits; rounding alone stays far below


@dataclass(frozen=True, slots=True)
class OriginalPairs:
    """The tokens, the token types and the logits that the original model has for each text with each other one."""

    pairs: list[tuple[str, str]]
    ids: list[list[int]]  # special tokens included, at most max_tokens
    types: list[list[int]]  # [] if the tokenizer has no types
    logits: Logits  # (n,) float32


def run_original_pairs(source: Source) -> OriginalPairs:
    """Return transformers' tokens and logits of pairs of TEXTS and of a text that is longer than the model reads.

    Raises ModelError if the model or its tokenizer cannot be loaded, or if the model lacks weights.
    """
    import torch
    from transformers import AutoTokenizer

    model = load_model(source)
    accepted = signature(model.forward).parameters  # DistilBERT, for example, has no token types
    texts = [*TEXTS, LONG_TEXT * source.max_tokens]
    pairs = [(query, text) for query in (*TEXTS[:3], texts[-1]) for text in texts]
    ids, types, logits = [], [], []
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(source.folder), use_fast=True, local_files_only=True, trust_remote_code=False
        )
        for pair in pairs:
            cased = [text.lower() if source.lower_case else text for text in pair]
            found = tokenizer(*cased, truncation="longest_first", max_length=source.max_tokens, return_tensors="pt")
            ids.append(found["input_ids"][0].tolist())
            types.append(found["token_type_ids"][0].tolist() if "token_type_ids" in found else [])
            with torch.no_grad():
                output = model(**{name: values for name, values in found.items() if name in accepted})
            if source.pooling:
                scores = pool(output.last_hidden_state[0].numpy().astype(np.float64), source.pooling)
                for step in source.steps:
                    scores = apply_step(step, scores)
            else:
                scores = output.logits[0].numpy()
            logits.append(scores[-1] - (scores[0] if len(scores) == 2 else 0))
    except Exception as error:  # a bad file of the model can fail anywhere in transformers
        raise ModelError(
            f"{source.folder}: transformers cannot score a pair with it ({first_line(error)}); expected the files that "
            "the model was trained with; download the model again"
        ) from error
    return OriginalPairs(pairs, ids, types, np.array(logits, np.float32))


def check_pairs(source: Source, original: OriginalPairs, exported: Reranker) -> None:
    """Raise ModelError unless the exported float32 model returns the tokens and the logits of the original."""
    pairs = [exported.tokenize_pairs(query, [text])[0] for query, text in original.pairs]
    for pair, found, ids, types in zip(original.pairs, pairs, original.ids, original.types, strict=True):
        if found.ids != ids or (types and list(found.types) != types):
            raise ModelError(
                f"{source.folder}: tokenizer.json reads the pair {pair[0][:40]!r}, {pair[1][:40]!r} as {found.ids[:8]} "
                f"with types {list(found.types)[:8]}, transformers as {ids[:8]} with types {types[:8]}; expected the "
                "same; save the model again with its own fast tokenizer"
            )
    largest = float(np.abs(exported.score(pairs) - original.logits).max())
    if not largest <= LARGEST_DIFFERENCE:  # refuses NaN too
        raise ModelError(
            f"{source.folder}: the logits of the exported graph and of the original model differ by up to "
            f"{largest:.6f}, expected at most {LARGEST_DIFFERENCE}; the graph computes something else: choose another "
            "model"
        )
