"""Texts become terms: words in one form, codes whole and in parts, stems only where they are asked for."""

import re
import sys
from unicodedata import combining, normalize
from unittest.mock import Mock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.engine.keyword.analyzer import (
    LONGEST_NAME,
    LONGEST_STEMMED,
    MOST_MARKS,
    find_heading,
    find_stemmer,
    joined_codes,
    joined_neighbours,
    names_in,
    split_terms,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The quick, brown fox!", ["the", "quick", "brown", "fox"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("fullwidth \uff21\uff22", ["fullwidth", "ab"]),
        ("AB-1234", ["ab-1234", "ab", "1234"]),
        ("a T-shirt", ["a", "t-shirt", "t", "shirt"]),
        ("foo_bar_baz", ["foo_bar_baz", "foo", "bar", "baz"]),
        ("1999-2001 a-b-c-d 1.5-beta", ["1999-2001", "1999", "2001", "a-b-c-d", *"abcd", "1.5-beta", "1", "5", "beta"]),
        ("Python 3.11.", ["python", "3.11", "3", "11"]),
        ("C++ or C#", ["c++", "c", "or", "c#", "c"]),
        ("shutil.unpack_archive()", ["shutil.unpack_archive", "shutil", "unpack", "archive"]),
        ("AT&T, me@example.org", ["at&t", "at", "t", "me@example.org", "me", "example", "org"]),
        ("end. Next - and/or", ["end", "next", "and/or", "and", "or"]),
        ("the dog's", ["the", "dog", "s"]),
        ("Żółć naïve", ["żółć", "zolc", "naïve", "naive"]),
        ("café-bar", ["café-bar", "cafe-bar", "café", "cafe", "bar"]),
        (
            "Ёлка λόγος Œuvre Ångström İzmir",
            [*("ёлка", "елка", "λόγοσ", "λογοσ", "œuvre", "oeuvre", "ångström", "angstrom", "i̇zmir", "izmir")],
        ),
        ("한국어 काफ़ी", ["한국어", "काफ़ी"]),
        ("東京タワー 東", ["東京", "京タ", "タワ", "ワー", *"東京タワー", "東"]),
        ("Tokyo東京-AB", ["tokyo", "東京-ab", "東京", "東", "京", "ab"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("🦆 … -- +", []),
    ],
)
def test_a_text_has_these_terms(text: str, terms: list[str]) -> None:
    assert split_terms(text) == terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a T-shirt by Foo_Bar", ["tshirt", "foobar"]),
        ("AB-1234 is state-of-art", ["ab1234", "stateofart"]),
        ("1999-2001 a-b-c-d 1.5-beta C++-x a--b and/or", []),
        ("Tokyo東京-AB", []),
    ],
)
def test_a_code_of_two_or_three_words_is_one_word_without_its_hyphens(text: str, words: list[str]) -> None:
    assert [whole for _, whole in joined_codes(text)] == words


def test_neighbours_make_a_word_unless_one_is_a_stop_word_or_a_mark_is_between_them() -> None:
    found = joined_neighbours("a Wi Fi, mesh: 12 34 or 5 GB", frozenset({"a", "or"}))
    assert [*found] == [(["wi", "fi"], "wifi"), (["5", "gb"], "5gb")]


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts)
def test_every_term_of_a_query_is_one_of_the_text(text: str) -> None:
    assert set(split_terms(text, is_query=True)) <= set(split_terms(text))


def test_names_that_terms_do_not_hold_are_found_in_a_text() -> None:
    text = "Use --no-cache, (multiple=True) and .NET; see e.g. foo_bar, A.b() or https://example.com/x?y=z. well-known"
    assert list(names_in(text)) == ["--no-cache", "multiple=true", ".net"]


def test_letters_are_stemmed_and_codes_are_not() -> None:
    stem = find_stemmer("english")
    terms = split_terms("searching the searches of AB-1234s a4s", stem)
    assert terms == ["search", "the", "search", "of", "ab-1234s", "ab", "1234s", "a4s"]
    assert split_terms("Häuser", find_stemmer("german")) == split_terms("Haus", find_stemmer("german"))
    french = find_stemmer("french")
    assert split_terms("élèves étudiaient", french)[1::2] == split_terms("eleve etudier", french)  # without accents
    assert find_stemmer(None) is None


@given(texts)
def test_a_decomposed_text_has_the_same_terms(text: str) -> None:
    assert split_terms(normalize("NFD", text)) == split_terms(text)


@given(st.text(st.characters(codec="ascii")))
def test_capitals_change_no_term_and_each_letter_and_digit_is_in_a_term(text: str) -> None:
    terms = split_terms(text)
    assert split_terms(text.upper()) == terms
    words = [term for term in terms if re.fullmatch("[a-z0-9]+", term)]
    assert "".join(words) == re.sub("[^a-z0-9]", "", text.lower())


RUNS = {
    "two marks in turn": "\u0301\u0316" * 500,
    "all marks": "".join(chr(code) for code in range(sys.maxunicode + 1) if combining(chr(code))),
    # no marks themselves, but normalized they are
    **{f"U+{code:04X}": chr(code) * 500 + "\u0316" for code in (0x0F73, 0x0F75, 0x0F81, 0xFF9E, 0xFF9F)},
}


def longest_run(text: str) -> int:
    """Return how many marks follow each other at most."""
    return max(len(run) for run in "".join("m" if combining(one) else " " for one in text).split(" "))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_long_run_of_marks_is_cut_before_it_is_normalized(run: str) -> None:
    with patch("semsearch.engine.keyword.analyzer.normalize", wraps=normalize) as normalized:
        before, *marked, after = split_terms(f"goose a{run} ferry")
    assert [before, after] == ["goose", "ferry"]
    read = [text for (_, text), _ in normalized.call_args_list]
    assert all(longest_run(normalize("NFKD", text)) <= 2 * MOST_MARKS for text in read)
    assert sum(map(len, marked)) <= 3 * MOST_MARKS


def test_thirty_marks_of_each_character_are_read() -> None:
    with patch("semsearch.engine.keyword.analyzer.normalize", wraps=normalize) as normalized:
        split_terms("a" + "\u0301" * 31 + "\u00a0" + "\u0316" * 31)
    read = [text for (_, text), _ in normalized.call_args_list if len(text) > 1]
    assert "a" + "\u0301" * MOST_MARKS + "\u00a0" + "\u0316" * MOST_MARKS in read


def test_only_words_of_a_possible_length_are_stemmed() -> None:
    stem = Mock(wraps=str)
    split_terms(f"{'a' * LONGEST_STEMMED} {'b' * (LONGEST_STEMMED + 1)}", stem)
    stem.assert_called_once_with("a" * LONGEST_STEMMED)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12), st.sampled_from([None, "english"]))
def test_a_word_alone_has_the_terms_that_it_has_in_a_text(word: str, language: str | None) -> None:
    stem = find_stemmer(language)
    assert split_terms(word, stem) == split_terms(f"{word} ü", stem)[:-2]  # ü and u
    assert split_terms(f" {word}\t", stem) == split_terms(word, stem)


def test_characters_that_become_many_are_read_whole_in_a_short_text_and_in_part_in_a_long_one() -> None:
    ligature = "\ufdfa"  # four words of 18 characters
    assert len(split_terms(f"{ligature} " * 50)) == 200
    assert len(split_terms(f"{ligature} " * 10_000)) < 10_000


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("C", "c"),
        ("(Installing   It)!", "installing it"),
        ("?!", None),
        ("", None),
        ("a" * LONGEST_NAME, "a" * LONGEST_NAME),
        ("a" * (LONGEST_NAME + 1), None),
    ],
)
def test_a_heading_has_one_character_or_more_and_is_not_too_long(text: str, heading: str | None) -> None:
    assert find_heading(text) == heading
