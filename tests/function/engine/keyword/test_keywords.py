"""Keyword search ranks as BM25 does: compared with a slow dictionary, with bm25s and with SQLite."""

import gc
import math
import os
import random
import sqlite3
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from bench.texts import ndcg, read_scifact
from export.index.keywords import KeywordOptions, keyword_tensors
from function.engine.arrays import AnyArray
from function.engine.bundle import KeywordsInfo
from function.engine.keyword import keywords as keywords_module
from function.engine.keyword.analyzer import LONGEST_QUERY, find_stemmer, split_terms
from function.engine.keyword.keywords import LONGEST_KNOWN, MOST_TERMS, Keywords
from function.engine.tensors import TensorsError

UNSTEMMED = KeywordOptions(stemming=None)


def make(path: Path, texts: list[str], options: KeywordOptions = UNSTEMMED) -> Keywords:
    tensors, info = keyword_tensors(texts, options)
    assert info is not None
    save_file(tensors, path)
    return Keywords(path, info, len(texts))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keywords") / "keywords.safetensors"


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


@pytest.mark.parametrize("seed", range(5))
def test_the_scores_are_those_of_the_formula_to_a_step_of_8_bit(file: Path, seed: int) -> None:
    texts = random_texts(seed, 300)
    keywords = make(file, [" ".join(text) for text in texts])
    for query in (["w0"], ["w29"], ["w3", "w17"], ["w3", "w3", "w8", "w29"], WORDS[5:12]):
        exact, found = exact_scores(texts, query), keywords.match(" ".join(query)).scores
        np.testing.assert_allclose(found, exact, atol=steps(texts, query))
        assert [score > 0 for score in found] == [score > 0 for score in exact]


@pytest.mark.parametrize("seed", range(5))
def test_the_ten_best_are_bm25s_ten_best_but_for_rows_nearer_than_a_step(file: Path, seed: int) -> None:
    texts = random_texts(seed, 500)
    keywords = make(file, [" ".join(text) for text in texts])
    other = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    other.index(texts, show_progress=False)
    for query in (["w25"], ["w4", "w20", "w28"], ["w0", "w1", "w27", "w27"], WORDS[10:16]):
        theirs = np.asarray(other.get_scores(query))
        ours = [hit.row for hit in keywords.match(" ".join(query)).best(10)]
        np.testing.assert_allclose(theirs[ours], np.sort(theirs)[::-1][:10], atol=2 * steps(texts, query))


def test_rows_of_equal_score_are_in_the_order_of_the_corpus_and_few_hits_begin_as_many_do(file: Path) -> None:
    keywords = make(file, ["goose ferry", "ferry", "goose ferry", "apple", "goose ferry", "ferry"])
    assert [hit.row for hit in keywords.match("ferry goose").best(10)] == [0, 2, 4, 1, 5]
    for top_k in range(1, 6):
        assert keywords.match("ferry goose").best(top_k) == keywords.match("ferry goose").best(10)[:top_k]


def test_many_rows_of_equal_score_are_in_the_order_of_the_corpus(file: Path) -> None:
    keywords = make(file, ["goose", *["ferry", "old ferry"] * 500])
    assert [hit.row for hit in keywords.match("ferry").best(100)] == list(range(1, 200, 2))
    assert [hit.row for hit in keywords.match("ferry").best(1_000)] == [*range(1, 1_000, 2), *range(2, 1_001, 2)]


def test_a_text_without_a_word_of_the_query_is_no_hit(file: Path) -> None:
    keywords = make(file, ["goose", "ferry"])
    assert [hit.row for hit in keywords.match("goose").best(10)] == [0]
    assert keywords.match("zebra 🦆").best(10) == []
    assert keywords.match("🦆").best(10) == []


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=20))
def test_each_text_is_found_by_each_of_its_terms(file: Path, texts: list[str]) -> None:
    terms = [split_terms(text) for text in texts]
    if not any(terms):
        assert keyword_tensors(texts, UNSTEMMED) == ({}, None)
        return
    keywords = make(file, texts)
    for term in {term for row in terms for term in row}:
        assert keywords.rows_of(term).tolist() == [row for row, own in enumerate(terms) if term in own]


def test_a_code_finds_the_text_with_the_whole_code_first(file: Path) -> None:
    keywords = make(file, ["part 1234 of AB", "parts 12 and 34", "order AB-1234 today", "AB-99"])
    assert [hit.row for hit in keywords.match("ab-1234").best(10)] == [2, 0, 3]


def test_a_stemmed_corpus_is_asked_with_stems(file: Path) -> None:
    texts = ["they searched", "a search", "research"]
    stemmed = make(file, texts, KeywordOptions(stemming="english"))
    assert [hit.row for hit in stemmed.match("searching").best(10)] == [0, 1]
    assert make(file, texts).match("searching").best(10) == []


def test_quoted_words_must_occur(file: Path) -> None:
    keywords = make(file, ["angry goose", "goose goose goose", "an angry old goose on a ferry", "angry baker ferry"])
    for query, rows in (("goose ferry", {0, 1, 2, 3}), ('"goose" ferry', {0, 1, 2}), ('"angry goose" ferry', {0, 2})):
        assert {hit.row for hit in keywords.match(query).best(10)} == rows
    assert keywords.match('"zebra" goose').best(10) == []


def test_only_allowed_rows_are_found_and_they_keep_their_scores(file: Path) -> None:
    texts = random_texts(1, 200)
    keywords = make(file, [" ".join(text) for text in texts])
    allowed = np.random.default_rng(1).random(200) < 0.1
    scores, all_scores = keywords.match("w1 w2", allowed).scores, keywords.match("w1 w2").scores
    np.testing.assert_array_equal(scores, np.where(allowed, all_scores, 0))
    assert {hit.row for hit in keywords.match("w1 w2", allowed).best(100)} == set(np.flatnonzero(scores))
    hits = keywords.match('"w1"', allowed).best(100)
    assert {hit.row for hit in hits} == {row for row in np.flatnonzero(allowed) if "w1" in texts[row]}


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


# Damaged files


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("rows"),
        lambda tensors: tensors.pop("terms"),
        lambda tensors: tensors.update(more=tensors["rows"]),
        lambda tensors: tensors.update(rows=tensors["rows"][:-1]),
        lambda tensors: tensors.update(impacts=tensors["impacts"].astype(np.int8)),
        lambda tensors: tensors.update(scales=tensors["scales"].reshape(1, -1)),
        lambda tensors: tensors.update(terms=tensors["terms"][:-1]),
        lambda tensors: tensors.update({"terms.offsets": tensors["terms.offsets"] + np.uint64(1)}),
        lambda tensors: tensors.update({"postings.offsets": tensors["postings.offsets"][::-1].copy()}),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    tmp_path: Path, change: Callable[[dict[str, AnyArray]], Any]
) -> None:
    path = tmp_path / "keywords.safetensors"
    tensors, info = keyword_tensors(["angry goose", "old ferry"], UNSTEMMED)
    change(tensors)
    save_file(tensors, path)
    assert info is not None
    with pytest.raises(TensorsError, match=rf"^{path}: .* expected .*; run `python -m export` again$"):
        Keywords(path, info, 2)


# The export


def test_the_postings_are_sorted_described_and_the_same_each_time(file: Path) -> None:
    texts = ["goose and ferry", "a goose, a goose", "🦆"]
    tensors, info = keyword_tensors(texts, KeywordOptions(stemming=None, fusion_weight=0.3))
    assert info == KeywordsInfo(4, 5, None, 1.2, 0.75, "convex", 0.3)
    assert tensors["terms"].tobytes() == b"aandferrygoose"
    assert tensors["terms.offsets"].tolist() == [0, 1, 4, 9, 14]
    assert tensors["postings.offsets"].tolist() == [0, 1, 2, 3, 5]
    assert tensors["rows"].tolist() == [1, 0, 0, 0, 1]
    save_file(tensors, file)
    before = file.read_bytes()
    save_file(keyword_tensors(texts, KeywordOptions(stemming=None))[0], file)
    assert file.read_bytes() == before
    assert load_file(file).keys() == tensors.keys()


# SciFact


@pytest.mark.skipif("BENCH_DATA" not in os.environ, reason="BENCH_DATA is not set: it names the folder of SciFact")
def test_scifacts_ndcg_is_that_of_sqlites_full_text_search(file: Path) -> None:
    test = read_scifact(Path(os.environ["BENCH_DATA"]))
    texts = list(test.documents.values())
    keywords = make(file, texts, KeywordOptions())
    stem = find_stemmer("english")

    def encode(text: str) -> list[str]:  # SQLite splits words in its own way, and takes no hyphen within one
        return [f"t{term.encode().hex()}" for term in split_terms(text, stem)]

    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='ascii')")
    database.executemany(
        "INSERT INTO texts (rowid, text) VALUES (?, ?)",
        [(row, " ".join(encode(text))) for row, text in enumerate(texts)],
    )
    best = "SELECT rowid FROM texts WHERE text MATCH ? ORDER BY bm25(texts), rowid LIMIT 10"
    theirs = [
        [row for (row,) in database.execute(best, (" OR ".join(encode(query)),))] for query in test.queries.values()
    ]
    database.close()
    ours = [[hit.row for hit in keywords.match(query).best(10)] for query in test.queries.values()]
    assert ndcg(ours, test) == pytest.approx(ndcg(theirs, test), abs=0.005)
    assert ndcg(ours, test) > 0.67


def test_a_term_of_an_earlier_query_is_not_searched_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []

    def find(terms: memoryview, offsets: memoryview, term: str) -> int | None:
        searched.append(term)
        return find_term(terms, offsets, term)

    find_term = keywords_module._find_term
    monkeypatch.setattr(keywords_module, "_find_term", find)
    keywords = make(file, ["goose ferry", "river goose"])
    first = keywords.match("goose river zebra").best(5)
    assert sorted(searched) == ["goose", "river", "zebra"]
    assert keywords.match("river goose zebra ferry").best(5)[0].row == 0
    assert keywords.match("goose river zebra").best(5) == first
    assert sorted(searched) == ["ferry", "goose", "river", "zebra"]


def test_a_long_term_is_found_but_not_kept(file: Path) -> None:
    long = "g" * (LONGEST_KNOWN + 1)
    keywords = make(file, ["goose", long])
    assert [hit.row for hit in keywords.match(long).best(5)] == [1]
    assert keywords._find.cache_info().currsize == 0


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
