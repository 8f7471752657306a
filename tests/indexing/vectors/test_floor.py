"""The floor of each mode: what is measured, and when an index has none."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from semsearch import Search, index
from semsearch.engine.bundle import PASSAGES, FloorInfo, read_manifest
from semsearch.indexing import make
from semsearch.indexing.corpus.passages import stored_columns
from semsearch.indexing.vectors.floor import find_floor, measure_floor, read_fields
from semsearch.indexing.vectors.recall import sample_spans

MODES: tuple[Literal["semantic", "keyword", "hybrid"], ...] = ("semantic", "keyword", "hybrid")
OTHERS = np.linspace(0.01, 0.2, 20).reshape(5, 4).T  # the best scores of five questions about each of four fields


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let indexes measure their floor, which they do not in other tests."""
    monkeypatch.setattr(make, "measure_floor", measure_floor)


def test_95_of_100_questions_about_other_fields_do_not_reach_the_floor() -> None:
    found = find_floor(np.array([0.5, 0.9]), OTHERS)
    assert found == FloorInfo(0.1901, kept=1.0)
    assert np.count_nonzero(OTHERS < 0.1901) == 19
    own = np.array([*[0.5] * 18, 0.1901, 0.19])  # all but one of them reach it
    assert find_floor(own, OTHERS) == FloorInfo(0.1901, kept=0.95)


def test_there_is_no_floor_if_it_would_lose_many_questions_from_the_texts() -> None:
    own = np.array([0.5] * 8 + [0.1] * 2)
    assert find_floor(own, OTHERS) == FloorInfo(None, kept=0.8)


def test_fields_that_the_texts_are_about_are_left_out() -> None:
    own = np.full(10, 0.8)
    for about in ([0.7] * 5, [0.05, 0.1, 0.7, 0.8, 0.9]):  # half of the questions of a field are answered
        assert find_floor(own, np.array([*OTHERS, about])) == find_floor(own, OTHERS)


def test_the_manifest_states_what_searches_find(bundle_copy: Path) -> None:
    measured = measure_floor(bundle_copy, read_manifest(bundle_copy)).corpus.floor
    assert read_manifest(bundle_copy).corpus.floor == measured
    assert tuple(measured) == MODES
    others = [question for field in read_fields() for question in field]
    own, search = sample_spans(stored_columns(bundle_copy / PASSAGES)[0]), Search(bundle_copy)
    for mode in MODES:
        scores = [
            np.array(
                [max((hit.score or 0.0 for hit in hits), default=0.0) for hits in search.search_many(texts, mode=mode)]
            )
            for texts in (own, others)
        ]
        assert measured[mode] == find_floor(scores[0], scores[1].reshape(20, 9))
    assert measured["hybrid"].score is not None


def test_an_index_measures_its_floor_and_an_update_to_texts_about_all_fields_has_none(out: Path) -> None:
    first = index([{"text": "the angry goose"}, {"text": "the baker sold apples"}], out=out).manifest.corpus.floor
    assert first["hybrid"].score is not None
    assert first["hybrid"].kept == 1.0
    rows = [{"text": question} for field in read_fields() for question in field]
    second = index(rows, out=out, mode="replace").manifest.corpus.floor
    assert {mode: second[mode].score for mode in MODES} == dict.fromkeys(MODES)
    assert read_manifest(out).corpus.floor == second


def test_an_index_without_keywords_has_the_floor_of_one_mode(out: Path) -> None:
    assert index([{"text": "the angry goose"}], out=out, keywords=False).manifest.corpus.floor.keys() == {"semantic"}
