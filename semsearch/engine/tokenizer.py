"""The tokenizer's file: the library's JSON in the first line, then a WordPiece vocabulary, a token a line by id.

The library loads a vocabulary faster from a dictionary than from its own JSON, which shortens a cold start. The
vocabulary of any other kind of tokenizer stays in the JSON, and the file has one line.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer


def read_tokenizer(path: Path) -> "Tokenizer":
    """Return the tokenizer that save_tokenizer wrote. Raises the library's bare Exception if the file is damaged."""
    from tokenizers import Tokenizer  # a bundle without a model does not need it
    from tokenizers.models import WordPiece

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


def save_tokenizer(tokenizer: "Tokenizer", path: Path) -> None:
    """Write a tokenizer so that read_tokenizer returns the same one."""
    described = json.loads(tokenizer.to_str())
    tokens: list[str] = []
    if described["model"]["type"] == "WordPiece":
        tokens = _take_vocabulary(described)
    lines = [json.dumps(described, ensure_ascii=False, separators=(",", ":")), *tokens]
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")


def _take_vocabulary(described: dict[str, Any]) -> list[str]:
    """Move a WordPiece vocabulary out of the library's JSON, and return its tokens in the order of their ids.

    Returns an empty list and changes nothing if lines cannot hold the vocabulary.
    """
    model = described["model"]
    vocabulary: dict[str, int] = model["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    # these stay in the JSON, where the library looks up the ids of added tokens
    kept = {model["unk_token"]} | {token["content"] for token in described["added_tokens"]}
    has_all_ids = [vocabulary[token] for token in tokens] == list(range(len(tokens)))
    if not has_all_ids or not kept <= vocabulary.keys() or any("\n" in token for token in tokens):
        return []
    model["vocab"] = {token: vocabulary[token] for token in tokens if token in kept}
    return tokens


def split_word(tokenizer: "Tokenizer", word: str) -> Sequence[str]:
    """Return the parts of a word that are tokens, in lower case or capitalized, whichever has fewer.

    A word with a part that the tokenizer does not know has its letters as parts.
    """
    unknown = getattr(tokenizer.model, "unk_token", None)
    found: list[Sequence[str]] = []
    for cased in (word, word.capitalize()):
        encoding = tokenizer.encode(cased, add_special_tokens=False)
        if unknown in encoding.tokens:
            found.append(word)
        else:
            found.append([word[begin:end] for begin, end in encoding.offsets])
    return min(found, key=len) or word


@dataclass(frozen=True, slots=True)
class SpelledToken:
    """A token: its id, and its characters `text[start:stop]`.

    `text` of a special token is its name; start and stop are None, because the text does not contain it.
    """

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


def spell(text: str, pieces: "Sequence[Encoding]", with_special: bool) -> list[SpelledToken]:
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


def _special(piece: "Encoding", before: bool) -> list[SpelledToken]:
    is_special = piece.special_tokens_mask
    first = 1  # a text without tokens has [CLS] before and [SEP] after
    if 0 in is_special:
        first = is_special.index(0)
    places = range(first, len(is_special))
    if before:
        places = range(first)
    return [SpelledToken(piece.ids[i], piece.tokens[i], True, None, None) for i in places if is_special[i]]
