"""The tokens of a text with the characters that each was made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding


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
    """Return the special tokens before or after the others of a piece."""
    is_special = piece.special_tokens_mask
    first = is_special.index(0) if 0 in is_special else 1  # a text without tokens has [CLS] before and [SEP] after
    places = range(first) if before else range(first, len(is_special))
    return [SpelledToken(piece.ids[i], piece.tokens[i], True, None, None) for i in places if is_special[i]]
