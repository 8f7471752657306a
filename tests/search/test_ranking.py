"""What the rankings of the modes ask the engine for."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from semsearch.engine import hybrid
from semsearch.engine.hits import Scored
from semsearch.search.ranking import HybridRanking, SemanticRanking


def test_hits_are_found_thoroughly_and_the_first_rows_roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def fuse(*arguments: Any, **options: bool) -> Scored:
        asked.append((arguments[4:], options))
        return Scored(np.array([7]), np.array([0.5]))

    monkeypatch.setattr(hybrid, "fuse", fuse)
    matches: Any = SimpleNamespace(is_truncated=False, corrected={}, added=frozenset(), allowed="allowed")
    some: Any = "mask"
    for is_cut in (True, False):
        ranking = HybridRanking(matches, some, some, some, True, is_cut)
        assert ranking.is_truncated == is_cut
    assert [hit.row for hit in ranking.find(3, some)] == ranking.best(4).rows.tolist() == [7]
    assert asked == [((3, "mask"), {"exact": True, "rough": False}), ((4, None), {"exact": True, "rough": True})]
    assert ranking.matching() == "allowed"


def test_the_mask_of_a_search_replaces_that_of_its_ranking() -> None:
    asked: list[Any] = []

    def search(embedding: str, *arguments: Any, **options: bool) -> list[str]:
        asked.append((*arguments, options))
        return ["hit"]

    def best(embedding: str, *arguments: Any, **options: bool) -> tuple[list[int], list[float]]:
        asked.append((*arguments, options))
        return [7], [0.5]

    index: Any = SimpleNamespace(search=search, best=best)
    some: Any = "embedding"
    allowed, mask = np.ones(2, np.bool_), np.zeros(2, np.bool_)
    ranking: Any = SemanticRanking(index, some, allowed, True, False)
    assert ranking.find(3, None) == ranking.find(4, mask) == ["hit"]
    assert ranking.best(5) == ([7], [0.5], {})
    exact = {"exact": True}
    assert asked == [(3, allowed, exact), (4, mask, exact), (5, allowed, exact | {"rough": True})]
    assert ranking.matching() is allowed
