"""The filter builder: every type of column, what is sent, and what is found."""

from typing import Any

import pytest

from tests.browser.page.browser import Page
from tests.browser.page.conftest import requested, search, wait_for_text


def metadata(page: Page) -> list[list[str]]:
    """Return the metadata of each result, such as "chapter 3"."""
    return [hit.locator(".metadata button").all_inner_texts() for hit in page.locator("li.hit").all()]


def add_filter(page: Page, column: str, operator: str | None = None) -> None:
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
    "list": ("places", "contains", {"places": "village"}, {"places": "village"}, "places village"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_filter_of_each_type_is_sent_and_keeps_what_it_says(page: Page, case: str) -> None:
    column, operator, values, sent, kept = CASES[case]
    add_filter(page, column, operator)
    for label, text in values.items():
        page.get_by_label(label, exact=True).fill(text)
    assert search(page, "lost a silver key")["filter"] == sent
    found = metadata(page)
    assert found
    assert all(any(one.startswith(kept) for one in hit) for hit in found)
    assert page.locator("#status").text_content() == f"{len(found)} results"


def test_filters_of_several_columns_must_all_hold_and_so_must_two_of_one(page: Page) -> None:
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


def test_a_filter_that_is_not_filled_in_or_was_removed_is_not_sent(page: Page) -> None:
    add_filter(page, "who")
    assert "filter" not in search(page, "ferry")
    page.get_by_label("who", exact=True).fill("the baker")
    wait_for_text(page, "#filters-toggle", "Filters (1)")
    page.get_by_role("button", name="Remove this filter").click()
    wait_for_text(page, "#filters-toggle", "Filters")
    assert "filter" not in search(page, "goose")


def test_a_click_on_a_value_filters_by_it(page: Page) -> None:
    search(page, "The baker lost a silver key")
    for shown, sent in (("chapter 0", {"$gte": 0, "$lte": 0}), ("who the baker", "the baker")):
        with page.expect_request("**/similar") as seen:
            page.get_by_role("button", name=shown).first.click()
        assert seen.value.post_data_json["filter"][shown.split()[0]] == sent
    wait_for_text(page, "#status", "9 results")


@pytest.fixture
def facets(page: Page) -> Page:
    """The page with its filters open and their counts drawn."""
    page.get_by_role("button", name="Filters").click()
    page.locator("#facets fieldset").first.wait_for()
    return page


def test_values_show_their_counts_and_a_click_filters_by_one(facets: Page) -> None:
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
