"""What a query also finds beside its own words, and what it does not."""

from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.keyword.rewritings import RARE_ROWS
from semsearch.indexing.keywords import KeywordOptions
from tests.bundle_files import write_keywords


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keywords.safetensors"


def found(keywords: Keywords, query: str) -> set[int]:
    return {hit.row for hit in keywords.match(query).best(20)}


@pytest.mark.parametrize("query", ["T-shirt", "t shirt"])
def test_a_joined_word_finds_other_texts_and_adds_nothing_to_those_with_its_words(file: Path, query: str) -> None:
    keywords = write_keywords(file, ["a T-shirt", "a t shirt", "a tshirt", "a coat"], KeywordOptions())
    scores = keywords.match(query).scores
    keywords.rewritings = ()
    plain = keywords.match(query).scores
    np.testing.assert_array_equal(scores[[0, 1, 3]], plain[[0, 1, 3]])
    assert scores[2] > plain[2] == 0


def test_a_rare_word_is_divided_and_its_own_texts_come_first(file: Path) -> None:
    texts = ["a coat for rain", *["a raincoat"] * (RARE_ROWS - 1), "a rain hat", "a red coat"]
    assert [hit.row for hit in write_keywords(file, texts, KeywordOptions()).match("raincoat").best(9)] == [1, 2, 3, 0]
    assert found(write_keywords(file, [*texts, "raincoats"], KeywordOptions()), "raincoat") == {1, 2, 3, 6}


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("128gb", {0}),
        ("4K", {1}),
        ("frontmatter", {2}),  # the stem of the whole is "frontmatt"
        ("1284", set()),  # digits alone are one number
        ("abc", set()),  # too short
    ],
)
def test_these_words_are_divided(file: Path, query: str, rows: set[int]) -> None:
    texts = ["128 gb", "4 K, 128", "the matter in front", "ab c", "12 and 84"]
    assert found(write_keywords(file, texts, KeywordOptions()), query) == rows


def test_a_query_with_both_parts_of_a_word_is_not_divided(file: Path) -> None:
    keywords = write_keywords(file, ["rain and a coat", "rain"], KeywordOptions())
    scores = keywords.match("rain coat raincoat", correct=False).scores
    np.testing.assert_array_equal(scores, keywords.match("rain coat").scores)


def test_a_word_between_quotation_marks_is_not_divided(file: Path) -> None:
    keywords = write_keywords(file, ["128gb", "128 gb"], KeywordOptions())
    assert keywords.match("128gb").added == {"128", "gb"}
    assert keywords.match('"128gb"').added == frozenset()
