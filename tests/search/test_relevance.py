"""When a search says that nothing relevant was found: its best score of all texts is below the floor of its mode."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.loading import load
from semsearch.search.executor import Executor, finish
from semsearch.search.making import make_search
from semsearch.search.query import FLOOR, Query
from semsearch.search.relevance import nothing_relevant
from tests.rerankers import add_reranker
from tests.world import add_floor

TEXT = "the angry goose lost a silver key in the snow"
MODES = ("semantic", "keyword", "hybrid")
BOOST = {"chapter": {"log": True, "weight": 5.0}}
Says = Callable[..., str | None]


def says_over(bundle: Path) -> Says:
    """Return what says whether a query of TEXT over a bundle finds nothing relevant; it takes the query's fields."""
    loaded = load(bundle)
    search = make_search(loaded, Executor(loaded.embedder))

    def says(**fields: Any) -> str | None:
        query = Query(**{"text": TEXT} | fields)
        return finish(nothing_relevant(query, finish(search(query, lambda phase: None)), loaded, search))

    return says


@pytest.fixture(scope="module")
def best(bundle: Path) -> dict[str, float]:
    """Return the score of the best of all texts in each mode."""
    loaded = load(bundle)
    search = make_search(loaded, Executor(loaded.embedder))
    found = {mode: finish(search(Query(TEXT, 200, mode), lambda phase: None)) for mode in MODES}
    return {mode: max(each.scores) for mode, each in found.items()}


@pytest.fixture(scope="module")
def over(bundle: Path, best: dict[str, float], tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Says]:
    def over(above: float) -> Says:
        """Return `says_over` of a bundle whose floors are so much above the best scores."""
        copy = shutil.copytree(bundle, tmp_path_factory.mktemp("floored") / "bundle")
        return says_over(add_reranker(add_floor(copy, {mode: best[mode] + above for mode in MODES}), 0.5))

    return over


@pytest.fixture(scope="module")
def above(over: Callable[[float], Says]) -> Says:
    return over(0.001)


@pytest.mark.parametrize("mode", [*MODES, None])
def test_a_best_score_below_the_floor_says_so_and_one_at_it_does_not(
    over: Callable[[float], Says], above: Says, best: dict[str, float], mode: str | None
) -> None:
    score = best[mode or "hybrid"]
    assert above(mode=mode) == f"nothing relevant: the best score {score:.2f} is below {score + 0.001:.2f}"
    assert over(0.0)(mode=mode) is None


ASKED: list[dict[str, Any]] = [
    {"offset": 3},
    {"sort": {"chapter": "desc"}},
    {"boost": BOOST},
    {"rerank": 20},
    {"group_by": "who"},
    {"facets": ("who",), "highlights": True, "include": ()},
    {"offset": 2, "group_by": "who", "boost": BOOST},
]


@pytest.mark.parametrize("fields", ASKED)
def test_it_is_the_best_score_of_all_texts_before_boosts_whatever_is_shown(
    over: Callable[[float], Says], above: Says, fields: dict[str, Any]
) -> None:
    assert above(**fields) == above()
    assert over(0.0)(**fields) is None


def test_with_a_filter_it_is_the_best_score_of_the_texts_that_pass(over: Callable[[float], Says]) -> None:
    says = over(0.0)
    assert says(filter={"chapter": {"$gte": 0}}) is None
    found = [says(filter={"chapter": chapter}) for chapter in range(20)]
    assert found.count(None) == 1  # the chapter of the best text


UNSAID: list[dict[str, Any]] = [
    {"min_score": FLOOR},
    {"min_score": 0.0},
    {"fusion_weight": 0.5},
    {"text": None, "filter": {"chapter": 3}},
    {"text": None, "id": "story-150"},
    {"filter": {"chapter": 1_000}},  # which no text has
]


@pytest.mark.parametrize("fields", UNSAID)
def test_nothing_is_said_where_the_floor_is_not_for_the_scores(
    over: Callable[[float], Says], fields: dict[str, Any]
) -> None:
    says = over(10.0)
    assert says() is not None
    assert says(**fields) is None


def test_nothing_is_said_with_a_vector(above: Says, bundle: Path) -> None:
    dim = load(bundle).manifest.model.dim
    assert above(text=None, vector=[1.0] * dim) is None
    assert above(vector=[1.0] * dim) is None


def test_a_mode_without_a_floor_and_an_index_without_any_say_nothing(bundle_copy: Path) -> None:
    assert [says_over(bundle_copy)(mode=mode) for mode in MODES] == [None] * 3
    says = says_over(add_floor(bundle_copy, {"semantic": 1.1, "keyword": None, "hybrid": 1.1}))
    assert [says(mode=mode) is None for mode in MODES] == [False, True, False]
