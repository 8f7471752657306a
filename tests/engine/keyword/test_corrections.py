"""A word that no text has is replaced by the nearest words of the texts, unless it is a correct one."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from semsearch.engine.keyword import corrections
from semsearch.engine.keyword.corrections import MOST_COMPARED, MOST_CORRECTED, MOST_NEAREST
from semsearch.engine.keyword.keywords import Keywords
from semsearch.indexing.keywords import KeywordOptions
from tests.bundle_files import write_keywords

Make = Callable[..., Keywords]


def split(tokens: Sequence[str], word: str) -> list[str]:
    """Return a word in two parts if it begins with one of the tokens, and in one if it is a token."""
    first = next((token for token in tokens if word.startswith(token)), None)
    return list(word) if first is None else [part for part in (first, word.removeprefix(first)) if part]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Return what makes the keywords of some texts."""

    def make_keywords(
        texts: list[str], stemming: str | None = None, tokens: Sequence[str] = (), known_words: float = 1.0
    ) -> Keywords:
        path = tmp_path / "keywords.safetensors"
        info = write_keywords(path, texts, KeywordOptions(stemming)).info
        return Keywords(path, replace(info, known_words=known_words), len(texts), partial(split, tokens))

    return make_keywords


def corrected(keywords: Keywords, text: str) -> dict[str, list[str]]:
    """Return the words that replace those of a text, as a reply has them."""
    return {word: list(words) for word, words in keywords.match(text).corrected.items()}


def edits(word: str, letter: str) -> set[str]:
    """Return all words with one error."""
    parts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    swapped = {head + tail[1] + tail[0] + tail[2:] for head, tail in parts if len(tail) > 1}
    return (
        {head + letter + tail for head, tail in parts}
        | swapped
        | {head + new + tail[1:] for head, tail in parts if tail for new in ("", letter)}
    )


@pytest.mark.parametrize(("word", "letter"), [("ferry", "x"), ("żółwica", "ę")])
def test_a_word_with_one_error_anywhere_is_found(make: Make, word: str, letter: str) -> None:
    keywords = make([word, "goose", "angry", "лебедь"])
    for wrong in edits(word, letter) - {word}:
        assert corrected(keywords, wrong) == ({wrong: [word]} if len(wrong) >= 4 else {})
        assert [hit.row for hit in keywords.match(f"zebra {wrong}").best(10)] == ([0] if len(wrong) >= 4 else [])


def test_a_reply_shows_words_of_the_texts(make: Make) -> None:
    texts = ["information on libraries", "they study antibodies", "classified"]
    assert corrected(make(texts, "english"), "informatiom librries antibdies stuty classicfied classicication") == {
        "informatiom": ["information"],
        "librries": ["libraries"],
        "antibdies": ["antibodies"],
        "stuty": ["study"],
        "classicfied": ["classified"],
    }


def test_of_words_as_near_the_most_frequent_replace_it_and_a_row_counts_half_of_the_best(make: Make) -> None:
    texts = ["word", "wood", "wood", "wond wood word", "wold", "word", "word"]
    keywords = make([*texts, "weird words wander"])
    assert corrected(keywords, "woqd") == {"woqd": ["word", "wood"]}
    assert MOST_NEAREST == 2
    both = np.maximum(keywords.match("word").scores, keywords.match("wood").scores)
    np.testing.assert_array_equal(keywords.match("woqd").scores, both / 2)


def test_a_word_of_one_text_replaces_another_only_if_no_other_is_as_near(make: Make) -> None:
    keywords = make(["word", "wood ferry", "wood", "gander", "gamder"])
    assert corrected(keywords, "woqd fexry gaxder") == {"woqd": ["wood"], "fexry": ["ferry"]}


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("house", {}),  # a token
        ("houses", {}),  # what an ending is added to is a token
        ("housek", {"housek": ["houses", "housez"]}),
    ],
)
def test_a_word_that_the_tokenizer_knows_is_no_misspelling(make: Make, word: str, found: dict[str, list[str]]) -> None:
    texts = ["housez", "a housez"] if word != "housek" else ["two housez", "housez", "houses", "the house"]
    assert corrected(make(texts, "english", ["house"]), word) == found


def test_in_another_language_words_are_corrected_if_the_rest_of_the_query_finds_little(make: Make) -> None:
    keywords = make(["der Rasen", *["mit der Ente"] * 9], known_words=0.2)
    assert corrected(keywords, "Rasn") == {"rasn": ["rasen"]}
    assert corrected(keywords, "Ente Rasn") == {"rasn": ["rasen"]}
    assert corrected(keywords, "der Rasn") == {}
    assert corrected(make(["der Rasen", *["mit der Ente"] * 9]), "der Rasn") == {"rasn": ["rasen"]}


@pytest.mark.parametrize(
    ("word", "wrong", "found"), [("lantern", "lanxexn", {}), ("lanterns", "lanxexns", {"lanxexns": ["lanterns"]})]
)
def test_a_word_with_two_errors_has_eight_letters_or_more(
    make: Make, word: str, wrong: str, found: dict[str, list[str]]
) -> None:
    assert corrected(make([word]), wrong) == found


def test_two_errors_are_corrected_in_longer_words_that_have_many_tokens_if_none_has_one(make: Make) -> None:
    keywords = make(["ferryboat", "goose", "gander", "cormorant", "cormorants"])
    assert corrected(keywords, "fexxyboat") == {"fexxyboat": ["ferryboat"]}
    assert corrected(keywords, "xexryboat") == {}  # another first letter
    assert corrected(keywords, "gxxse ganddxr") == {}
    assert corrected(keywords, "cormoxxnts") == {"cormoxxnts": ["cormorants"]}
    assert corrected(keywords, "cormoxants") == {"cormoxants": ["cormorants"]}
    assert corrected(make(["ferryboat"], tokens=["fe"]), "fexxyboat") == {}


@pytest.mark.parametrize(
    "text",
    [
        *("gos", "ab-1235", "gooze7", "gooze-12", "1235", "3.12", '"gooze" ferry', "goose", "🦆", "東京"),
        *("gooze-ferrx", "gooze@ferry.org", "gooze/fery", "gooze++"),
    ],
)
def test_short_words_codes_numbers_and_quoted_words_stay(make: Make, text: str) -> None:
    assert corrected(make(["goose ferry", "order ab-1234", "python 3.11", "goose7"]), text) == {}


def test_a_misspelled_word_counts_as_often_as_it_should_and_only_in_allowed_rows(make: Make) -> None:
    keywords = make(["angry goose", "goose ferry", "ferry"])
    allowed = np.array([False, True, True])
    half = keywords.match("goose", allowed).scores / 2
    np.testing.assert_array_equal(keywords.match("gooze", allowed).scores, half)
    np.testing.assert_array_equal(keywords.match("gooze gooze", allowed).scores, 2 * half)


def random_words(count: int, seed: int) -> list[str]:
    choose = random.Random(seed)
    return ["".join(choose.choices("abcdefgh", k=choose.randint(5, 9))) for _ in range(count)]


def test_a_thousand_unknown_words_are_compared_with_a_bounded_number_of_terms(make: Make) -> None:
    keywords = make([" ".join(random_words(20_000, 1)), "goose"])
    with patch.object(corrections, "_distances", wraps=corrections._distances) as distances:
        keywords.match(" ".join(random_words(1_000, 2)))
    assert distances.call_count == MOST_CORRECTED
    assert sum(len(begins) for (_, _, begins, _), _ in distances.call_args_list) <= MOST_COMPARED


def test_an_accent_is_no_misspelling_but_its_word_can_be_misspelled(make: Make) -> None:
    keywords = make(["Zurich", "Málaga", "goose"])
    assert corrected(keywords, "zürich malaga málagá") == {}
    assert corrected(keywords, "zurixh mxlaga mxálaga éoose") == {
        "zurixh": ["zurich"],
        "mxlaga": ["málaga"],
        "mxálaga": ["málaga"],
        "éoose": ["goose"],
    }
