"""What the words of a text find, in the modes with keywords: quotes, synonyms, names, corrections, beginnings."""

from typing import Any

import pytest

from semsearch import Hit, Hits, Search
from semsearch.indexing.keywords import KeywordOptions
from tests.promises.conftest import corpus_of
from tests.world import write_bundle

TEXTS = {
    "goose": "an angry goose on the ferry",
    "calm": "a calm goose",
    "baker": "an angry old baker",
    "kusturica": "Emir Kusturica",
    "code": "order AB-1234 today",
    "parts": "order AB for 1234 people",
    "sofa": "a red sofa",
    "couch": "a blue couch",
    "heading": "a further passage",
    "name": "set multiple=True at first, and then the others",
    "named": "multiple and true, multiple and true, multiple and true",
    "elephant": "elephant",
    "cabbage": "cabbage",
    "wood": "wood",
    "fox": "fox",
}
WITH_WORDS = ("keyword", "hybrid")
in_both_modes = pytest.mark.parametrize("mode", WITH_WORDS)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """The index of TEXTS, in which a sofa is a couch."""
    rows: list[dict[str, Any]] = [{"id": id, "text": text} for id, text in TEXTS.items()]
    corpus = corpus_of([row | {"headings": ["multiple=True"]} if row["id"] == "heading" else row for row in rows])
    options = KeywordOptions(synonyms=[["sofa", "couch"]])
    return Search(write_bundle(tmp_path_factory.mktemp("words") / "bundle", corpus, options))


def keyword_score(mode: str, hit: Hit) -> float:
    score = hit.score if mode == "keyword" else (hit.scores or {})["keyword"]
    assert score is not None
    return score


def by_words(mode: str, hits: Hits) -> str:
    """Return the ids of the texts that the words have found, those with the highest score of the words first.

    The mode hybrid finds further texts by their meaning.
    """
    found = sorted((-keyword_score(mode, hit), hit.index, hit.id) for hit in hits if keyword_score(mode, hit) > 0)
    return " ".join(id for _, _, id in found)


def find(search: Search, mode: Any, text: str, **fields: Any) -> str:
    return by_words(mode, search.search(text, mode=mode, top_k=100, **fields))


@pytest.mark.promise("text", "mode")
@in_both_modes
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("goose", "calm goose"),
        ("GOOSE", "calm goose"),
        ("angry goose", "goose calm baker"),
        ("geese zebra", ""),
        ("zebra baker", "baker"),
        ('"goose"', "calm goose"),
        ('"angry goose"', "goose"),
        ('"goose angry"', "goose"),
        ('"goose" angry', "goose calm"),
        ('"zebra"', ""),
        ('"zebra" goose', ""),
        ('"goose" "zebra"', ""),
        ("« angry goose »", "goose"),
        ("«goose» angry", "goose calm"),
        ("»angry goose«", "goose"),
        ("angry » goose", "goose calm baker"),
        ("angry » goose » ferry", "goose calm baker"),
        ("order AB-1234", "code parts"),
        ("multiple=True", "heading name named"),
        ("`MULTIPLE=true`", "heading name named"),
        ("multiple true", "named name"),
    ],
)
def test_words_and_words_between_quotation_marks_and_a_name(words: Search, mode: str, text: str, found: str) -> None:
    assert find(words, mode, text) == found


@pytest.mark.promise("text")
@pytest.mark.parametrize("mode", ["semantic"])
def test_quotation_marks_mean_nothing_to_the_model(words: Search, mode: Any) -> None:
    assert len(words.search('"zebra" goose', mode=mode, top_k=100)) == len(TEXTS)


@pytest.mark.promise("text")
@in_both_modes
def test_a_synonym_comes_after_the_word_and_quotation_marks_exclude_it(words: Search, mode: str) -> None:
    assert find(words, mode, "sofa") == "sofa couch"
    assert find(words, mode, "couch") == "couch sofa"
    assert find(words, mode, "sofa couch") == "sofa couch"
    assert find(words, mode, '"sofa"') == "sofa"
    assert find(words, mode, "zebra") == ""


@pytest.mark.promise("correct")
@in_both_modes
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("woxd", "wood"),  # replaced
        ("woxod", "wood"),  # added
        ("wodo", "wood"),  # exchanged
        ("elephnt", "elephant"),  # left out
        ("zood", "wood"),  # the first letter
        ("foxx", "fox"),
        ("cabbxge", "cabbage"),
        ("elxphxnt", "elephant"),  # two errors in eight letters
        ("fux", None),  # three letters
        ("wxxd", None),  # two errors
        ("cxbbxge", None),  # two errors in seven letters
        ("xlxphant", None),  # two errors, one of them in the first letter
        ("elxxhxnt", None),  # three errors
        ('"woxd"', None),
        ("wo0d", None),  # a digit
        ("woxd-foxx", None),
        ("wood", None),
    ],
)
def test_a_misspelled_word_is_corrected(words: Search, mode: Any, text: str, word: str | None) -> None:
    hits = words.search(text, mode=mode, top_k=100)
    as_written = words.search(text, mode=mode, top_k=100, correct=False)
    assert (hits.corrected, as_written.corrected) == ({text: [word]} if word else {}, {})
    found = "wood" if text == "wood" else ""
    assert (by_words(mode, hits), by_words(mode, as_written)) == (word or found, found)


@pytest.mark.promise("prefix")
@in_both_modes
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("k", ""),  # one letter
        ("ku", "kusturica"),
        ("kusturic", "kusturica"),
        ("kusturica", "kusturica"),
        ("kust ", ""),  # complete
        ("kust.", ""),
        ("kust order", "code parts"),  # only the last word
        ("AB-12", "code parts"),
        ("zebr", ""),
    ],
)
def test_the_last_word_can_be_unfinished(words: Search, mode: str, text: str, found: str) -> None:
    assert find(words, mode, text, prefix=True, correct=False) == found


@pytest.mark.promise("prefix")
@in_both_modes
def test_a_longer_word_counts_half(words: Search, mode: Any) -> None:
    (half,) = words.search("kust", mode=mode, prefix=True, top_k=1)
    (whole,) = words.search("kusturica", mode=mode, prefix=True, top_k=1)
    assert keyword_score(mode, half) == pytest.approx(keyword_score(mode, whole) / 2, abs=1e-6)
    assert find(words, mode, "kust", correct=False) == ""


@pytest.mark.promise("without")
@pytest.mark.parametrize(
    ("mode", "query"),
    [
        *((mode, {"text": "goose angry", "mode": mode}) for mode in WITH_WORDS),
        ("id", {"id": "goose", "mode": "hybrid"}),
    ],
    ids=[*WITH_WORDS, "id"],
)
@pytest.mark.parametrize(
    ("without", "left_out"),
    [
        ([], ""),
        (["calm"], "calm"),
        (["Calming"], "calm"),  # another ending
        (["baker", "calm"], "calm baker"),
        (["old baker"], "baker"),
        (["baker old"], "baker"),
        (["young baker"], ""),  # not all words
        (["zebra"], ""),
        (["zebra", "calm"], "calm"),
        (["?!", "calm"], "calm"),  # no word
    ],
    ids=str,
)
def test_texts_with_a_word_are_left_out(
    words: Search, mode: str, query: dict[str, Any], without: list[str], left_out: str
) -> None:
    every, found = (words.search(**query, top_k=100, without=each) for each in ([], without))
    assert {hit.id for hit in every} - {hit.id for hit in found} == {*left_out.split()}
    assert {hit.id for hit in found} <= {hit.id for hit in every}


@pytest.mark.promise("without")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"text": "goose", "mode": "semantic"}, "without: .* expected it with a text, in the modes keyword and hybrid"),
        ({"id": "goose"}, "without: .* expected it with a text, in the modes keyword and hybrid"),
        ({}, "without: .* expected it with a text, in the modes keyword and hybrid"),
        ({"text": "goose", "without": ["calm"] * 21}, "without: .* at most 20"),
        ({"text": "goose", "without": ["c" * 1_001]}, "without.0: .* at most 1000"),
        ({"text": "goose", "without": [" "]}, "without.0: .* not an empty or blank text"),
    ],
    ids=str,
)
def test_words_to_leave_out_that_cannot_be_used_are_refused(
    words: Search, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        words.search(**{"without": ["calm"]} | arguments)
    assert len(words.search("goose", mode="keyword", without=["calm"] * 19 + ["c" * 1_000])) == 1
