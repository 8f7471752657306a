"""For the keyboard alone, for screen readers, for narrow screens and for either colour scheme."""

from collections.abc import Callable

import pytest

from tests.browser.page.browser import TOOLS, Page
from tests.browser.page.conftest import LONG, Open, search, texts


def focused(page: Page) -> str:
    """Return what has the focus: an id, or the text of a hit."""
    return str(page.evaluate("document.activeElement.id || document.activeElement.querySelector('.text')?.textContent"))


def test_everything_can_be_done_without_a_mouse(page: Page) -> None:
    assert focused(page) == "query"
    with page.expect_response("**/similar"):
        page.keyboard.type("goose")
    page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()
    found = texts(page)
    for key, expected in [
        *(("ArrowDown", found[0]), ("ArrowDown", found[1]), ("ArrowDown", found[2]), ("ArrowUp", found[1])),
        *(("ArrowUp", found[0]), ("ArrowUp", "query"), ("ArrowDown", found[0]), ("/", "query")),
    ]:
        page.keyboard.press(key)
        assert focused(page) == expected
    assert page.locator("#query").input_value() == "goose"  # the slash is not part of it
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    assert (focused(page), page.locator("#query").input_value(), texts(page)) == ("query", "", [])


def test_enter_shows_all_of_a_long_text_and_folds_it_again(page: Page) -> None:
    search(page, "An angry goose opened the wooden door before sunrise.")
    page.locator("#query").focus()
    folded = page.locator("li.hit", has=page.locator(".more")).locator(".text").text_content()
    while focused(page) != folded:
        page.keyboard.press("ArrowDown")
    for is_open, shown in (("true", LONG), ("false", folded)):
        page.keyboard.press("Enter")
        assert page.locator(".more").get_attribute("aria-expanded") == is_open
        assert focused(page) == shown


def test_the_tab_key_reaches_every_control_in_reading_order(page: Page) -> None:
    page.locator("#query").focus()
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("document.activeElement.id || document.activeElement.name || document.activeElement.tagName")
        )
    assert reached == ["mode", "count", "sort", "filters-toggle", "SUMMARY"]


def with_results(page: Page) -> None:
    page.get_by_label("Both").check()
    search(page, "An angry goose opened the wooden door before sunrise. 東京")
    page.locator("#curl summary").click()
    page.locator("#start summary").click()


def with_filters(page: Page) -> None:
    search(page, "ferry")
    page.get_by_role("button", name="Filters").click()
    page.locator("#facets fieldset").first.wait_for()
    for column in ("places", "told", "true", "who"):
        page.get_by_role("button", name="Add a filter").click()
        page.get_by_label("Column").last.select_option(column)
    page.get_by_label("Comparison").last.select_option(label="is one of")


def with_a_hit_in_focus(page: Page) -> None:
    search(page, "An angry goose opened the wooden door before sunrise.")
    page.locator("#query").focus()
    page.keyboard.press("ArrowDown")


def with_an_error(page: Page) -> None:
    search(page, "a" * 70_000)


def with_a_key_to_enter(page: Page) -> None:
    page.route("**/info", lambda route: route.fulfill(status=401, json={"error": "authorization: no key"}))
    page.reload()
    page.locator("#key:visible").wait_for()


def empty(page: Page) -> None:
    page.locator("#empty:visible").wait_for()


STATES = [empty, with_results, with_filters, with_a_hit_in_focus, with_an_error, with_a_key_to_enter]


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core, which finds what breaks the rules of WCAG."""
    return (TOOLS / "axe_playwright_python" / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    """Return what axe-core finds wrong with the page."""
    page.evaluate(axe)
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 15
    return [f"{one['id']}: {one['help']}: {[node['html'] for node in one['nodes']]}" for one in found["violations"]]


def outside(page: Page, width: int) -> list[str]:
    """Return the elements that are cut off at the right of a window of this width."""
    assert page.evaluate("document.documentElement.scrollWidth") == width
    find = """width => [...document.querySelectorAll('body *')].filter(one =>
        !one.closest('.unseen, svg, datalist, option, .others') && one.getBoundingClientRect().right > width + 0.5
    ).map(one => one.outerHTML)"""
    found: list[str] = page.evaluate(find, width)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_and_no_screen_is_too_narrow(
    open_page: Open, axe: str, state: Callable[[Page], None], scheme: str
) -> None:
    page = open_page(color_scheme=scheme, bypass_csp=True, viewport={"width": 320, "height": 700})
    state(page)
    assert outside(page, 320) == []
    assert violations(page, axe) == []
