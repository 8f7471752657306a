"""Keyword search ranks as BM25 does: compared with a slow dictionary and with bm25s."""

import gc
import math
import random
import weakref
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from semsearch.engine.bundle import KeywordsInfo
from semsearch.engine.keyword.analyzer import LONGEST_QUERY, split_terms
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.keyword.rewritings import MOST_TERMS
from semsearch.engine.keyword.terms import LONGEST_KNOWN, MOST_COMPLETIONS, SYNONYM_WEIGHT
from semsearch.indexing.keywords import KeywordOptions
from tests.bundle_files import make_keywords, write_keywords

UNSTEMMED = KeywordOptions(stemming=None)


def make(
    path: Path, texts: list[str], options: KeywordOptions = UNSTEMMED, languages: Sequence[str | None] | None = None
) -> Keywords:
    return write_keywords(path, texts, options, languages)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keywords") / "keywords.safetensors"


def best_rows(keywords: Keywords, query: str) -> list[int]:
    return [hit.row for hit in keywords.match(query).best(10)]


def exact_scores(texts: list[list[str]], query: list[str]) -> list[float]:
    """Return the BM25 score of each text, from the formula as it stands in the paper, in dictionaries."""
    mean = sum(map(len, texts)) / len(texts)
    scores = [0.0] * len(texts)
    for term, repeats in Counter(query).items():
        holders = sum(term in text for text in texts)
        idf = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5))
        for row, text in enumerate(texts):
            often = text.count(term)
            scores[row] += repeats * idf * often / (often + 1.2 * (1 - 0.75 + 0.75 * len(text) / mean))
    return scores


def steps(texts: list[list[str]], query: list[str]) -> float:
    """Return how far 8 bit may move a score of this query: half a step of each term, up to one where it is small."""
    return sum(max(exact_scores(texts, [term])) / 255 for term in query) + 2e-6


WORDS = [f"w{number}" for number in range(30)]


def random_texts(seed: int, rows: int) -> list[list[str]]:
    """Return texts of one to forty words, of which the first ones are frequent."""
    choose = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    return [choose.choices(WORDS, weights, k=choose.randint(1, 40)) for _ in range(rows)]


def test_rows_with_all_words_of_an_excluded_text_are_left_out_and_no_others(file: Path) -> None:
    texts = random_texts(2, 300)
    keywords = make(file, [" ".join(text) for text in texts])
    for words in ([], ["w0"], ["w0", "w1"], ["w2", "w0", "w2", "w5"], ["w0", "unknown"], WORDS[:3] + WORDS[20:23]):
        expected = {row for row, text in enumerate(texts) if "w1" in text and not (words and set(words) <= {*text})}
        found = keywords.match("w1", without=[" ".join(words)] if words else []).best(300)
        assert {hit.row for hit in found} == expected


def test_the_scores_are_those_of_the_formula_to_a_step_of_8_bit(file: Path) -> None:
    texts = random_texts(0, 300)
    keywords = make(file, [" ".join(text) for text in texts])
    for query in (["w0"], ["w29"], ["w3", "w17"], ["w3", "w3", "w8", "w29"], WORDS[5:12]):
        exact, found = exact_scores(texts, query), keywords.match(" ".join(query)).scores
        np.testing.assert_allclose(found, exact, atol=steps(texts, query))
        assert [score > 0 for score in found] == [score > 0 for score in exact]


def test_a_word_that_a_code_makes_does_not_count_towards_the_length_of_a_text(file: Path) -> None:
    texts = ["a T-shirt by Wi-Fi", "shirt and a coat", "a red well-known shirt"]
    found = make(file, texts).match("shirt").scores
    terms = [split_terms(text) for text in texts]
    np.testing.assert_allclose(found, exact_scores(terms, ["shirt"]), atol=steps(terms, ["shirt"]))


def test_the_ten_best_are_bm25s_ten_best_but_for_rows_nearer_than_a_step(file: Path) -> None:
    texts = random_texts(1, 500)
    keywords = make(file, [" ".join(text) for text in texts])
    other = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    other.index(texts, show_progress=False)
    for query in (["w25"], ["w4", "w20", "w28"], ["w0", "w1", "w27", "w27"], WORDS[10:16]):
        theirs = np.asarray(other.get_scores(query))
        ours = [hit.row for hit in keywords.match(" ".join(query)).best(10)]
        np.testing.assert_allclose(theirs[ours], np.sort(theirs)[::-1][:10], atol=2 * steps(texts, query))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=20))
def test_each_text_is_found_by_each_of_its_terms(file: Path, texts: list[str]) -> None:
    terms = [split_terms(text) for text in texts]
    if not any(terms):
        assert make_keywords(texts, UNSTEMMED) == ({}, None)
        return
    keywords = make(file, texts)
    for term in {term for row in terms for term in row}:
        assert keywords.rows_of(term).tolist() == [row for row, own in enumerate(terms) if term in own]


def test_a_code_finds_the_text_with_the_whole_code_first(file: Path) -> None:
    keywords = make(file, ["part 1234 of AB", "parts 12 and 34", "order AB-1234 today", "AB-99"])
    assert [hit.row for hit in keywords.match("ab-1234").best(10)] == [2, 0, 3]


def test_quoted_words_must_occur(file: Path) -> None:
    keywords = make(file, ["angry goose", "goose goose goose", "an angry old goose on a ferry", "angry baker ferry"])
    for query, rows in (("goose ferry", {0, 1, 2, 3}), ('"goose" ferry', {0, 1, 2}), ('"angry goose" ferry', {0, 2})):
        assert {hit.row for hit in keywords.match(query).best(10)} == rows
    assert keywords.match('"zebra" goose').best(10) == []
    assert keywords.match('"!" goose').best(10) == keywords.match("goose").best(10)  # nothing must occur


def test_a_term_has_the_rows_and_the_weight_of_its_postings(file: Path) -> None:
    keywords = make(file, ["goose goose", "a ferry", "goose"])
    postings = keywords.postings("goose", 1)
    assert postings is not None
    assert keywords.rows_of("goose").tolist() == postings.rows.tolist() == [0, 2]
    assert keywords.weight_of("goose") == postings.weight > 0
    assert keywords.postings("zebra") is None
    assert keywords.rows_of("zebra").tolist() == []
    assert keywords.weight_of("zebra") == 0


@pytest.mark.parametrize("letters", [LONGEST_KNOWN, LONGEST_KNOWN + 1])
def test_a_long_word_is_found(file: Path, letters: int) -> None:
    keywords = make(file, ["goose", "x" * letters])
    for _ in range(2):
        assert best_rows(keywords, "X" * letters) == [1]


def test_a_query_of_very_many_words_is_cut_and_says_so(file: Path) -> None:
    keywords = make(file, ["goose", "ferry", "word0"])
    words = " ".join(f"word{number}" for number in range(MOST_TERMS))
    assert not keywords.match(words).is_truncated
    matches = keywords.match(f"{words} ferry")
    assert matches.is_truncated
    assert [hit.row for hit in matches.best(3)] == [2]


def test_quoted_words_need_not_occur_for_a_long_text_that_was_pasted(file: Path) -> None:
    keywords = make(file, ["the goose opened a door", "a ferry"])
    query = '"zebra" goose'
    assert [hit.row for hit in keywords.match(query.ljust(LONGEST_QUERY)).best(2)] == []
    assert [hit.row for hit in keywords.match(query.ljust(LONGEST_QUERY + 1)).best(2)] == [0]


def test_the_postings_are_sorted_described_and_the_same_each_time(file: Path) -> None:
    texts = ["goose and ferry", "a goose, a goose", "🦆"]
    tensors, info = make_keywords(texts, KeywordOptions(stemming=None, fusion_weight=0.3))
    assert info == KeywordsInfo(4, 5, None, 1.2, 0.75, "convex", 0.3)
    assert tensors["terms"].tobytes() == b"aandferrygoose"
    assert tensors["terms.offsets"].tolist() == [0, 1, 4, 9, 14]
    assert tensors["postings.offsets"].tolist() == [0, 1, 2, 3, 5]
    assert tensors["rows"].tolist() == [1, 0, 0, 0, 1]
    save_file(tensors, file)
    before = file.read_bytes()
    save_file(make_keywords(texts, KeywordOptions(stemming=None))[0], file)
    assert file.read_bytes() == before
    assert load_file(file).keys() == tensors.keys()


def test_keywords_that_nobody_uses_release_their_file_at_once(file: Path) -> None:
    keywords = make(file, ["goose ferry"])
    keywords.match("goose").best(1)
    released = weakref.ref(keywords)
    gc.disable()
    try:
        del keywords
        assert released() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("query", "rows"),
    [("Zürich", [1, 0]), ("zurich", [0, 1]), ('"Zürich"', [1]), ('"zurich"', [0, 1]), ("ZU\u0308RICH", [1, 0])],
)
def test_a_word_is_found_whatever_its_accents_its_own_spelling_first(file: Path, query: str, rows: list[int]) -> None:
    assert best_rows(make(file, ["by Zurich", "by Zürich", "goose"]), query) == rows


JAPANESE = ["東京都の公園", "京都の寺", "東の都", "大阪"]


@pytest.mark.parametrize(
    ("query", "rows"), [("東京", [0]), ("京都", [1, 0]), ("都", [2, 1, 0]), ('"東京" 京都', [0]), ("奈良", [])]
)
def test_pairs_find_words_and_a_character_alone_finds_itself(file: Path, query: str, rows: list[int]) -> None:
    assert best_rows(make(file, JAPANESE), query) == rows


PREFIX_TEXTS = [
    "Emir Kusturica at the river",
    "car by the river",
    "carpet and carpenters",
    "a carpenter by the river",
    "order AB-1234 for Zürich",
    "order AB-77 for Bern",
    "libraries",
    "must and just",
]


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
def test_texts_with_longer_words_are_found_after_those_with_the_word(file: Path, text: str, rows: list[int]) -> None:
    matches = make(file, PREFIX_TEXTS, KeywordOptions()).match(text, prefix=True)
    found = [hit.row for hit in matches.best(8)]
    assert (found[: len(rows)], len(found)) == (rows, len(rows))
    assert not matches.corrected


SYNONYMS = KeywordOptions(stemming=None, synonyms=[["sofa", "couch", "settee"], ["geese", "goose"]])


def test_a_synonym_counts_less_than_the_word_and_once_with_it(file: Path) -> None:
    texts = ["a sofa here", "a couch here", "sofa and couch", *["a sofa then"] * 9, *["an odd bench"] * 9]
    keywords, plain = make(file, texts, SYNONYMS), Keywords(file, make(file, texts).info, len(texts))
    matches, alone = keywords.match("sofa"), plain.match("sofa")
    scores = alone.scores.copy()
    scores[1] = scores[0] * np.float32(SYNONYM_WEIGHT)  # a rare synonym weighs no more than a frequent word
    np.testing.assert_allclose(matches.scores, scores, rtol=0.01)
    assert matches.attainable == alone.attainable
    np.testing.assert_array_equal(keywords.match("settee").scores > 0, np.arange(len(texts)) < 12)
    assert keywords.match("settee").corrected == {}
    np.testing.assert_array_equal(keywords.match("sofa couch").scores, plain.match("sofa couch").scores)


def test_a_quoted_word_has_no_synonyms(file: Path) -> None:
    texts = ["a goose", "many geese", "a goose and geese, geese, geese and more geese"]
    keywords, plain = make(file, texts, SYNONYMS), Keywords(file, make(file, texts).info, len(texts))
    assert best_rows(keywords, "goose") == [0, 2, 1]
    np.testing.assert_array_equal(keywords.match('"goose"').scores, plain.match('"goose"').scores)
    assert keywords.match('"goose"').added == frozenset()


def test_a_word_that_is_complete_finds_no_longer_one(file: Path) -> None:
    keywords = make(file, PREFIX_TEXTS, KeywordOptions())
    for text in ("car ", "car?"):
        assert [hit.row for hit in keywords.match(text, prefix=True).best(8)] == [1]
    assert [hit.row for hit in keywords.match("car").best(8)] == [1]


def test_a_longer_word_counts_half_and_no_more_than_half_of_the_word(file: Path) -> None:
    keywords = make(file, PREFIX_TEXTS, KeywordOptions(stemming=None))
    whole = keywords.match("kusturica").scores
    np.testing.assert_allclose(keywords.match("kust", prefix=True).scores, whole / 2, rtol=1e-6)
    frequent = make(file, ["car", "car", "car", "carpet"])
    scores = frequent.match("car", prefix=True).scores
    assert frequent.match("carpet").scores[3] > scores[0] > scores[3] * 1.99


def test_the_attainable_score_counts_completions_of_an_unknown_beginning_alone(file: Path) -> None:
    keywords = make(file, ["sailor", "sail", "boat"])
    assert keywords.match("sail", prefix=True).attainable == keywords.match("sail").attainable > 0
    unknown = keywords.match("sai", prefix=True, correct=False)
    assert unknown.attainable == pytest.approx(unknown.best(1)[0].score, abs=1e-5)


def test_the_most_frequent_words_complete_a_beginning(file: Path) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"car{one}{other}" for one in letters for other in letters][: 2 * MOST_COMPLETIONS]
    texts = [word for number, word in enumerate(words) for _ in range(1 + (number % 2))]
    keywords = make(file, texts, KeywordOptions(stemming=None))
    assert keywords.match("car", prefix=True).added == frozenset(words[1::2])


def test_a_code_completes_a_code_and_no_word(file: Path) -> None:
    keywords = make(file, PREFIX_TEXTS, KeywordOptions())
    assert keywords.match("ab", prefix=True).added == {"ab1234", "ab77"}  # words without the hyphen, no codes
    assert keywords.match("ab-1", prefix=True).added == {"ab-1234"}


def test_a_beginning_is_completed_by_words_before_and_behind_a_code(file: Path) -> None:
    keywords = make(file, ["ab", "ab-1", "abc", "abcd-2", "abcde"])
    assert keywords.match("ab", prefix=True).added == {"ab1", "abc", "abcd", "abcd2", "abcde"}  # no "ab-1"
    keywords = make(file, ["abaaaaaaa", "abc-2"])
    assert keywords.match("ab", prefix=True).added == {"abaaaaaaa", "abc", "abc2"}


def test_a_beginning_of_a_word_of_the_corpus_is_no_misspelling(file: Path) -> None:
    keywords = make(file, [*PREFIX_TEXTS, "must"], KeywordOptions())  # a correction occurs in several texts
    assert keywords.match("kust").corrected
    assert not keywords.match("kust", prefix=True).corrected
    assert keywords.match("kust river", prefix=True).corrected  # not the last word


def test_the_attainable_score_is_that_of_the_language_with_the_most(file: Path) -> None:
    """A word has a stem in each language of the corpus, and a text has only one of them."""
    texts = ["searching the river", "suchen am Fluss", "the sea", "searching"]
    keywords = make(file, texts, KeywordOptions(), ["english", "german", "english", "german"])
    assert len(keywords.match("searching").terms) == 2
    one, other = (max(hit.score for hit in keywords.match(text).best(4)) for text in ("searched", "searching"))
    assert keywords.match("searching").attainable == pytest.approx(max(one, other), abs=1e-5)
    assert keywords.match("searching the river xyzzyq").attainable > 1.5 * np.log1p(4.5 / 0.5)


def test_an_unknown_word_is_divided_between_two_known_ones(file: Path) -> None:
    keywords = make(file, ["a micro tube", "micro services", "services", "the net", "work nets"], KeywordOptions())
    assert {hit.row for hit in keywords.match("microservice").best(5)} == {1}
    assert keywords.match("microservice").added == {"micro", "servic"}
    assert keywords.match("thenet").best(5) == []  # no stop word is a part
    (hit,) = keywords.match("microservice").best(5)
    assert keywords.match("microservice").attainable == pytest.approx(hit.score, abs=1e-5)
    assert not keywords.match("microservice").corrected


def test_texts_with_words_are_left_out(file: Path) -> None:
    texts = ["red coat", "blue coat", "coats, red and blue", "blue"]
    keywords = make(file, texts, KeywordOptions())
    assert {hit.row for hit in keywords.match("coat", without=["reds"]).best(4)} == {1}
    assert {hit.row for hit in keywords.match("coat", without=["blue red"]).best(4)} == {0, 1}
    assert {hit.row for hit in keywords.match("coat", without=["blue", "red"]).best(4)} == set()


@pytest.mark.parametrize(
    ("texts", "name", "query", "longer"),
    [
        (["cache " * 9, "call --no-cache", "no cache", "x " * 40], "--no-cache", "--no-cache", "what is --no-cache"),
        (["create pages, create a page", "A page. " * 30], "create a page", "Create a  page?", "to create a page"),
    ],
)
def test_a_heading_like_the_query_comes_first(file: Path, texts: list[str], name: str, query: str, longer: str) -> None:
    names: list[list[str]] = [[] for _ in texts]
    names[-1] = [name]
    keywords = write_keywords(file, texts, KeywordOptions(), names=names)
    assert best_rows(keywords, query)[0] == len(texts) - 1
    assert best_rows(keywords, longer)[0] != len(texts) - 1


def test_a_corrected_word_brings_its_synonyms(file: Path) -> None:
    keywords = make(file, ["a sofa", "two sofas", "a couch", "a bed"], KeywordOptions(synonyms=[["sofa", "couch"]]))
    matches = keywords.match("sofaa")
    assert [*matches.corrected["sofaa"]] == ["sofas"] or [*matches.corrected["sofaa"]] == ["sofa"]
    assert {hit.row for hit in matches.best(4)} == {0, 1, 2}
    assert matches.attainable >= matches.best(1)[0].score
    assert matches.added == {"couch"}


# Each line has two forms of a word; a text with one is found by the other.
PAIRS = """\
tshirt, T-shirt; tshirt, t shirt; t-shirt, t shirt; wifi, wi fi; ebook, e book; DX1429, DX-1429; DX1429, DX 1429
128GB, 128 GB; 3D, 3-D; 4K, 4 K; B12, B-12; timestamp, time stamp; login, log-in; online, on-line; setup, set up
foobar, foo_bar; getdefault, get_default; multithreaded, multi-threaded; antivirus, anti virus"""


def test_words_find_their_other_form(file: Path) -> None:
    forms = [pair.strip().split(", ") for line in PAIRS.splitlines() for pair in line.split("; ")]
    missed = []
    for one, other in forms:
        keywords = make(file, [f"a red {one} here", f"the blue {other} there", "a text", "t", "fi"], KeywordOptions())
        for query, expected in ((one, 1), (other, 0)):
            if expected not in {hit.row for hit in keywords.match(query).best(5)}:
                missed.append(query)
    assert (len(forms), missed) == (19, [])
