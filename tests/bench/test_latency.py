"""The texts that latency is measured on."""

from bench.latency import FEW, of_length
from function.engine.embedder import TokenIds


def test_texts_have_the_length_or_are_shortened_to_it_where_few_have_it() -> None:
    short, long = TokenIds([101, 7, 8, 102], False), TokenIds([101, 1, 2, 3, 4, 102], False)
    assert of_length([*[short] * FEW, long], 4) == [short] * FEW
    assert of_length([short, long], 4) == [short, TokenIds([101, 1, 2, 102], False)]
