"""Highlights against a reading of the same rules sentence by sentence, and on texts that no one would write."""

import math
import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semsearch.engine.keyword import highlights
from semsearch.engine.keyword.analyzer import PAIR, WORD, find_stemmer, split_terms
from semsearch.engine.keyword.highlights import HYPHENATED, SNIPPET, Highlight, TermsOfWords, beginning

LANGUAGE = "english"
STEM = find_stemmer(LANGUAGE)


def highlight(texts: list[str], query: str, language: str | None, *, marks_words: bool) -> list[Highlight]:
    return highlights.highlight(texts, TermsOfWords(query, [language]), marks_words=marks_words)


WORDS = [
    *("goose", "geese", "running", "ran", "AB-1234", "C++", "Straße", "ﬁsh", "東京", "żółw", "🦆", "👩‍👩‍👧"),
    "x" * 300,
]
PIECES = [*WORDS, " ", " ", " ", "\n", ". ", "! ", "? ", "。", "…", '."', ".", "-", "\u00a0", "e\u0301", "\t", "'s"]
texts_of_pieces = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)
queries = st.lists(st.sampled_from([*WORDS, "fish", "run", "nothing"]), min_size=1, max_size=4).map(" ".join)


def check_form(text: str, found: Highlight) -> None:
    places = [place for each in found.ranges for place in each]
    assert places == sorted(places)
    assert all(0 <= place <= len(text) for place in [*places, *found.snippet])
    start, end = found.snippet
    assert 0 <= end - start <= SNIPPET
    assert text[start:end].strip() or not text.strip()
    assert not text[start:end][-1:].isspace()


@given(texts=st.lists(texts_of_pieces, min_size=1, max_size=3), query=queries, marks_words=st.booleans())
@example(["x" * 300 + "。goose y" + "z" * 200], "goose", True)  # the snippet begins before the sentence
@example(["", " \n "], "goose", False)
def test_a_snippet_has_the_best_sentence_or_its_first_word(texts: list[str], query: str, marks_words: bool) -> None:
    wanted = set(split_terms(query, STEM))
    plain = highlight(texts, query, LANGUAGE, marks_words=False)  # its range is the best sentence
    for text, best, found in zip(texts, plain, highlight(texts, query, LANGUAGE, marks_words=marks_words), strict=True):
        check_form(text, found)
        assert found.snippet == best.snippet
        ((start, end),) = best.ranges
        words = [
            word.start()
            for word in re.compile(WORD).finditer(text, start, end)
            if wanted & set(split_terms(word[0], STEM))
        ]
        assert found.snippet[0] <= start <= found.snippet[1] or found.snippet[0] <= words[0] < found.snippet[1]
        if len(text) <= SNIPPET:
            assert text[slice(*found.snippet)] == text.rstrip()


@pytest.mark.parametrize(
    ("languages", "query", "text", "marked"),
    [
        (["english"], "The history of a ferry", "A History of the ferry and of the goose", ["History", "ferry"]),
        (["english"], "to be or not to be", "Not to sleep or to be", ["Not", "to", "or", "to", "be"]),
        (["english"], "Was ist der Hof?", "Das ist der Hof", ["ist", "der", "Hof"]),
        (["german"], "Was ist der Hof?", "Das ist der Hof", ["Hof"]),
        (["english", "german"], "the house of der Häuser", "the Haus of der", ["Haus"]),
        ([None], "the ferry", "the ferry", ["the", "ferry"]),
        (["english"], "the gooze", "the goose", ["goose"]),
        (["english"], "tshirts", "a T-shirt, a shirt", ["T-shirt"]),
        (["english"], "wifi", "wifi and Wi-Fi, fi", ["wifi", "Wi-Fi"]),
        (["english"], "wi-fi", "東京Wi-Fi東京", ["Wi", "Fi"]),
        (["english"], "getdefault", "call get_default", ["get_default"]),
    ],
)
def test_stop_words_are_marked_if_alone(languages: list[str | None], query: str, text: str, marked: list[str]) -> None:
    corrected = {"goos"} if "gooze" in query else frozenset[str]()
    terms = TermsOfWords(query, languages, corrected)
    (found,) = highlights.highlight([text], terms, marks_words=True)
    assert [text[start:end] for start, end in found.ranges] == marked


@given(text=texts_of_pieces, query=queries)
@example("AB-1234東京AB-1234", "AB-1234")
@example("ﬁsh-é", "ﬁsh")  # the stem of "fishe" is "fish"
def test_the_ranges_of_keyword_search_are_the_words_that_have_a_term_of_the_query(text: str, query: str) -> None:
    wanted = set(split_terms(query, STEM, is_query=True))
    spans = [match.span(number) for pattern, number in ((WORD, 0), (PAIR, 1)) for match in re.finditer(pattern, text)]
    words = [(start, end) for start, end in spans if wanted & set(split_terms(text[start:end], STEM, is_query=True))]
    joined = ((match.span(), re.sub("[-_]", "", match[0])) for match in HYPHENATED.finditer(text))
    words += [span for span, word in joined if wanted & set(split_terms(word, STEM, is_query=True))]
    (found,) = highlight([text], query, LANGUAGE, marks_words=True)
    marked = {place for start, end in found.ranges for place in range(start, end)}
    assert marked == {place for start, end in words for place in range(start, end)}
    assert found.snippet == highlight([text], query, LANGUAGE, marks_words=False)[0].snippet


@given(
    texts=st.lists(
        st.lists(
            st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), min_size=1, max_size=5), min_size=1, max_size=5
        ),
        min_size=1,
        max_size=4,
    ),
    query=st.lists(st.sampled_from(["a", "b", "c", "d", "x"]), min_size=1, max_size=4),
)
def test_the_best_sentence_shares_the_rarest_terms_of_the_query(texts: list[list[list[str]]], query: list[str]) -> None:
    sentences = [[" ".join(words) + "." for words in text] for text in texts]
    shared = [[set(words) & set(query) for words in text] for text in texts]
    total, counts = sum(map(len, texts)), Counter(term for text in shared for terms in text for term in terms)
    found = highlight([" ".join(text) for text in sentences], " ".join(query), None, marks_words=False)
    for text, terms, each in zip(sentences, shared, found, strict=True):
        scores = [math.fsum(math.log(1 + total / counts[term]) for term in some) for some in terms]
        ((start, end),) = each.ranges
        place = scores.index(max(scores))
        if sorted(scores)[-2:] != [max(scores)] * min(2, len(scores)) or len(set(map(frozenset, terms))) == 1:
            assert " ".join(text)[start:end] == text[place]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One goose. Two!  Three?", ["One goose.", "Two!", "Three?"]),
        ('She said "run." He ran (fast!). Then…', ['She said "run."', "He ran (fast!).", "Then…"]),
        ("Version 3.11 is out.\nA line\n\nanother", ["Version 3.11 is out.", "A line", "another"]),
        ("東京です。寒い\uff01猫", ["東京です。", "寒い\uff01", "猫"]),
        ("🦆🦆. 🦆 b", ["🦆🦆.", "🦆 b"]),
    ],
)
def test_sentences_end_where_people_end_them(text: str, sentence: list[str]) -> None:
    for each in sentence:
        word = re.findall(r"\w+", each)[-1:] or ["b"]
        (found,) = highlight([text], word[0], None, marks_words=False)
        ((start, end),) = found.ranges
        assert text[start:end] in sentence


def test_a_snippet_begins_behind_a_label() -> None:
    text = "Warning\nNever remove the archive while a backup is running. " + "Another sentence stands here. " * 12
    (found,) = highlight([text], "nothing", LANGUAGE, marks_words=True)
    assert text[slice(*found.snippet)].startswith("Never remove")
    (found,) = highlight([text], "a warning", LANGUAGE, marks_words=True)
    assert text[slice(*found.snippet)].startswith("Warning")


def around(before: str, after: str = " aa" * 150) -> str:
    """Return a text of one sentence, with the word of the query between two parts."""
    return f"{before}goose{after}"


@pytest.mark.parametrize(
    ("text", "snippet"),
    [
        (around("aa " * 40), (0, 239)),  # the word is half of a snippet behind the beginning
        (around("aa " * 41), (45, 284)),  # the first word of the last third before it
        (around("aa " * 41, " aa" * 37 + "a\n" + "bb " * 99), (0, 240)),  # a sentence of 240 characters
        (around("aa " * 41, " aa" * 37 + "aa\n" + "bb " * 99), (45, 283)),
        (around("aa " * 41, " aa" * 37 + "aa"), (3, 241)),  # the text ends
        (around("x" * 101 + " " + "a" * 19 + " "), (102, 340)),  # a blank 59 characters behind the last third
        (around("x" * 101 + " " + "a" * 18 + " "), (41, 279)),
        (around("", " aa" * 100 + " goose"), (0, 239)),
        ("goose" + "x" * 115 + " " + "y" * 300, (0, 240)),  # a blank in the middle is too soon
        ("goose" + "x" * 116 + " " + "y" * 300, (0, 121)),
        ("goose" + "x" * 125 + "\n" + "y" * 300, (0, 130)),
        ("goose" + "x" * 235, (0, 240)),
        ("goose" + "x" * 235 + " y", (0, 240)),
        ("goose" + "x" * 234 + "  y", (0, 239)),
        ("Aa b. " * 40 + "A goose. ", (9, 248)),
        (" \n", (0, 0)),
    ],
)
def test_where_a_snippet_begins_and_ends(text: str, snippet: tuple[int, int]) -> None:
    (found,) = highlight([text], "goose", None, marks_words=False)
    assert found.snippet == snippet


@pytest.mark.parametrize(
    ("text", "snippet"), [("", (0, 0)), (" " * 300, (0, 0)), ("\n Goose. ", (0, 8)), ("\n" + "goose " * 60, (1, 240))]
)
def test_a_listed_text_has_a_snippet_from_its_first_word_on(text: str, snippet: tuple[int, int]) -> None:
    assert beginning(text) == Highlight([], snippet)


def test_words_that_touch_each_other_are_ranges_of_their_own_and_those_that_overlap_are_one() -> None:
    (found,) = highlight(["AB東 京東京"], "ab 東 京東 東京", None, marks_words=True)
    assert found.ranges == [(0, 2), (2, 3), (4, 7)]


@pytest.mark.parametrize(("letters", "is_label"), [(20, True), (21, False)])
def test_a_label_has_20_characters_at_most(letters: int, is_label: bool) -> None:
    label, rest = "x" * letters, "Never remove the archive while a backup is running."
    (found,) = highlight([f"{label}\n{rest}"], "nothing", None, marks_words=False)
    ((start, _),) = found.ranges
    assert start == (letters + 1 if is_label else 0)
