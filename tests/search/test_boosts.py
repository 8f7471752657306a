"""Boosts: what columns add to scores, compared with sums by hand over the same candidates."""

import json
import math
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.embedder import Embedder
from semsearch.engine.hits import Hit, Scored
from semsearch.engine.loading import LoadedBundle, load
from semsearch.engine.metadata.boosts import Boost, read_boosts
from semsearch.engine.metadata.filters import FilterError
from semsearch.indexing.corpus import Corpus
from semsearch.search.query import Query, SearchError
from tests.command_line import error_line, run, write_texts
from tests.search.searching import find
from tests.world import write_bundle

COLUMNS = {"date": "date", "sold": "number", "in_stock": "boolean", "tags": "list"}
BOOST: dict[str, Any] = {
    "date": {"half_life": "30d", "weight": 0.2},
    "in_stock": {"equals": True, "weight": 0.1},
    "sold": {"log": True, "weight": 0.05},
    "tags": {"equals": "new", "weight": 0.03},
}
SOLD = {"sold": BOOST["sold"]}  # depends on no clock
ROWS = 250


def product(row: int) -> dict[str, Any]:
    if row % 50 == 7:
        return {}
    date = datetime.now(UTC) - timedelta(days=(row * 37) % 400 - 3)
    return {
        "date": date.isoformat(),
        "sold": (row * 13) % 97 - 1,
        "in_stock": row % 3 == 0,
        "tags": ["new"] if row % 4 == 0 else ["old", "red"],
    }


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> LoadedBundle:
    words = ["door", "letter", "river", "market", "radio", "spoon"]
    texts = [f"Wooden {words[row % 6]} {words[row // 6 % 6]}." for row in range(ROWS)]
    metadata = [json.dumps(product(row)) for row in range(ROWS)]
    corpus = Corpus(texts, [f"p-{row}" for row in range(ROWS)], metadata, columns=COLUMNS)
    loaded = load(write_bundle(tmp_path_factory.mktemp("catalogue") / "bundle", corpus), embedder)
    assert isinstance(loaded, LoadedBundle)
    return loaded


def by_hand(metadata: dict[str, Any]) -> float:
    if not metadata:
        return 0.0
    age = max(0.0, time.time() - datetime.fromisoformat(metadata["date"]).timestamp())
    dates = 0.2 * math.pow(0.5, age / (30 * 86_400))
    others: float = 0.1 * metadata["in_stock"] + 0.03 * ("new" in metadata["tags"])
    sold: int = max(metadata["sold"], 0)
    return dates + others + 0.05 * math.log(1 + sold)


@pytest.mark.parametrize("mode", ["semantic", "keyword", "hybrid"])
def test_the_best_200_hits_are_ordered_by_their_sums(catalogue: LoadedBundle, mode: str) -> None:
    plain: Any = find(catalogue, Query("wooden river door", 250, mode)).results
    found: Any = find(catalogue, Query("wooden river door", 250, mode, boost=BOOST)).results
    boosts = {hit["id"]: by_hand(hit["metadata"]) for hit in plain[:200]}
    sums = {hit["id"]: hit["score"] + boosts[hit["id"]] for hit in plain[:200]}
    for hit, score in zip(found[:200], sorted(sums.values(), reverse=True), strict=True):
        assert hit["score"] == pytest.approx(score, abs=1e-5)
        assert hit["score"] == pytest.approx(sums[hit["id"]], abs=1e-5)
        assert hit["scores"]["boost"] == pytest.approx(boosts[hit["id"]], abs=1e-5)
    assert [hit["id"] for hit in found[200:]] == [hit["id"] for hit in plain[200:]]
    assert found[7]["scores"][mode] + found[7]["scores"]["boost"] == pytest.approx(found[7]["score"], abs=1e-5)


def test_the_newest_of_equal_texts_is_first_and_pages_and_filters_agree(catalogue: LoadedBundle) -> None:
    query = Query("wooden door letter", 20, "semantic", boost={"date": {"half_life": "30d", "weight": 0.2}})
    best = find(catalogue, query).results
    equal = [hit for hit in best if hit["text"] == best[0]["text"] and hit["metadata"]]
    assert len(equal) > 5
    assert equal == sorted(equal, key=lambda hit: min(hit["metadata"]["date"], datetime.now(UTC).isoformat()))[::-1]
    second = find(catalogue, replace(query, num_results=10, offset=10)).results
    assert [hit["id"] for hit in second] == [hit["id"] for hit in best[10:]]
    red = find(catalogue, replace(query, filter={"tags": "red"}, num_results=5)).results
    assert [hit["id"] for hit in red] == [hit["id"] for hit in best if "red" in hit["metadata"].get("tags", ())][:5]


@pytest.mark.parametrize("refined", [{}, {"boost": SOLD}, {"min_score": 0.01}, {"boost": SOLD, "min_score": 0.2}])
def test_sorting_all_texts_with_a_word_makes_hits_of_the_page_alone(
    catalogue: LoadedBundle, monkeypatch: pytest.MonkeyPatch, refined: dict[str, Any]
) -> None:
    query = Query("wooden river door", ROWS, "keyword", **refined)
    ranked = [hit for hit in find(catalogue, query).results if "in_stock" in hit["metadata"]]
    expected = sorted(ranked, key=lambda hit: hit["metadata"]["in_stock"])
    made, hits_of = list[int](), Scored.hits

    def counted(scored: Scored) -> list[Hit]:
        made.append(len(scored.rows))
        return hits_of(scored)

    monkeypatch.setattr(Scored, "hits", counted)
    found = find(catalogue, replace(query, sort={"in_stock": "asc"}, num_results=5, offset=2))
    assert found.results == expected[2:7]
    assert len(ranked) > 100
    assert sum(made) <= 10


def test_a_list_has_the_largest_boosts_first_and_a_sort_comes_before_them(catalogue: LoadedBundle) -> None:
    rows = [row for row in range(ROWS) if row % 3 == 0]
    listed = Query(num_results=100, filter={"in_stock": True}, boost=BOOST)
    found = find(catalogue, listed)
    boosts = [by_hand(hit["metadata"]) for hit in found.results]
    assert boosts == sorted(boosts, reverse=True)
    assert {hit["score"] for hit in found.results} == {None}
    assert found.total == len([row for row in rows if product(row)])
    tenth = find(catalogue, replace(listed, num_results=10, offset=10)).results
    assert tenth == found.results[10:20]
    sorted_by_column = replace(listed, sort={"sold": "desc"}, num_results=20)
    without_boost = replace(sorted_by_column, boost=None)
    assert find(catalogue, sorted_by_column).results == find(catalogue, without_boost).results
    with pytest.raises(SearchError, match="boost: expected the name of a column"):
        find(catalogue, replace(listed, sort={"sold": "asc"}, boost={"wrong": {"log": True, "weight": 1}}))


def test_the_bundles_default_counts_unless_the_request_has_its_own(catalogue: LoadedBundle) -> None:
    boost = {"sold": {"log": True, "weight": 0.05}}
    index = replace(catalogue.manifest.corpus, boost=boost)
    default, query = (
        replace(catalogue, manifest=replace(catalogue.manifest, corpus_or_none=index)),
        Query("wooden door", 30),
    )
    # they compare the manifest when opened
    vars(default).update(columns=catalogue.columns, keywords=catalogue.keywords)
    assert find(default, query).results == find(catalogue, replace(query, boost=boost)).results
    assert find(default, replace(query, boost={})).results == find(catalogue, query).results


@pytest.mark.parametrize(
    ("boost", "message"),
    [
        ({"wrong": {"log": True, "weight": 1}}, "boost: expected the name of a column"),
        ({"sold": {"log": True}}, "boost.sold: expected an object with weight and one of"),
        ({"sold": {"log": True, "weight": -1}}, "boost.sold.weight: expected a number from 0"),
        ({"sold": {"log": True, "weight": math.nan}}, "boost.sold.weight: expected a number from 0"),
        ({"sold": {"half_life": "1d", "weight": 1}}, "boost.sold.half_life: expected a column of type date"),
        ({"date": {"half_life": "0d", "weight": 1}}, "boost.date.half_life: expected hours, days or weeks"),
        ({"in_stock": {"equals": "yes", "weight": 1}}, "boost.in_stock.equals: expected a value of type boolean"),
        ({"sold": {"log": False, "weight": 1}}, "boost.sold.log: expected true"),
        ({"id": {"equals": "a" * 65_537, "weight": 1}}, "boost.id.equals: expected at most 65536 characters"),
    ],
)
def test_a_wrong_boost_is_refused(catalogue: LoadedBundle, boost: dict[str, Any], message: str) -> None:
    with pytest.raises(SearchError, match=message):
        find(catalogue, Query("door", boost=boost))


@pytest.mark.parametrize(
    ("options", "kind", "operand", "weight"),
    [
        ({"half_life": "12h", "weight": 0}, "half_life", 12 * 3_600.0, 0.0),
        ({"half_life": "1.5d", "weight": 1_000}, "half_life", 1.5 * 86_400, 1_000.0),
        ({"half_life": "999999w", "weight": 0.5}, "half_life", 999_999 * 604_800.0, 0.5),
        ({"equals": "1970-01-02", "weight": 1}, "equals", 86_400_000_000, 1.0),
    ],
)
def test_a_boost_is_read(options: dict[str, Any], kind: str, operand: float, weight: float) -> None:
    (found,) = read_boosts({"date": options}, COLUMNS)
    assert found == Boost("date", kind, operand, weight)
    assert isinstance(found.weight, float)


def test_facets_count_the_same_texts_with_a_boost(catalogue: LoadedBundle) -> None:
    query = Query("river", 5, "keyword", facets=("in_stock",))
    plain, found = find(catalogue, query), find(catalogue, replace(query, boost=SOLD))
    assert (found.facets, found.total) == (plain.facets, plain.total)
    assert 0 < (plain.total or 0) < ROWS


SHAPE = "boost.date: expected an object with weight and one of half_life, equals and log"
WEIGHT = "boost.date.weight: expected a number from 0 to 1000"
HALF_LIFE = "boost.date.half_life: expected hours, days or weeks, such as 12h, 30d or 2w"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("30d", SHAPE),
        ({"half_life": "1d"}, SHAPE),
        ({"weight": 1, "more": 1}, SHAPE),
        ({"half_life": "1d", "equals": "2024-01-01"}, SHAPE),
        ({"half_life": "1d", "weight": 1, "more": 1}, SHAPE),
        ({"half_life": "1d", "more": 1}, WEIGHT),
        ({"half_life": "1d", "weight": True}, WEIGHT),
        ({"half_life": "1d", "weight": "1"}, WEIGHT),
        ({"half_life": "1d", "weight": 1_000.5}, WEIGHT),
        ({"half_life": 1, "weight": 1}, HALF_LIFE),
        ({"half_life": "1", "weight": 1}, HALF_LIFE),
        ({"half_life": "1234567d", "weight": 1}, HALF_LIFE),
        ({"half_life": "0.0h", "weight": 1}, HALF_LIFE),
        ({"log": True, "weight": 1}, "boost.date.log: expected a column of type number"),
    ],
    ids=str,
)
def test_a_boost_of_another_form_is_refused(options: Any, error: str) -> None:
    with pytest.raises(FilterError) as refused:
        read_boosts({"date": options}, COLUMNS)
    assert str(refused.value).startswith(f"{error}, found ")


def test_an_export_with_a_wrong_boost_ends_with_one_line(bundle_copy: Path, tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts.csv", ["a", "b"])
    done = run("index", texts, "--out", bundle_copy, "--replace", "--boost", '{"sold": {"log": true, "weight": 1}}')
    assert error_line(done).startswith("error: boost: expected the name of a column, found 'sold'")
