"""The tokenizer's file: the library's JSON in the first line, and below it the vocabulary, one token a line by its id.

The library takes thirty thousand entries from a dictionary twice as fast as from its own JSON, and nothing else of a
cold start goes on meanwhile. Only a WordPiece vocabulary, BERT's, is taken out of the JSON; with any other there is
just the first line.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece


def read_tokenizer(path: Path) -> Tokenizer:
    """Open a file that save_tokenizer wrote. Raises Exception, the library's own, if it is damaged."""
    described, *tokens = path.read_text(encoding="utf-8").split("\n")
    tokenizer = Tokenizer.from_str(described)
    if tokens:
        small = tokenizer.model
        tokenizer.model = WordPiece(
            dict(zip(tokens, range(len(tokens)), strict=True)),
            unk_token=small.unk_token,
            continuing_subword_prefix=small.continuing_subword_prefix,
            max_input_chars_per_word=small.max_input_chars_per_word,
        )
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer so that read_tokenizer gives the same one."""
    described = json.loads(tokenizer.to_str())
    model = described["model"]
    vocabulary: dict[str, int] = model["vocab"] if model["type"] == "WordPiece" else {}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    # the added tokens find their ids in what is left of the vocabulary
    kept = {model["unk_token"]} | {token["content"] for token in described["added_tokens"]} if vocabulary else set()
    is_plain = [vocabulary[token] for token in tokens] == list(range(len(tokens)))
    if tokens and is_plain and kept <= vocabulary.keys() and not any("\n" in token for token in tokens):
        model["vocab"] = {token: vocabulary[token] for token in kept}
    else:
        tokens = []
    lines = [json.dumps(described, ensure_ascii=False, separators=(",", ":")), *tokens]
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
