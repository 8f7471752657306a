"""Searches with `"min_score": "floor"`: the score that was measured for the mode when the index was made."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.bundle import MANIFEST, check_bundle
from semsearch.engine.loading import AnyBundle, load
from semsearch.search.query import FLOOR, Query, SearchError
from tests.rerankers import add_reranker
from tests.search.searching import find
from tests.world import add_floor

TEXT = "the angry goose lost a silver key in the snow"
FLOORS = {"semantic": 0.5, "keyword": 3.0, "hybrid": 0.4}
MODES = tuple(FLOORS)


@pytest.fixture(scope="module")
def floored(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> AnyBundle:
    copy = shutil.copytree(bundle, tmp_path_factory.mktemp("floored") / "bundle")
    return load(add_reranker(add_floor(copy, FLOORS), 0.5))


@pytest.mark.promise("min_score")
@pytest.mark.parametrize("mode", [*MODES, None])  # hybrid is the default
def test_the_floor_is_the_number_that_was_measured_for_the_mode(floored: AnyBundle, mode: str | None) -> None:
    found = find(floored, Query(TEXT, 100, mode, min_score=FLOOR)).results
    assert found == find(floored, Query(TEXT, 100, mode, min_score=FLOORS[mode or "hybrid"])).results
    assert 0 < len(found) < len(find(floored, Query(TEXT, 100, mode)).results)


@pytest.mark.promise("min_score")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("later", [{"boost": {"chapter": {"log": True, "weight": 1.0}}}, {"rerank": 50}])
def test_the_floor_is_for_scores_before_boosts_and_reranking(
    floored: AnyBundle, mode: str, later: dict[str, Any]
) -> None:
    query = Query(TEXT, 100, mode, min_score=FLOOR)
    plain, found = [hit["id"] for hit in find(floored, query).results], find(floored, replace(query, **later)).results
    assert {hit["id"] for hit in found} == set(plain)
    assert [hit["id"] for hit in found] != plain


def test_a_text_with_exactly_the_score_of_the_floor_stays_when_there_are_boosts(bundle_copy: Path) -> None:
    boost = {"chapter": {"log": True, "weight": 1.0}}
    plain = find(load(bundle_copy), Query(TEXT, 5, "semantic")).results
    floored = load(add_floor(bundle_copy, FLOORS | {"semantic": plain[-1]["score"]}))
    found = find(floored, Query(TEXT, 100, "semantic", min_score=FLOOR, boost=boost)).results
    assert plain[-1]["id"] in {hit["id"] for hit in found}


def test_groups_have_no_text_below_the_floor(floored: AnyBundle) -> None:
    plain = find(floored, Query(TEXT, 100, min_score=FLOOR)).results
    groups = find(floored, Query(TEXT, 100, min_score=FLOOR, group_by="who", group_size=20)).results
    found = [hit["id"] for group in groups for hit in [group, *group["other_passages"]]]
    assert sorted(found) == sorted(hit["id"] for hit in plain)


def test_an_older_index_without_a_measured_floor_refuses_it_and_says_what_to_do(bundle_copy: Path) -> None:
    written = (bundle_copy / MANIFEST).read_text()
    older = written.replace(',\n    "floor": {}', "")
    assert older != written
    (bundle_copy / MANIFEST).write_text(older)
    assert check_bundle(bundle_copy).corpus.floor == {}
    with pytest.raises(SearchError, match=r"min_score: found 'floor', but .* no measured floor; .*index the texts"):
        find(load(bundle_copy), Query(TEXT, min_score=FLOOR))


def test_a_floor_is_refused_beside_another_weight_which_changes_the_scores(floored: AnyBundle) -> None:
    with pytest.raises(SearchError, match="min_score: found 'floor' with fusion_weight, which changes the scores"):
        find(floored, Query(TEXT, min_score=FLOOR, fusion_weight=0.5))


def test_a_mode_without_a_floor_refuses_it(bundle_copy: Path) -> None:
    bundle = load(add_floor(bundle_copy, FLOORS | {"keyword": None}))
    with pytest.raises(SearchError, match="min_score: found 'floor', but in the mode keyword no score of this index"):
        find(bundle, Query(TEXT, mode="keyword", min_score=FLOOR))
    assert find(bundle, Query(TEXT, min_score=FLOOR)).results
