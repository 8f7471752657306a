"""Random models: the export accepts them, and their tokenizers know the words of the texts."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bench.function.families import SHAPES, Shape, make_random_model
from export.corpus import Corpus
from export.model.source.source import read_source
from export.model.source.tokenizer import write_tokenizer
from function.engine.tokenizer import read_tokenizer

# the code of ModernBERT
pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script(_method)?` is deprecated:DeprecationWarning")


@pytest.mark.parametrize(
    "shape",
    [
        Shape("bert", 1, 24, 30_522),
        Shape("xlm-roberta", 1, 24, 900, "Unigram"),
        Shape("modernbert", 1, 24, 900, "BPE"),
    ],
    ids=lambda shape: shape.tokenizer,
)
def test_the_export_reads_a_random_model_whose_tokenizer_knows_the_texts(
    shape: Shape, corpus: Corpus, tmp_path: Path
) -> None:
    folder = make_random_model(tmp_path / "model", shape, corpus.texts)
    source = read_source(folder, "random")
    assert (source.hidden_size, source.vocabulary_size, source.max_tokens) == (24, shape.vocabulary, 256)
    write_tokenizer(source, tmp_path / "tokenizer.txt")
    tokenizer: Tokenizer = read_tokenizer(tmp_path / "tokenizer.txt")
    encoding = tokenizer.encode(corpus.texts[0])
    assert (encoding.tokens[0], encoding.tokens[-1]) == ("[CLS]", "[SEP]")
    assert "[UNK]" not in encoding.tokens
    assert len(encoding.tokens) <= 2 * len(corpus.texts[0].split()) + 2
    if shape.tokenizer == "Unigram":
        assert tokenizer.get_vocab_size() == shape.vocabulary


def test_all_kinds_of_tokenizers_are_measured() -> None:
    assert {shape.tokenizer for shape in SHAPES.values()} == {"WordPiece", "Unigram", "BPE"}
