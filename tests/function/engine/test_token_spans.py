"""The tokens of a text in several pieces; /tokenize is tested against the tokenizer itself in tests/function."""

import pytest
from tokenizers import Encoding, Tokenizer
from tokenizers.processors import TemplateProcessing

from function.engine.token_spans import spell
from tests.conftest import make_tokenizer

TEXT = "angry goose"


def piece(first: str, text: str, last: str) -> Encoding:
    """Return the encoding of a text between two special tokens."""
    tokenizer: Tokenizer = make_tokenizer()
    tokenizer.add_special_tokens([first, last])
    special = [(name, tokenizer.token_to_id(name)) for name in (first, last)]
    tokenizer.post_processor = TemplateProcessing(single=f"{first} $A {last}", special_tokens=special)
    return tokenizer.encode(text)


@pytest.mark.parametrize("text", [TEXT, " "])
def test_of_several_pieces_the_first_and_the_last_special_tokens_are_kept(text: str) -> None:
    pieces = [piece("[A]", text, "[B]"), piece("[C]", text, "[D]"), piece("[E]", text, "[F]")]
    words = text.split() * 3
    tokens = spell(text, pieces, with_special=True)
    assert [token.text for token in tokens] == ["[A]", *words, "[F]"]
    assert [token.special for token in tokens] == [True, *[False] * len(words), True]
    assert (tokens[0].id, tokens[-1].id) == (pieces[0].ids[0], pieces[2].ids[-1])
    assert spell(text, pieces, with_special=False) == tokens[1:-1]


def test_a_piece_may_have_several_special_tokens_on_each_side() -> None:
    tokenizer = make_tokenizer()
    special = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] [SEP] $A [SEP] [CLS]", special_tokens=special)
    tokens = spell(TEXT, [tokenizer.encode(TEXT)], with_special=True)
    assert [token.text for token in tokens] == ["[CLS]", "[SEP]", "angry", "goose", "[SEP]", "[CLS]"]
