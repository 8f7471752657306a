"""The best rows are found without reading all postings, and they are those that reading all of them finds."""

import random

import numpy as np
import pytest

from semsearch.engine.hits import DECIMALS, Hit, Mask
from semsearch.engine.keyword import matches as module
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.keyword.matches import Matches
from semsearch.engine.tensors import Array
from semsearch.indexing.keywords import KeywordOptions
from tests.bundle_files import write_keywords

ROWS = 2_000
WORDS = [f"w{'abcdefghij'[number // 10]}{'abcdefghij'[number % 10]}x" for number in range(60)]
QUERIES = [
    "waax",  # the most frequent word, with many equal scores
    "wfjx",
    "waax wabx wacx",
    "waax wfjx wfjx wfjx wbbx",
    "wfax waax wfbx wabx wfcx wbcx",
    " ".join(WORDS),
    '"wbax" waax wfjx',
    '"wabx waax" wfhx wdax',
    "waax wfjxx wcax",  # misspelled
    "wafx unknownword waxx wbqx",
]


@pytest.fixture(scope="module")
def keywords(tmp_path_factory: pytest.TempPathFactory) -> Keywords:
    """Return a corpus in which the first words are frequent, and every row occurs twice: all scores are ties."""
    choose = random.Random(5)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    texts = [" ".join(choose.choices(WORDS, weights, k=choose.randint(1, 30))) for _ in range(ROWS // 2)] * 2
    path = tmp_path_factory.mktemp("matches") / "keywords.safetensors"
    return write_keywords(path, texts, KeywordOptions(stemming=None))


@pytest.fixture(params=["each term", "rarely"])
def eager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches of a small corpus leave out postings too, and look for candidates often or seldom."""
    monkeypatch.setattr(module, "FEW_POSTINGS", 0)
    monkeypatch.setattr(module, "FIRST_ESTIMATE", 1)
    monkeypatch.setattr(module, "POSTINGS_PER_LOOKUP", 1)
    monkeypatch.setattr(module, "ROWS_PER_CANDIDATE", 1)
    monkeypatch.setattr(module, "ESTIMATE_AGAIN", 1 if request.param == "each term" else 8)
    monkeypatch.setattr(module, "ROWS_PER_CHECK", 1_000_000 if request.param == "each term" else 4)


def masks() -> list[Mask | None]:
    chance = np.random.default_rng(3).random(ROWS)
    return [None, chance < 0.5, chance < 0.003, np.zeros(ROWS, np.bool_)]


def sorted_hits(scores: Array[np.float32]) -> list[Hit]:
    """Return all rows with a score, best first, from the scores of all rows."""
    rows = sorted(np.flatnonzero(scores).tolist(), key=lambda row: (-scores[row], row))
    return [Hit(row, round(float(scores[row]), DECIMALS)) for row in rows]


def summed(matches: Matches) -> Array[np.float32]:
    """Return the scores of all rows: each posting is added in the order of the query, with NumPy's indexing."""
    scores = np.zeros(matches.rows, np.float32)
    for term in matches.terms:
        best = np.zeros_like(scores)
        for postings in term.alternatives:
            best[postings.rows] = np.maximum(best[postings.rows], postings.impacts * postings.weight)
        scores += best
    return scores if matches.allowed is None else np.where(matches.allowed, scores, np.float32(0))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("query", QUERIES)
def test_the_best_are_those_of_reading_all_postings_bit_for_bit(keywords: Keywords, query: str) -> None:
    for allowed in masks():
        scores = summed(keywords.match(query, allowed))
        expected = sorted_hits(scores)
        np.testing.assert_array_equal(keywords.match(query, allowed).scores, scores)
        highest = summed(keywords.match(query).among_all).max()
        for top_k in (1, 7, 100, 2 * ROWS):
            matches = keywords.match(query, allowed)
            assert matches.best(top_k) == expected[:top_k]
            assert matches.highest == highest
            rows = np.arange(0, ROWS, 7)
            np.testing.assert_array_equal(matches.scores_of(rows), scores[rows])
            if allowed is not None and '"' not in query:  # quoted words limit the rows too
                assert keywords.match(query).best(top_k, allowed) == expected[:top_k]
