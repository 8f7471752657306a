"""The text, the mode, the parts of a result, highlights and snippets, in each mode and in lists."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from semsearch import Search
from tests.promises.conftest import SearchOf, corpus_of, ids_of
from tests.promises.geese import ARGUMENTS, GEESE, MODES, ORDERS, ask
from tests.world import add_table, write_bundle


@pytest.mark.promise("text")
@pytest.mark.parametrize("mode", MODES)
def test_a_text_has_a_character_at_least_and_a_limit(geese: Search, mode: Any) -> None:
    assert ids_of(geese.search("goose", mode=mode, top_k=1)) == ["a"]
    longest = "goose ".ljust(65_536, "x")
    assert ids_of(geese.search(longest, mode=mode, top_k=1)) == ["a"]
    for wrong, message in (
        ("", "expected words, not an empty or blank text"),
        (" \n", "expected words, not an empty or blank text"),
        (longest + "x", "65537 characters, at most 65536"),
    ):
        with pytest.raises(ValueError, match=message):
            geese.search(wrong, mode=mode)


@pytest.mark.promise("text")
@pytest.mark.parametrize(("mode", "found"), [("semantic", 8), ("keyword", 0), ("hybrid", 8)])
def test_a_word_that_no_text_has_is_found_by_the_meaning_alone(geese: Search, mode: Any, found: int) -> None:
    assert len(geese.search("zebra", mode=mode, top_k=100)) == found
    assert len(geese.search("letter zebra", mode=mode, top_k=100)) == (found or 1)


@pytest.mark.promise("mode")
@pytest.mark.parametrize(
    ("mode", "parts"), [("semantic", None), ("keyword", None), ("hybrid", {"semantic": True, "keyword": True})]
)
def test_a_mode_has_scores_of_its_own(geese: Search, mode: Any, parts: dict[str, bool] | None) -> None:
    queries: list[dict[str, Any]] = [{"text": "goose letter"}, {"id": "a"}]
    for query in queries:
        for hit in geese.search(**query, mode=mode, top_k=8):
            assert (hit.scores and {name: score > 0 for name, score in hit.scores.items()}) == parts
    with pytest.raises(ValueError, match="mode: input should be 'semantic', 'keyword' or 'hybrid', found 'words'"):
        geese.search("goose", mode="words")  # type: ignore[arg-type]


@pytest.mark.promise("mode")
@pytest.mark.parametrize("mode", ["hybrid", "id", "listing"])
def test_the_default_mode(geese: Search, mode: str) -> None:
    default = {name: value for name, value in ARGUMENTS[mode].items() if name != "mode"}
    chosen = {"hybrid": "hybrid", "id": "semantic", "listing": None}[mode]
    assert geese.search(**default) == geese.search(**default | {"mode": chosen})


@pytest.mark.promise("include")
@pytest.mark.parametrize("mode", ORDERS)
@pytest.mark.parametrize("include", [[], ["text"], ["metadata"], ["source"], ["source", "metadata", "text"]], ids=str)
def test_a_result_has_the_parts_of_include_alone(sourced: Search, mode: str, include: Sequence[str]) -> None:
    (hit,) = sourced.search(**ARGUMENTS[mode] | {"filter": {"id": "b"}, "include": include})
    assert (hit.id, hit.index, hit.score is None) == ("b", 1, mode == "listing")
    assert hit.text == ("goose ferry" if "text" in include else "")
    assert hit.source == ("a *goose* ferry" if "source" in include else None)
    assert hit.metadata == ({"river": "south"} if "metadata" in include else {})


@pytest.fixture(scope="module")
def sourced(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """An index whose texts have Markdown."""
    rows = [{"id": "a", "text": "goose"}, {"id": "b", "text": "goose ferry", "river": "south"}]
    corpus = replace(corpus_of(rows), sources=["a goose", "a *goose* ferry"])
    return Search(write_bundle(tmp_path_factory.mktemp("sourced") / "bundle", corpus))


@pytest.mark.promise("include")
def test_a_part_that_there_is_not_is_refused(geese: Search) -> None:
    for wrong in (["text", "vector"], ["text"] * 4):
        with pytest.raises(ValueError, match="include"):
            geese.search("goose", include=wrong)  # type: ignore[arg-type]


LONG = "The ferry is late. " + "A radio plays. " * 20 + "Then a goose sold apples. " + "A door is open. " * 20
HIGHLIGHTED = [
    {"id": "a", "text": "goose"},
    {"id": "first", "text": "Goose and geese and goose."},
    {"id": "last", "text": "A ferry. An apple for a goose"},
    {"id": "none", "text": "A ferry. A spoon."},
    {"id": "long", "text": LONG},
]
GOOSE = LONG.index("goose")
SENTENCE = LONG.index("Then a goose")
WORDS: dict[str, list[str]] = {"first": ["Goose", "goose"], "last": ["goose"], "none": [], "long": ["goose"]}
SENTENCES = {
    "first": ["Goose and geese and goose."],
    "last": ["An apple for a goose"],
    "none": ["A ferry."],
    "long": ["Then a goose sold apples."],
}


@pytest.fixture(scope="module")
def highlighted(tmp_path_factory: pytest.TempPathFactory) -> Search:
    return Search(write_bundle(tmp_path_factory.mktemp("highlights") / "bundle", corpus_of(HIGHLIGHTED)))


@pytest.mark.promise("highlights")
@pytest.mark.parametrize(
    ("mode", "marked"),
    [
        ("semantic", SENTENCES),
        ("keyword", {id: words for id, words in WORDS.items() if words}),
        ("hybrid", WORDS),
        ("id", SENTENCES),
        ("listing", {id: [] for id in WORDS}),
    ],
)
def test_the_word_of_a_query_is_marked_or_its_sentence(
    highlighted: Search, mode: str, marked: dict[str, list[str]]
) -> None:
    condition = {"id": {"$ne": "a"}}
    hits = highlighted.search(**ARGUMENTS[mode] | {"top_k": 8, "highlights": True, "filter": condition})
    assert {hit.id: [hit.text[start:end] for start, end in hit.highlights] for hit in hits} == marked


@pytest.mark.promise("highlights")
@pytest.mark.parametrize("mode", ORDERS)
def test_a_snippet_is_the_text_or_the_part_around_the_best_sentence(highlighted: Search, mode: str) -> None:
    texts = {hit.id: hit for hit in highlighted.search(**ARGUMENTS[mode] | {"top_k": 8, "highlights": True})}
    short, long = texts["first"].snippet, texts["long"].snippet
    assert short is not None
    assert (short["start"], short["end"], short["text"]) == (0, 26, "Goose and geese and goose.")
    assert short["highlights"] == texts["first"].highlights
    assert long is not None
    assert 200 < len(long["text"]) <= 240
    assert long["text"] == LONG[long["start"] : long["end"]]
    assert long["start"] == (0 if mode == "listing" else SENTENCE)
    shown = [long["text"][start:end] for start, end in long["highlights"]]
    assert shown == [LONG[start:end] for start, end in texts["long"].highlights]


@pytest.mark.promise("highlights")
@pytest.mark.parametrize("mode", MODES)
def test_a_snippet_has_240_characters_at_most(search_of: SearchOf, mode: Any) -> None:
    texts = ["goose ".ljust(length, "x") for length in (239, 240, 241)]
    hits = search_of([{"text": text} for text in texts]).search("goose", mode=mode, highlights=True)
    assert {hit.id: (hit.snippet or {})["text"] for hit in hits} == {"0": texts[0], "1": texts[1], "2": texts[1]}


@pytest.mark.promise("highlights")
@pytest.mark.parametrize("mode", ORDERS)
def test_a_result_has_highlights_only_if_they_are_requested(geese: Search, mode: str) -> None:
    (hit,) = geese.search(**ARGUMENTS[mode] | {"top_k": 1})
    assert (hit.highlights, hit.snippet) == ([], None)


@pytest.mark.promise("queries")
@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
def test_the_model_embeds_a_query_instead_of_the_table(geese: Search, tmp_path_factory: Any, mode: Any) -> None:
    folder = add_table(write_bundle(tmp_path_factory.mktemp("table") / "bundle", corpus_of(GEESE)))
    text = "goose young"  # the vector of the last word of the tokenizer is another one in the table
    by_table, by_model = (Search(folder).search(text, mode=mode, top_k=8, queries=each) for each in (None, "model"))
    assert by_model == geese.search(text, mode=mode, top_k=8) != by_table
    assert geese.search(text, mode=mode, top_k=8, queries="model") == by_model  # has no table


@pytest.mark.promise("facets_of")
@pytest.mark.parametrize(("mode", "counted"), [*((mode, 8) for mode in MODES), ("id", 7)])
def test_facets_count_all_pages(geese: Search, mode: str, counted: int) -> None:
    for of in ("matching", "results"):
        found = geese.search(**ARGUMENTS[mode] | {"top_k": 1, "offset": 2, "facets": ["kind"], "facets_of": of})
        assert (found.facets, found.total) == ({"kind": [{"value": "bird", "count": counted}]}, counted)


@pytest.mark.promise("filter")
@pytest.mark.parametrize("mode", ORDERS)
def test_a_filter_keeps_the_order_of_the_texts_that_pass(geese: Search, mode: str) -> None:
    passing = [id for id in ORDERS[mode].split() if id in ("a", "c1", "f")]
    assert ask(geese, mode, filter={"river": "north"}).split() == passing
    assert ask(geese, mode, filter={"river": "west"}) == ""
