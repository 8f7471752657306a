"""What the browser needs to split texts as the bundle's tokenizer does: BERT's kind of WordPiece.

The browser has no library of tokenizers. It has its own WordPiece (browser/wordpiece.js), so a tokenizer of any other
kind is refused here.
"""

import json
from pathlib import Path
from typing import Any

from function.engine.bundle import TOKENIZER, BundleError
from function.engine.tokenizer import read_tokenizer

MODELS = "use a BERT model with a WordPiece tokenizer, such as all-MiniLM-L6-v2, or serve this bundle with the function"
BERT = {"model": "WordPiece", "normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}


def read_wordpiece(bundle: Path, max_tokens: int) -> tuple[dict[str, Any], list[str]]:
    """Return the options of the bundle's tokenizer for the browser, and its tokens in the order of their ids.

    Raises BundleError if the tokenizer is not BERT's kind of WordPiece.
    """
    path = bundle / TOKENIZER
    first, *vocabulary = path.read_text(encoding="utf-8").split("\n")
    described = json.loads(first)
    for part, expected in BERT.items():
        found = (described[part] or {}).get("type")
        if found != expected:
            raise BundleError(
                f"{path}: its {part} is {found}, expected {expected}, the one a browser can use; {MODELS}"
            )
    if not vocabulary:
        raise BundleError(f"{path}: ids of its tokens are not consecutive, expected 0, 1, 2 and so on; {MODELS}")
    added = described["added_tokens"]
    for token in added:
        if token["single_word"] or token["normalized"]:
            raise BundleError(f"{path}: the added token {token['content']!r} depends on the text around it; {MODELS}")
    model, normalizer = described["model"], described["normalizer"]
    encoding = read_tokenizer(path).encode("a")
    plain = encoding.special_tokens_mask.index(0)
    strip_accents = normalizer["strip_accents"]
    options = {
        "unknown": model["unk_token"],
        "prefix": model["continuing_subword_prefix"],
        "longest": model["max_input_chars_per_word"],
        "cleans": normalizer["clean_text"],
        "splits_chinese": normalizer["handle_chinese_chars"],
        "strips_accents": normalizer["lowercase"] if strip_accents is None else strip_accents,
        "lowercases": normalizer["lowercase"],
        "added": {token["content"]: token["id"] for token in added},
        "before": encoding.ids[:plain],
        "after": encoding.ids[plain + 1 :],
        "max_tokens": max_tokens,
    }
    return options, vocabulary
