"""The last word of a text can be unfinished: longer words are found too, and count less than the word itself."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.keyword.analyzer import unfinished_words
from function.engine.keyword.keywords import MOST_COMPLETIONS, Keywords

TEXTS = [
    "Emir Kusturica at the river",
    "car by the river",
    "carpet and carpenters",
    "a carpenter by the river",
    "order AB-1234 for Zürich",
    "order AB-77 for Bern",
    "libraries",
    "must and just",
]

Make = Callable[..., Keywords]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make_keywords(texts: list[str], options: KeywordOptions | None = None, languages: object = None) -> Keywords:
        tensors, info = keyword_tensors(texts, options or KeywordOptions(), None, languages)  # type: ignore[arg-type]
        assert info is not None
        save_file(tensors, tmp_path / "keywords.safetensors")
        return Keywords(tmp_path / "keywords.safetensors", info, len(texts))

    return make_keywords


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("emir kust", ["kust"]),
        ("Kust", ["kust"]),
        ("kust ", []),
        ("kust.", []),
        ('"kust"', []),
        ("C++", []),
        ("", []),
        ("order AB-12", ["12", "ab-12"]),
        ("Zür", ["zür", "zur"]),
        ("ﱞ", []),  # a letter whose normal form is a blank and marks
    ],
)
def test_the_last_word_is_unfinished_unless_something_follows(text: str, expected: list[str]) -> None:
    assert unfinished_words(text) == expected


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("kust", [0]),
        ("kusturica", [0]),
        ("librari", [6]),  # the term of "libraries"
        ("car", [1, 2, 3]),
        ("carp", [2, 3]),
        ("AB-12", [4, 5]),  # both have "ab"
        ("AB-1", [4, 5]),
        ("zur", [4]),
        ("züri", [4]),
        ("order ab-7", [5, 4]),
        ("c", []),  # too short
    ],
)
def test_texts_with_longer_words_are_found_after_those_with_the_word(make: Make, text: str, rows: list[int]) -> None:
    matches = make(TEXTS).match(text, prefix=True)
    found = [hit.row for hit in matches.best(8)]
    assert (found[: len(rows)], len(found)) == (rows, len(rows))
    assert not matches.corrected


def test_a_word_that_is_complete_finds_no_longer_one(make: Make) -> None:
    keywords = make(TEXTS)
    for text in ("car ", "car?"):
        assert [hit.row for hit in keywords.match(text, prefix=True).best(8)] == [1]
    assert [hit.row for hit in keywords.match("car").best(8)] == [1]


def test_a_longer_word_counts_half_and_no_more_than_half_of_the_word(make: Make) -> None:
    keywords = make(TEXTS, KeywordOptions(stemming=None))
    whole = keywords.match("kusturica").scores
    np.testing.assert_allclose(keywords.match("kust", prefix=True).scores, whole / 2, rtol=1e-6)
    frequent = make(["car", "car", "car", "carpet"])
    scores = frequent.match("car", prefix=True).scores
    assert frequent.match("carpet").scores[3] > scores[0] > scores[3] * 1.99


def test_a_rare_word_that_completes_a_beginning_counts_no_more_than_the_most_frequent_one(make: Make) -> None:
    scores = make(["carpet", "carpet", "carpet", "carol"]).match("car", prefix=True).scores
    assert scores[3] == pytest.approx(scores[0], rel=0.01)


def test_the_most_frequent_words_complete_a_beginning(make: Make) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"car{one}{other}" for one in letters for other in letters][: 2 * MOST_COMPLETIONS]
    texts = [word for number, word in enumerate(words) for _ in range(1 + (number % 2))]
    keywords = make(texts, KeywordOptions(stemming=None))
    assert keywords.match("car", prefix=True).completed == frozenset(words[1::2])


def test_a_code_completes_a_code_and_no_word(make: Make) -> None:
    keywords = make(TEXTS)
    assert keywords.match("ab", prefix=True).completed == frozenset()
    assert keywords.match("ab-1", prefix=True).completed == {"ab-1234"}


def test_a_beginning_of_a_word_of_the_corpus_is_no_misspelling(make: Make) -> None:
    keywords = make([*TEXTS, "must"])  # a correction occurs in several texts
    assert keywords.match("kust").corrected
    assert not keywords.match("kust", prefix=True).corrected
    assert keywords.match("kust river", prefix=True).corrected  # not the last word


def test_the_attainable_score_is_that_of_the_language_with_the_most(make: Make) -> None:
    """A word has a stem in each language of the corpus, and a text has only one of them."""
    texts = ["searching the river", "suchen am Fluss", "the sea", "searching"]
    keywords = make(texts, None, ["english", "german", "english", "german"])
    assert len(keywords.match("searching").terms) == 2
    one, other = (max(hit.score for hit in keywords.match(text).best(4)) for text in ("searched", "searching"))
    assert keywords.match("searching").attainable == pytest.approx(max(one, other), abs=1e-5)
    assert keywords.match("searching the river xyzzyq").attainable > 1.5 * np.log1p(4.5 / 0.5)
