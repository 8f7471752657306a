"""The tensors of keywords are those that one sort of all terms would make, and are made with little memory."""

import random
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export.index import keywords
from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.arrays import AnyArray
from function.engine.keyword.analyzer import find_stemmer, split_terms
from function.engine.keyword.keywords import K1, B
from tests.export.memory import peak_of


def sorted_at_once(texts: list[str], stemming: str | None) -> dict[str, AnyArray]:
    """Return the same tensors, made with one array for each step."""
    found = [split_terms(text, find_stemmer(stemming)) for text in texts]
    terms = sorted({term.encode() for row in found for term in row})
    words = {word for text in texts for word in split_terms(text) if len(word) >= 3 and word.isalpha()}
    place = {term: place for place, term in enumerate(terms)}
    all_pairs = [(place[term.encode()], row) for row, own in enumerate(found) for term in own]
    pairs, counts = np.unique(np.array(all_pairs, np.int64), axis=0, return_counts=True)
    term, rows = pairs.T
    lengths = np.array([len(own) for own in found], np.uint32)
    holders = np.bincount(term)
    idf = np.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
    exact = idf[term] * counts / (counts + K1 * (1 - B + B * (lengths[rows] / lengths.mean())))
    scales = np.array([exact[term == one].max() for one in range(len(terms))]) / 255
    return {
        "terms": np.frombuffer(b"".join(terms), np.uint8),
        "terms.offsets": np.cumsum([0, *map(len, terms)], dtype=np.uint64),
        "postings.offsets": np.cumsum([0, *holders], dtype=np.uint64),
        "rows": rows.astype(np.uint32),
        "impacts": np.maximum(np.rint(exact / scales[term]), 1).astype(np.uint8),
        "scales": scales.astype(np.float32),
        "words": np.frombuffer("".join(f"{word}\n" for word in sorted(words)).encode(), np.uint8),
    }


def assert_are_sorted_at_once(texts: list[str], stemming: str | None) -> None:
    tensors, _ = keyword_tensors(iter(texts), KeywordOptions(stemming))
    expected = sorted_at_once(texts, stemming)
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (tensors[name].dtype, tensors[name].tobytes()) == (tensor.dtype, tensor.tobytes()), name


WORDS = [*"abcdefghij", "searching", "searches", "AB-1234", "C++", "Żółć", "東京", "🦆", "..."]


@pytest.mark.parametrize("stemming", [None, "english"])
@pytest.mark.parametrize("block", [1, 7, 100, 1 << 20])
def test_the_tensors_are_the_same_however_many_terms_are_sorted_at_a_time(
    block: int, stemming: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keywords, "BLOCK", block)
    choose = random.Random(block)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    texts = [" ".join(choose.choices(WORDS, weights, k=choose.randint(0, 12))) for _ in range(60)]
    assert_are_sorted_at_once([*texts, "a " * 300, ""], stemming)


@pytest.mark.parametrize(("remembered", "longest"), [(0, 32), (2, 32), (1 << 17, 0), (1 << 17, 3)])
def test_words_that_are_forgotten_or_never_remembered_count_the_same(
    remembered: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keywords, "REMEMBERED_WORDS", remembered)
    monkeypatch.setattr(keywords, "LONGEST_REMEMBERED", longest)
    choose = random.Random(longest)
    assert_are_sorted_at_once([" ".join(choose.choices(WORDS, k=20)) for _ in range(20)], "english")


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=10))
def test_any_texts_have_these_tensors(texts: list[str]) -> None:
    if any(split_terms(text) for text in texts):
        with patch.object(keywords, "BLOCK", 3):
            assert_are_sorted_at_once(texts, None)


def test_a_word_of_a_text_takes_few_bytes_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keywords, "BLOCK", 1 << 12)
    rows, words = 10_000, 25

    def texts() -> Iterator[str]:
        choose = random.Random(0)
        for _ in range(rows):
            yield " ".join(f"word{choose.randrange(100)}" for _ in range(words))

    assert peak_of(lambda: keyword_tensors(texts(), KeywordOptions())) < 14 * rows * words
