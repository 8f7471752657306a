"""The filter builder: every type of column, what is sent, and what is found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from export.corpus import Corpus
from function.app import App
from tests.conftest import write_bundle
from tests.page.conftest import Open, Serve, requested, search, wait_for_text

if TYPE_CHECKING:
    from playwright.sync_api import Page


def metadata(page: "Page") -> list[list[str]]:
    """Return the metadata of each result, such as "chapter 3"."""
    return [hit.locator(".metadata button").all_inner_texts() for hit in page.locator("li.hit").all()]


def add_filter(page: "Page", column: str, operator: str | None = None) -> None:
    """Open the builder and choose a column, and how it is compared."""
    if page.locator("#filters").is_hidden():
        page.get_by_role("button", name="Filters").click()
    page.get_by_role("button", name="Add a filter").click()
    page.get_by_label("Column").last.select_option(column)
    if operator:
        page.get_by_label("Comparison").last.select_option(label=operator)


CASES: dict[str, tuple[str, str | None, dict[str, str], dict[str, Any], str]] = {
    "one of": (
        "who",
        "is one of",
        {"who, one value a line": "his sister\nthe baker\n"},
        {"who": {"$in": ["his sister", "the baker"]}},
        "who ",
    ),
    "number": (
        "chapter",
        None,
        {"chapter from": "7", "chapter to": "7.5"},
        {"chapter": {"$gte": 7, "$lte": 7.5}},
        "chapter 7",
    ),
    "date": (
        "told",
        None,
        {"told from": "2024-02-05", "told to": "2024-02-05"},
        {"told": {"$gte": "2024-02-05", "$lte": "2024-02-05T23:59:59.999999Z"}},
        "told 2024-02-05",
    ),
    "starts with": ("who", "starts with", {"who": "the b"}, {"who": {"$startsWith": "the b"}}, "who the b"),
    "list": ("places", "contains", {"places": "village"}, {"places": "village"}, "places village"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_filter_of_each_type_is_sent_and_keeps_what_it_says(page: "Page", case: str) -> None:
    column, operator, values, sent, kept = CASES[case]
    add_filter(page, column, operator)
    for label, text in values.items():
        page.get_by_label(label, exact=True).fill(text)
    assert search(page, "lost a silver key")["filter"] == sent
    found = metadata(page)
    assert all(any(one.startswith(kept) for one in hit) for hit in found)
    assert bool(found) == (kept != "nothing")
    assert page.locator("#status").text_content() == (
        f"{len(found)} results" if found else "No results pass the filters"
    )


@pytest.mark.parametrize(("answer", "value"), [("yes", True), ("no", False)])
def test_a_boolean_is_yes_or_no(page: "Page", answer: str, value: bool) -> None:
    add_filter(page, "true")
    page.get_by_label("true", exact=True).select_option(label=answer)
    assert search(page, "ferry")["filter"] == {"true": value}
    assert {one for hit in metadata(page) for one in hit if one.startswith("true ")} == {f"true {str(value).lower()}"}


def test_filters_of_several_columns_must_all_hold_and_so_must_two_of_one(page: "Page") -> None:
    add_filter(page, "chapter")
    page.get_by_label("chapter from").fill("3")
    add_filter(page, "places", "contains")
    page.get_by_label("places").last.fill("sea")
    assert search(page, "ferry")["filter"] == {"chapter": {"$gte": 3}, "places": "sea"}
    add_filter(page, "places", "contains")
    page.get_by_label("places").last.fill("village")
    both = {"$and": [{"chapter": {"$gte": 3}}, {"places": "sea"}, {"places": "village"}]}
    assert search(page, "ferry ")["filter"] == both
    assert all({"places sea", "places village"} <= set(hit) for hit in metadata(page))
    assert page.locator("#filters-toggle").inner_text() == "Filters (3)"


def test_a_filter_that_is_not_filled_in_or_was_removed_is_not_sent(page: "Page") -> None:
    add_filter(page, "who")
    assert "filter" not in search(page, "ferry")
    page.get_by_label("who", exact=True).fill("the baker")
    wait_for_text(page, "#filters-toggle", "Filters (1)")
    page.get_by_role("button", name="Remove this filter").click()
    wait_for_text(page, "#filters-toggle", "Filters")
    assert "filter" not in search(page, "goose")


def test_changing_the_comparison_keeps_the_value_and_the_focus(page: "Page") -> None:
    add_filter(page, "who")
    page.get_by_label("who", exact=True).fill("the baker")
    comparison = page.get_by_label("Comparison")
    comparison.focus()
    comparison.select_option(label="is one of")
    assert page.get_by_label("who, one value a line").input_value() == "the baker"
    assert comparison.evaluate("one => one === document.activeElement")


def test_a_click_on_a_value_filters_by_it(page: "Page") -> None:
    search(page, "The baker lost a silver key")
    for shown, sent in (("chapter 0", {"$gte": 0, "$lte": 0}), ("who the baker", "the baker")):
        with page.expect_request("**/similar") as seen:
            page.get_by_role("button", name=shown).first.click()
        assert seen.value.post_data_json["filter"][shown.split()[0]] == sent
    wait_for_text(page, "#status", "9 results")


@pytest.fixture
def facets(page: "Page") -> "Page":
    """The page with its filters open and their counts drawn."""
    page.get_by_role("button", name="Filters").click()
    page.locator("#facets fieldset").first.wait_for()
    return page


def test_every_value_is_suggested_with_its_count(facets: "Page") -> None:
    add_filter(facets, "who")
    field = facets.get_by_label("who", exact=True)
    suggested = field.evaluate("one => [...one.list.options].map(option => [option.value, option.label])")
    assert ["the baker", "the baker (9)"] in suggested
    assert len(suggested) == 21  # those of the stories and the attack


def test_values_show_their_counts_and_a_click_filters_by_one(facets: "Page") -> None:
    assert facets.locator("#facets legend").all_inner_texts() == ["places", "true", "who"]
    village = facets.locator("#facets").get_by_role("button", name="village")
    assert village.inner_text().split() == ["village", "60"]
    with facets.expect_response("**/similar") as seen:
        village.click()
    assert requested(seen.value)["filter"] == {"places": "village"}
    wait_for_text(facets, "#status", "10 of 60 results")
    pressed = facets.locator("#facets button[aria-pressed=true]")
    assert pressed.inner_text().split() == ["village", "60"]
    assert pressed.evaluate("one => one === document.activeElement")  # though it was drawn again
    assert facets.locator("#facets").get_by_role("button", name="sea").inner_text().split() == [
        "sea",
        "60",
    ]  # those with both
    pressed.press("Enter")
    wait_for_text(facets, "#filters-toggle", "Filters")
    wait_for_text(facets, "#status", "10 of 203 results")


def test_the_counts_are_those_of_the_texts_that_are_searched(facets: "Page") -> None:
    facets.get_by_label("Words").check()
    sent = search(facets, "lost a silver key")
    assert sent["facets"] == ["places", "true", "who"]
    total = facets.locator("#status").inner_text()
    assert 10 < int(total.split()[2]) < 203
    assert facets.locator("#facets").get_by_role("button", name="an angry goose").is_visible()
    facets.get_by_role("button", name="More results").click()
    wait_for_text(facets, "#status", total.replace("10", "20", 1))


def test_a_column_whose_values_hardly_repeat_offers_none(
    open_page: Open, serve: Serve, make_app: Callable[..., App], tmp_path: Path
) -> None:
    texts = [f"Text number {number}" for number in range(300)]
    metadata = [json.dumps({"code": f"{number // 2}", "half": number % 2 == 0}) for number in range(300)]
    columns = {"code": "string", "half": "boolean"}
    corpus = Corpus(texts, [str(number) for number in range(300)], metadata, empty_texts=0, columns=columns)
    page = open_page(server=serve(make_app(bundle=write_bundle(tmp_path / "bundle", corpus))))
    page.get_by_role("button", name="Filters").click()
    page.locator("#facets fieldset").first.wait_for(state="attached")
    assert [one.inner_text() for one in page.locator("#facets legend").all() if one.is_visible()] == ["half"]


def test_a_date_is_filtered_by_its_day_in_utc(page: "Page") -> None:
    dates = ["2024-05-31T23:30-05:00", "2024-05-31", "2024-05-31T23:30", "2024-05-31T23:30Z", "2024-06-01T00:30+01:00"]
    days = page.evaluate("(dates) => dates.map(dayOf)", dates)
    assert days == ["2024-06-01", "2024-05-31", "2024-05-31", "2024-05-31", "2024-05-31"]


def test_names_of_any_kind_are_in_alphabetical_order_and_filter(
    open_page: Open, serve: Serve, make_app: Callable[..., App], tmp_path: Path
) -> None:
    """JavaScript would sort whole numbers before other keys, and its objects have members of their own."""
    names = ["10", "2", "9 a", "__proto__", "constructor"]
    rows = [{name: f"{name} {row}" for name in names} | {"toString": [1], "until": "9999-12-31"} for row in (0, 0, 1)]
    rows[2]["10"] = " "  # a value that no filter can state
    columns = dict.fromkeys(names, "string") | {"until": "date"}
    corpus = Corpus(["One goose"] * 3, [*"abc"], [json.dumps(row) for row in rows], empty_texts=0, columns=columns)
    page = open_page(server=serve(make_app(bundle=write_bundle(tmp_path / "bundle", corpus))))
    add_filter(page, "10")
    assert page.locator("#facets legend").all_inner_texts() == names
    assert page.get_by_label("Column").last.locator("option").all_inner_texts() == [*names, "until"]
    facets = page.locator("#facets")
    assert facets.locator("fieldset").first.locator("button").all_inner_texts() == ["10 0 2"]
    for name in names:
        facets.get_by_role("button", name=f"{name} 0 ").click()
        wait_for_text(page, "#status", "2 results")
    assert search(page, "goose")["filter"] == {name: f"{name} 0" for name in names}
    page.get_by_role("button", name="until").first.click()
    wait_for_text(page, "#filters-toggle", f"Filters ({len(names) + 1})")
    wait_for_text(page, "#status", "2 results")
    assert page.locator("li.hit").get_by_role("button", name="toString").count() == 0
