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

from semsearch.engine.tokenizer import read_tokenizer, save_tokenizer
from tests.project import ROOT

TINY_BERT = ROOT / "tests" / "data" / "tiny-bert" / "tokenizer.json"
TEXT = "The harbour-master's [MASK] unheard-of 🦆, naïve café 東京 [CLS] x"
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


def saved_and_read(tokenizer: Tokenizer, path: Path) -> Tokenizer:
    save_tokenizer(tokenizer, path)
    return read_tokenizer(path)


def test_a_berts_tokenizer_is_the_same_in_every_setting(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(TINY_BERT))
    found = saved_and_read(tokenizer, tmp_path / "tokenizer.txt")
    assert found.to_str() == tokenizer.to_str()
    assert found.encode(TEXT).ids == tokenizer.encode(TEXT).ids


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
    tokenizer = wordpiece(vocabulary)
    found = saved_and_read(tokenizer, tmp_path / "tokenizer.txt")
    assert found.to_str() == tokenizer.to_str()
    assert found.encode("Goose gooses aaaaaaaa [PAD] b").ids == tokenizer.encode("Goose gooses aaaaaaaa [PAD] b").ids


def test_another_kind_of_tokenizer_comes_back(tmp_path: Path) -> None:
    tokenizer = Tokenizer(BPE({"a": 0, "b": 1, "ab": 2}, [("a", "b")]))
    tokenizer.add_tokens([AddedToken("goose", single_word=True)])
    found = saved_and_read(tokenizer, tmp_path / "tokenizer.txt")
    assert found.to_str() == tokenizer.to_str()
    assert found.encode("abab goose").ids == [2, 2, 3]
