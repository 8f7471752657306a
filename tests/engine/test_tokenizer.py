"""A tokenizer that was saved and read gives the ids it gave before, whatever is in its vocabulary."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE, WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from semsearch.engine.tokenizer import read_tokenizer, save_tokenizer, split_word
from tests.project import ROOT

TINY_BERT = ROOT / "tests" / "data" / "tiny-bert" / "tokenizer.json"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "goose", "##s", "a"]


def wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    """Return a tokenizer of these words whose other settings are not the usual ones."""
    tokenizer = Tokenizer(
        WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix="##", max_input_chars_per_word=7)
    )
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(["[PAD]", "[CLS]"])
    return tokenizer


def assert_comes_back(tokenizer: Tokenizer, text: str, folder: Path) -> None:
    save_tokenizer(tokenizer, folder / "tokenizer.txt")
    found = read_tokenizer(folder / "tokenizer.txt")
    assert found.to_str() == tokenizer.to_str()
    assert found.encode(text).ids == tokenizer.encode(text).ids


def test_a_berts_tokenizer_is_the_same_in_every_setting(tmp_path: Path) -> None:
    text = "The harbour-master's [MASK] unheard-of 🦆, naïve café 東京 [CLS] x"
    assert_comes_back(Tokenizer.from_file(str(TINY_BERT)), text, tmp_path)


def test_the_same_tokenizer_has_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tokenizers import Tokenizer;"
        "from semsearch.engine.tokenizer import save_tokenizer;"
        "save_tokenizer(Tokenizer.from_file(sys.argv[1]), Path(sys.argv[2]))"
    )
    for seed in ("1", "2"):  # seeds of the order in which a set yields strings
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code, str(TINY_BERT), str(tmp_path / seed)]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
    assert len({(tmp_path / seed).read_bytes() for seed in "12"}) == 1


@pytest.mark.parametrize(
    "vocabulary",
    [
        {word: number for number, word in enumerate(WORDS)},
        {word: 2 * number for number, word in enumerate(WORDS)},  # ids with gaps
        {word: number for number, word in enumerate([*WORDS, "a\nb"])},
        {word: number for number, word in enumerate(WORDS[1:])},  # [PAD] is only an added token
    ],
    ids=["plain", "gaps", "line break", "added token without an entry"],
)
def test_any_vocabulary_comes_back(tmp_path: Path, vocabulary: dict[str, int]) -> None:
    assert_comes_back(wordpiece(vocabulary), "Goose gooses aaaaaaaa [PAD] b", tmp_path)


def test_another_kind_of_tokenizer_comes_back(tmp_path: Path) -> None:
    tokenizer = Tokenizer(BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.add_tokens([AddedToken("goose", single_word=True)])
    assert_comes_back(tokenizer, "abab goose", tmp_path)


def test_a_word_has_the_parts_of_the_spelling_with_fewer_tokens() -> None:
    vocabulary = {
        word: number for number, word in enumerate(["[UNK]", "goose", "##s", "g", "##oose", "Paris", "par", "##is"])
    }
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=50))
    tokenizer.post_processor = TemplateProcessing(single="goose $A", special_tokens=[("goose", 1)])
    for word, parts in (("gooses", ["goose", "s"]), ("paris", ["paris"]), ("duck", "duck"), ("", "")):
        assert split_word(tokenizer, word) == parts
