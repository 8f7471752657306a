"""The data with which a browser divides texts into words and tokens as Python does."""

import json
import sys
from pathlib import Path
from typing import Any

from semsearch.engine.bundle import TOKENIZER, BundleError, ModelInfo
from semsearch.engine.tokenizer import read_tokenizer


def folded_letters() -> dict[str, str]:
    """Return the case folding of each letter whose case folding is not its lower case."""
    letters = map(chr, range(sys.maxunicode + 1))
    return {letter: letter.casefold() for letter in letters if letter.casefold() != letter.lower()}


MODELS = "use a BERT model with a WordPiece tokenizer, such as all-MiniLM-L6-v2, or serve this bundle with the function"
BERT = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}


def read_wordpiece(bundle: Path, model: ModelInfo) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the bundle's tokenizer for the browser, and its tokens in the order of their ids.

    Raises BundleError if the tokenizer is not BERT's kind of WordPiece.
    """
    path = bundle / TOKENIZER
    first, *vocabulary = path.read_text(encoding="utf-8").split("\n")
    described = json.loads(first)
    for part, expected in BERT.items():
        found = (described[part] or {}).get("type")
        if found != expected:
            raise BundleError(f"{path}: its {part} is {found}, expected {expected}; {MODELS}")
    if not vocabulary:
        raise BundleError(f"{path}: ids of its tokens are not consecutive, expected 0, 1, 2 and so on; {MODELS}")
    added = described["added_tokens"]
    for token in added:
        if token["single_word"] or token["normalized"]:
            raise BundleError(f"{path}: the added token {token['content']!r} depends on the text around it; {MODELS}")
    pieces, normalizer = described["model"], described["normalizer"]
    encoding = read_tokenizer(path).encode("a")
    plain = encoding.special_tokens_mask.index(0)
    strip_accents = normalizer["strip_accents"]
    options = {
        "unknown": pieces["unk_token"],
        "prefix": pieces["continuing_subword_prefix"],
        "longest": pieces["max_input_chars_per_word"],
        "cleans": normalizer["clean_text"],
        "splits_chinese": normalizer["handle_chinese_chars"],
        "strips_accents": normalizer["lowercase"] if strip_accents is None else strip_accents,
        "lowercases": normalizer["lowercase"],
        "added": {token["content"]: token["id"] for token in added},
        "before": encoding.ids[:plain],
        "after": encoding.ids[plain + 1 :],
        "max_tokens": model.max_tokens,
        "prompt": model.prompts.get("query", ""),
    }
    return options, vocabulary
