"""The floor of each mode: what is measured, and when an index has none."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from semsearch import Search, index
from semsearch.engine.bundle import FloorInfo, read_manifest
from semsearch.indexing import steps
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.vectors.floor import MEASURING, BestScores, find_floor, measure_floor, read_fields
from semsearch.indexing.vectors.recall import sample_spans
from tests.world import add_floor

SearchMode = Literal["semantic", "keyword", "hybrid"]
MODES: tuple[SearchMode, ...] = ("semantic", "keyword", "hybrid")
OTHERS = np.linspace(0.01, 0.2, 20).reshape(5, 4).T  # the best scores of five questions about each of four fields


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let indexes measure their floor, which they do not in other tests."""
    monkeypatch.setattr(steps, "measure_floor", measure_floor)


def test_95_of_100_questions_about_other_fields_do_not_reach_the_floor() -> None:
    found = find_floor(np.full(40, 0.5), OTHERS)
    assert found == FloorInfo(0.1901, kept=1.0)
    assert np.count_nonzero(OTHERS < 0.1901) == 19
    own = np.array([*[0.5] * 38, 0.1901, 0.19])  # all but one of them reach it
    assert find_floor(own, OTHERS) == FloorInfo(0.1901, kept=0.975)


def test_there_is_no_floor_if_it_would_lose_many_questions_from_the_texts() -> None:
    own = np.array([0.5] * 224 + [0.1] * 26)
    assert find_floor(own, OTHERS) == FloorInfo(None, kept=0.896)
    own[-1] = 0.5
    assert find_floor(own, OTHERS) == FloorInfo(0.1901, kept=0.9)


# `fewest` is the larger of 0.9 * n and of the least m for which the sum of C(n, k) * 17^k * 3^(n-k), over k from m to
# n, is less than 20^n / 20.
@pytest.mark.parametrize(("questions", "fewest"), [(19, 19), (30, 29), (50, 47), (100, 92), (249, 225)])
def test_the_fewer_questions_the_more_of_them_have_to_reach_the_floor(questions: int, fewest: int) -> None:
    for reached, has_floor in ((questions, True), (fewest, True), (fewest - 1, False)):
        own = np.array([0.5] * reached + [0.1] * (questions - reached))
        assert (find_floor(own, OTHERS).score is not None) is has_floor


def test_an_index_of_less_than_19_texts_has_no_floor() -> None:
    assert [find_floor(np.full(number, 0.5), OTHERS) for number in (1, 18)] == [FloorInfo(None, kept=1.0)] * 2
    assert find_floor(np.full(19, 0.5), OTHERS) == FloorInfo(0.1901, kept=1.0)


def test_fields_that_the_texts_are_about_are_left_out() -> None:
    own = np.full(40, 0.8)
    for about in ([0.7] * 5, [0.05, 0.1, 0.7, 0.8, 0.9]):  # half of the questions of a field are answered
        assert find_floor(own, np.array([*OTHERS, about])) == find_floor(own, OTHERS)


def test_there_are_nine_questions_about_each_of_twenty_fields() -> None:
    fields = read_fields()
    assert [len(field) for field in fields] == [9] * 20
    assert len({question for field in fields for question in field}) == 180


def best_scores(search: Search, texts: list[str], mode: SearchMode) -> BestScores:
    """Return the score of the best hit of each text, 0 without a hit."""
    found = search.search_many(texts, mode=mode)
    return np.array([max((hit.score or 0.0 for hit in hits), default=0.0) for hits in found])


def test_an_index_states_the_floor_of_what_searches_find(out: Path, corpus: Corpus) -> None:
    texts = corpus.texts[:40]
    told: list[tuple[str, float]] = []
    made = index(
        [{"text": text} for text in texts], out=out, progress=lambda step, share, texts=0: told.append((step, share))
    )
    measured = made.manifest.corpus.floor
    assert [share for step, share in told if step == MEASURING] == [0, 0, 1 / 3, 2 / 3, 1]
    assert read_manifest(out).corpus.floor == measured
    assert tuple(measured) == MODES
    assert measured["hybrid"].score is not None
    others, search = [question for field in read_fields() for question in field], Search(out)
    for mode in MODES:
        own = best_scores(search, sample_spans(texts), mode)
        assert measured[mode] == find_floor(own, best_scores(search, others, mode).reshape(20, 9))


def test_an_update_to_texts_about_all_fields_leaves_no_floor(bundle_copy: Path) -> None:
    rows = [{"text": question} for field in read_fields() for question in field]
    found = index(rows, out=add_floor(bundle_copy, dict.fromkeys(MODES, 0.5)), mode="replace").manifest.corpus.floor
    assert {mode: found[mode].score for mode in MODES} == dict.fromkeys(MODES)


def test_an_index_without_keywords_has_the_floor_of_one_mode(out: Path) -> None:
    assert index([{"text": "the angry goose"}], out=out, keywords=False).manifest.corpus.floor.keys() == {"semantic"}
