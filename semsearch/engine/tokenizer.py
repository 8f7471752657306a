"""The tokenizer's file: the library's JSON in the first line, then a WordPiece vocabulary, a token a line by id.

The library reads a vocabulary faster from a dictionary than from its own JSON, and a cold start waits for it. The
vocabulary of any other kind of tokenizer stays in the JSON, and the file has one line.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Encoding, Tokenizer
from tokenizers.models import WordPiece


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer that save_tokenizer wrote. Raises the library's bare Exception if the file is damaged."""
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
    """Write a tokenizer so that read_tokenizer returns the same one."""
    described = json.loads(tokenizer.to_str())
    model = described["model"]
    vocabulary: dict[str, int] = model["vocab"] if model["type"] == "WordPiece" else {}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    # the library looks up the ids of added tokens in the vocabulary of the JSON
    kept = {model["unk_token"]} | {token["content"] for token in described["added_tokens"]} if vocabulary else set()
    is_plain = [vocabulary[token] for token in tokens] == list(range(len(tokens)))
    if tokens and is_plain and kept <= vocabulary.keys() and not any("\n" in token for token in tokens):
        model["vocab"] = {token: vocabulary[token] for token in tokens if token in kept}
    else:
        tokens = []
    lines = [json.dumps(described, ensure_ascii=False, separators=(",", ":")), *tokens]
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")


def split_word(tokenizer: Tokenizer, word: str) -> Sequence[str]:
    """Return the parts of a word that are tokens, in lower case or capitalized, whichever has fewer.

    A word with a part that the tokenizer does not know has its letters as parts.
    """
    unknown = getattr(tokenizer.model, "unk_token", None)
    encodings = [tokenizer.encode(each, add_special_tokens=False) for each in (word, word.capitalize())]
    found = [
        [word[begin:end] for begin, end in encoding.offsets] if unknown not in encoding.tokens else word
        for encoding in encodings
    ]
    return min(found, key=len) or word


@dataclass(frozen=True, slots=True)
class SpelledToken:
    """A token: its id, its characters `text[start:stop]`, or the name of a special token, which has no characters."""

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


def spell(text: str, pieces: Sequence[Encoding], with_special: bool) -> list[SpelledToken]:
    """Return all tokens of a text that `Embedder.encode` encoded.

    with_special includes the special tokens before the first piece and after the last, but never those between pieces.
    """
    plain = [
        SpelledToken(id, text[start:stop], False, start, stop)
        for piece in pieces
        for id, (start, stop), is_special in zip(piece.ids, piece.offsets, piece.special_tokens_mask, strict=True)
        if not is_special
    ]
    if not with_special:
        return plain
    return [*_special(pieces[0], before=True), *plain, *_special(pieces[-1], before=False)]


def _special(piece: Encoding, before: bool) -> list[SpelledToken]:
    is_special = piece.special_tokens_mask
    first = is_special.index(0) if 0 in is_special else 1  # a text without tokens has [CLS] before and [SEP] after
    places = range(first) if before else range(first, len(is_special))
    return [SpelledToken(piece.ids[i], piece.tokens[i], True, None, None) for i in places if is_special[i]]
