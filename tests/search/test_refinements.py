"""What a query can ask for besides the best texts, and bundles without some rows, against a plain search of all."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.aws.s3.fetch import without_rows
from semsearch.engine.bundle import BundleError
from semsearch.engine.embedder import Embedder
from semsearch.engine.loading import AnyBundle, LoadedBundle, load
from semsearch.indexing.corpus import Corpus
from semsearch.search.query import Query, SearchError, UnknownIdError
from semsearch.search.refinements import add_highlights
from semsearch.search.results import Found
from tests.search.searching import find
from tests.world import WHAT, WHO, write_bundle

ROWS = 90  # no more than a plain search returns
COLUMNS = {"who": "string", "tags": "list", "size": "number", "big": "number", "told": "date", "new": "boolean"}
MODES = ("semantic", "keyword", "hybrid")
FILTERS: list[dict[str, Any] | None] = [
    None,
    {},
    {"size": {"$gte": 0.5}},
    {"who": {"$exists": True}},
    {"id": {"$in": ["id-0", "id-3", "id-5", "twice"]}},
    {"tags": "a"},
    {"id": {"$startsWith": "id-1"}},
    {"new": True, "size": {"$lt": 3.0}},
    {"who": "nobody"},
]


def metadata_of(random: np.random.Generator) -> dict[str, Any]:
    """Return random metadata, in which some columns have no value."""
    values = {
        "who": random.choice(["", *WHO[:6]]),
        "tags": random.choice(["a", "b", "ż"], random.integers(4)).tolist(),
        "size": float(random.choice([-2.5, -1.0, 0.5, 3.0])),
        "big": int(random.choice(np.array([1, 2**63, 2**63 + 1, 2**64 - 1], np.uint64))),
        "told": str(random.choice(["1969-12-31", "2024-02-29", "2024-03-01T12:00:00Z"])),
        "new": bool(random.integers(2)),
    }
    return {name: value for name, value in values.items() if random.random() < 0.8}


@cache
def world(seed: int = 7) -> tuple[Corpus, AnyBundle]:
    """Return random texts, some of them equal, with random metadata, and their bundle. Two rows have equal ids."""
    random = np.random.default_rng(seed)
    sentences = random.choice(WHO, (ROWS, 2)), random.choice(WHAT, (ROWS, 2))
    texts = [
        " ".join(f"{who.capitalize()} {what}." for who, what in zip(*each, strict=True))
        for each in zip(*sentences, strict=True)
    ]
    texts[3] = texts[4]
    ids = [f"id-{row}" for row in range(ROWS)]
    ids[20] = ids[40] = "twice"
    metadata = [json.dumps(metadata_of(random)) for _ in range(ROWS)]
    corpus = Corpus(texts, ids, metadata, columns=COLUMNS)
    with TemporaryDirectory() as folder:
        bundle = load(write_bundle(Path(folder) / "bundle", corpus))
        bundle.open_all()
    return corpus, bundle


def search(**fields: Any) -> Found:
    _, bundle = world()
    return find(bundle, Query(**fields))


@cache
def _ranked(fields: str) -> list[dict[str, Any]]:
    return [{**result} for result in search(num_results=ROWS, **json.loads(fields)).results]


def ranked(**fields: Any) -> list[dict[str, Any]]:
    """Return every text that a plain query finds. The queries of a property repeat, so each is searched once."""
    return list(_ranked(json.dumps(fields)))


def value_of(row: int, name: str) -> Any:
    found: Mapping[str, Any] = json.loads(world()[0].metadata[row])
    return found.get(name)


queries = st.fixed_dictionaries(
    {
        "text": st.sampled_from(['an angry goose "market"', "the baker", "sold forty apples at the market", "nothing"]),
        "mode": st.sampled_from(MODES),
        "filter": st.sampled_from(FILTERS),
        "exact": st.booleans(),
    }
)
counts = st.integers(1, 20)


@given(query=queries, count=st.integers(5, 20))
def test_pages_are_the_ranking(query: dict[str, Any], count: int) -> None:
    pages = [search(**query, num_results=count, offset=offset).results for offset in range(0, ROWS + count, count)]
    assert [hit for page in pages for hit in page] == ranked(**query)


@given(query=queries, count=counts, place=st.integers(0, 30))
def test_a_minimum_score_ends_the_ranking(query: dict[str, Any], count: int, place: int) -> None:
    hits = ranked(**query)
    least = hits[min(place, len(hits) - 1)]["score"] if hits else 0.5
    expected = [hit for hit in hits if hit["score"] >= least]
    assert search(**query, num_results=ROWS, min_score=least).results == expected
    assert search(**query, num_results=count, offset=3, min_score=least).results == expected[3 : 3 + count]


@given(query=queries, count=counts, offset=st.integers(0, 12), size=st.integers(1, 6))
def test_groups_are_those_of_the_ranking(query: dict[str, Any], count: int, offset: int, size: int) -> None:
    expected: dict[object, list[dict[str, Any]]] = {}
    for hit in ranked(**query):
        value = hit["metadata"].get("who")
        expected.setdefault(hit["index"] if value is None else value, []).append(hit)
    chosen = [
        best | {"group": best["metadata"].get("who"), "other_passages": others[: size - 1]}
        for best, *others in expected.values()
    ]
    found = search(**query, num_results=count, offset=offset, group_by="who", group_size=size).results
    assert found == chosen[offset : offset + count]


@given(query=queries, facets=st.lists(st.sampled_from(list(COLUMNS)), min_size=1, unique=True))
def test_facets_count_the_texts_that_the_mode_can_find(query: dict[str, Any], facets: list[str]) -> None:
    found, hits = search(**query, num_results=1, facets=facets), ranked(**query)
    assert found.total == len(hits)
    counted: Any = found.facets
    for name in facets:
        values = [hit["metadata"][name] for hit in hits if name in hit["metadata"]]
        several = [value if isinstance(value, list) else [value] for value in values]
        for entry in counted[name]:
            assert entry["count"] == sum(entry["value"] in each for each in several)
        assert {entry["value"] for entry in counted[name]} == {value for each in several for value in each}


@given(
    query=queries,
    count=counts,
    offset=st.integers(0, 20),
    sort=st.dictionaries(
        st.sampled_from(["who", "size", "big", "told", "new"]), st.sampled_from(["asc", "desc"]), min_size=1, max_size=3
    ),
)
def test_sorting_orders_the_hits_by_columns_and_then_by_score(
    query: dict[str, Any], count: int, offset: int, sort: dict[str, str]
) -> None:
    hits = ranked(**query)
    for name, way in reversed(sort.items()):
        known = [hit for hit in hits if name in hit["metadata"]]
        keys = {hit["index"]: key_of(hit["metadata"][name]) for hit in known}
        known.sort(key=lambda hit: keys[hit["index"]], reverse=way == "desc")  # called at once
        hits = known + [hit for hit in hits if name not in hit["metadata"]]
    assert search(**query, num_results=count, offset=offset, sort=sort).results == hits[offset : offset + count]


def key_of(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def test_an_unfinished_word_finds_longer_ones_only_if_that_is_asked_for(bundle: Path) -> None:
    loaded = load(bundle)
    assert not find(loaded, Query("sail", 5, "keyword", correct=False)).results
    assert find(loaded, Query("sail", 5, "keyword", correct=False, prefix=True)).results


def test_the_last_word_of_a_stored_text_is_no_unfinished_one(tmp_path: Path) -> None:
    corpus = Corpus(["sail", "sailor", "a sail"], ["a", "b", "c"], ["{}"] * 3)
    bundle = load(write_bundle(tmp_path / "bundle", corpus))
    found = find(bundle, Query(id="a", mode="keyword", prefix=True, without=["sailors"]))
    assert [hit["id"] for hit in found.results] == ["c"]
    assert not find(bundle, Query(id="a")).is_truncated


@given(
    condition=st.sampled_from(FILTERS),
    sort=st.none() | st.just({"size": "desc", "who": "asc"}),
    offset=st.integers(0, 40),
    highlights=st.booleans(),
)
def test_without_a_text_the_texts_are_listed(
    condition: dict[str, Any] | None, sort: dict[str, str] | None, offset: int, highlights: bool
) -> None:
    found = search(filter=condition, sort=sort, facets=["who"], num_results=ROWS, offset=offset, highlights=highlights)
    rows = {hit["index"] for hit in ranked(text="x", filter=condition)}
    expected = sorted(rows)
    if sort is not None:
        keys = {row: (value_of(row, "size"), value_of(row, "who")) for row in rows}
        expected.sort(
            key=lambda row: (
                *(keys[row][0] is None, -(keys[row][0] or 0)),
                *(keys[row][1] is None, (keys[row][1] or "").encode()),
            )
        )
    assert [hit["index"] for hit in found.results] == expected[offset:]
    assert (found.total, found.is_truncated) == (len(rows), False)
    assert all(hit["score"] is None for hit in found.results)
    if highlights:
        assert all(hit["text"].startswith(hit["snippet"]["text"]) for hit in found.results)
        assert all(hit["highlights"] == [] for hit in found.results)


@given(row=st.integers(0, ROWS - 1), mode=st.sampled_from(MODES), condition=st.sampled_from(FILTERS))
def test_more_like_a_text_is_its_search_without_itself(row: int, mode: str, condition: dict[str, Any] | None) -> None:
    corpus, _ = world()
    id = corpus.ids[row]
    first = corpus.ids.index(id)
    found = {hit["index"]: hit["score"] for hit in ranked(id=id, mode=mode, filter=condition)}
    hits = [hit for hit in ranked(text=corpus.texts[first], mode=mode, filter=condition) if hit["index"] != first]
    # the stored embedding is rounded to 8 bit, the embedding of a text is not
    assert found.keys() == {hit["index"] for hit in hits}
    expected = [hit["score"] for hit in hits]
    if mode != "hybrid":  # there, the scores are relative to the best of those that are found
        assert [found[hit["index"]] for hit in hits] == pytest.approx(expected, abs=0.02)


@given(query=queries, include=st.sampled_from([("text",), ()]))
def test_highlights_are_parts_of_the_texts(query: dict[str, Any], include: tuple[str, ...]) -> None:
    corpus, _ = world()
    for hit in search(**query, include=include, highlights=True).results:
        text, snippet = corpus.texts[hit["index"]], hit["snippet"]
        assert snippet["text"] == text[snippet["start"] : snippet["end"]]
        assert all(0 <= start < end <= len(text) for start, end in hit["highlights"])
        assert ("text" in hit) == ("text" in include)


def test_highlights_are_words_in_keyword_search_and_sentences_otherwise() -> None:
    for mode, is_sentence in (("keyword", False), ("hybrid", False), ("semantic", True)):
        hit = search(text="angry goose", mode=mode, highlights=True, num_results=1).results[0]
        parts = [hit["text"][start:end] for start, end in hit["highlights"]]
        assert all(part.endswith(".") for part in parts) == is_sentence
        assert is_sentence or {part.lower() for part in parts} <= {"angry", "goose"}


@pytest.mark.parametrize("mode", ["keyword", "semantic"])
def test_the_highlights_of_a_snippet_are_ranges_in_it_that_are_not_empty(mode: str) -> None:
    bundle: Any = SimpleNamespace(manifest=SimpleNamespace(corpus=SimpleNamespace(keywords=None)))
    results: list[Any] = [{}, {}]
    add_highlights(bundle, results, ["東" * 300, ""], "東", mode)
    ranges = [(0, 300)] if mode == "semantic" else [(place, place + 1) for place in range(300)]
    assert results[0]["highlights"] == ranges
    inside = [(0, 240)] if mode == "semantic" else ranges[:240]
    assert results[0]["snippet"] == {"start": 0, "end": 240, "text": "東" * 240, "highlights": inside}
    assert results[1] == {"highlights": [], "snippet": {"start": 0, "end": 0, "text": "", "highlights": []}}
    late: list[Any] = [{}]
    add_highlights(bundle, late, ["Aa b. " * 40 + "A goose. "], "goose", mode)
    assert late[0]["snippet"]["start"] == 9
    shown = [late[0]["snippet"]["text"][first:last] for first, last in late[0]["snippet"]["highlights"]]
    assert shown == ["goose" if mode == "keyword" else "A goose."]


def test_a_source_is_returned_if_it_is_requested(tmp_path: Path) -> None:
    texts, sources = ["An angry goose.", "A duck."], ["An **angry** goose.", ""]
    corpus = Corpus(texts, ["a.md#b:1", "c.md:1"], ["{}", "{}"], heading_prefix=True, sources=sources)
    bundle = load(write_bundle(tmp_path / "bundle", corpus))
    found = find(bundle, Query(text="goose duck", mode="keyword", include=["text", "source"])).results
    assert {hit["text"]: hit["source"] for hit in found} == {
        "An angry goose.": "An **angry** goose.",
        "A duck.": "A duck.",
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "text: missing; expected a text or an id, or a filter, sort or facets to list texts; add one"),
        ({"text": "a", "id": "id-1"}, "id: found 'id-1' with a text, expected one of them; leave one out"),
        ({"filter": {}, "group_by": "who"}, "group_by: found 'who' without a text, expected a text or an id"),
        ({"filter": {}, "min_score": 0.5}, "min_score: found 0.5 without a text, expected a text or an id"),
        ({"text": "a", "sort": {"size": "asc"}, "group_by": "who"}, "sort: found with group_by, expected one of them"),
        ({"text": "a", "group_by": "path"}, "group_by: found 'path', expected .*; name one of who$"),
        ({"sort": {"tags": "asc"}}, "sort: found 'tags', expected .*; name one of who, size, big, told, new$"),
        (
            {"text": "a", "mode": "semantic", "without": ["b" * 100]},
            rf"without: found \['{'b' * 58}, expected it with a text, in the modes keyword and hybrid$",
        ),
        ({"filter": {}, "mode": "keyword", "without": ["b"]}, r"without: found \['b'\], expected it with a text"),
        ({"text": "a", "facets": ["who", "x" * 100]}, f"facets: found '{'x' * 60}', expected .*; name one of who"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SearchError, match=f"^{message}"):
        search(**fields)


@pytest.mark.promise("id")
def test_an_unknown_id_is_an_error_of_its_own() -> None:
    with pytest.raises(UnknownIdError) as caught:
        search(id="y" * 100)
    assert str(caught.value) == f"id: found '{'y' * 60}', expected the id of a text; search for one"


def test_a_mode_that_the_bundle_cannot_use_is_refused_where_it_has_no_effect(bundle: Path, embedder: Embedder) -> None:
    loaded = load(bundle, embedder)
    manifest = replace(loaded.manifest, corpus_or_none=replace(loaded.manifest.corpus, keywords=None))
    without = replace(loaded, manifest=manifest)
    for mode in ("keyword", "hybrid"):
        with pytest.raises(SearchError, match=f"mode: found '{mode}', but this bundle has no keywords"):
            find(without, Query(filter={}, mode=mode))
    assert find(without, Query("goose")) == find(loaded, Query("goose", mode="semantic"))


REMOVED = (0, 4, 20, 40, 89)
IDS = ["id-0", "id-4", "twice", "id-89"]


def parts() -> tuple[LoadedBundle, LoadedBundle]:
    """The whole bundle, and the one without the rows."""
    whole = world()[1]
    assert isinstance(whole, LoadedBundle)
    without = without_rows(whole, REMOVED)
    assert isinstance(without, LoadedBundle)
    return whole, without


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"exact": True},
        {"filter": {"size": {"$gte": 0}}},
        {"filter": {"id": {"$in": ["id-0", "id-3", "twice"]}}},
        {"offset": 7},
        {"group_by": "who", "group_size": 20},
        {"facets": ["who", "tags"]},
        {"sort": {"told": "desc"}},
        {"id": "id-3", "text": None},
        {"highlights": True},
    ],
    ids=str,
)
def test_no_mode_finds_or_counts_a_removed_row(mode: str, fields: dict[str, Any]) -> None:
    whole, without = parts()
    plain: dict[str, Any] = {"text": "the baker lost a key", "mode": mode, "num_results": 90}
    query = Query(**(plain | fields))
    condition: dict[str, Any] = {"id": {"$nin": IDS}}
    if query.filter is not None:
        condition = {"$and": [query.filter, condition]}
    assert find(without, query) == find(whole, replace(query, filter=condition))
    assert find(without, query) != find(whole, query)


@pytest.mark.promise("id")
def test_the_id_of_a_removed_row_is_unknown() -> None:
    _, without = parts()
    assert without.find("id-1") == 1
    for id in IDS:
        assert without.find(id) is None
        with pytest.raises(UnknownIdError):
            find(without, Query(id=id))


def test_a_row_that_the_bundle_lacks_cannot_be_removed() -> None:
    whole, _ = parts()
    with pytest.raises(BundleError, match="row 90 was removed, expected one of 90 rows"):
        without_rows(whole, [3, 90])


def test_a_query_of_plain_fields_is_plain() -> None:
    query = Query(text="goose", num_results=3)
    assert query.is_plain
    assert not replace(query, text=None).is_plain
