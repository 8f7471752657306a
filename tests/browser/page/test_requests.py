"""What the page tells of its requests: the address to share, the curl line, the phases; and where it can be served."""

import json
import re
import shlex
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from semsearch.app.app import App
from tests.browser.page.browser import Browser, Page, Route
from tests.browser.page.conftest import Open, Serve, search, texts, wait_for_text

KEY = "a-key-of-the-tests"
AS_AT_THE_START = {"num_results": 10, "mode": "hybrid", "highlights": True, "prefix": True}


def curl(page: Page) -> list[str]:
    """Return the words of the curl line as a shell reads them."""
    return shlex.split(page.locator("#curl pre code").text_content() or "")


def test_the_address_holds_the_search_and_finds_the_same_again(open_page: Open) -> None:
    page = open_page()
    page.get_by_label("Words").check()
    page.get_by_label("Order").select_option(label="chapter, lowest first")
    page.get_by_label("Number of results").select_option("5")
    search(page, "the baker & his key: 50 %?")
    page.get_by_role("button", name=re.compile("^chapter")).first.click()
    wait_for_text(page, "#filters-toggle", "Filters (1)")
    sent = search(page, "the baker & his key")
    shared = urlsplit(page.url)
    again = open_page(f"{shared.path}?{shared.query}")
    again.locator("li.hit").first.wait_for()
    assert texts(again) == texts(page)
    assert json.loads(curl(again)[-1]) == sent
    assert again.locator("#filters").is_visible()


@pytest.mark.parametrize("state", ["filters=[", 'filters=[["nothing","is","x"],["__proto__","is","x"],7]'])
def test_an_address_that_was_cut_or_made_up_is_read_as_far_as_it_goes(open_page: Open, state: str) -> None:
    page = open_page(f"/?q=ferry&{state}")
    page.locator("li.hit").first.wait_for()
    assert json.loads(curl(page)[-1]) == {"text": "ferry"} | AS_AT_THE_START


def test_the_curl_line_sends_what_the_page_sent(page: Page) -> None:
    text = """it's "5 $HOME `id` \\n!! 100% 東京 <b>"""
    sent = search(page, text)
    command = curl(page)
    assert command[:3] == ["curl", "-s", page.url.partition("?")[0] + "similar"]
    assert command[3:6] == ["-H", "content-type: application/json", "-d"]
    assert json.loads(command[6]) == sent == {"text": text} | AS_AT_THE_START


def test_the_curl_line_can_be_copied(open_page: Open) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    search(page, "ferry")
    page.locator("#curl summary").click()
    page.get_by_role("button", name="Copy").click()
    wait_for_text(page, "#copy", "Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#curl pre code").text_content()


def test_a_key_that_is_typed_lasts_as_long_as_the_tab_and_is_in_no_address_and_no_command(page: Page) -> None:
    def check(route: Route) -> None:
        if route.request.headers.get("authorization") == f"Bearer {KEY}":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error": "authorization: no such key", "error_type": "unauthorized"})

    page.route("**/info", check)
    page.route("**/similar", check)
    page.reload()
    wait_for_text(page, "#problem", "authorization: no such key")
    page.get_by_label("API key").fill("wrong")
    page.keyboard.press("Enter")
    page.locator("#key:visible").wait_for()
    page.get_by_label("API key").fill(KEY)
    page.get_by_role("button", name="Use it").click()
    page.locator("#corpus:not(:empty)").wait_for()
    search(page, "ferry")
    assert len(texts(page)) == 10
    assert page.locator("#key").is_hidden()
    page.reload()
    page.locator("li.hit").first.wait_for()
    assert KEY not in page.url
    assert KEY not in page.content()
    assert "authorization: Bearer $API_KEY" in curl(page)
    assert page.evaluate("Object.values(localStorage).length") == 0


def test_the_phases_of_the_request_are_named_with_their_milliseconds(page: Page) -> None:
    page.get_by_label("Both").check()
    with page.expect_response("**/similar") as seen:
        page.locator("#query").fill("ferry")
    page.locator("#phases:visible").wait_for()
    sent = dict(re.findall(r"(\w+);dur=([\d.]+)", seen.value.headers["server-timing"]))
    shown = dict(text.split() for text in page.locator("#phases .legend li").all_inner_texts())
    assert list(shown) == ["parse", "keyword", "embed", "search", "reply", "network"]
    assert all(float(shown[name]) == pytest.approx(float(sent[name]), abs=0.051) for name in shown if name != "network")
    assert page.locator("#phases .stack").get_attribute("aria-hidden") == "true"


def test_the_cold_start_is_drawn_for_the_one_who_waited_for_it_and_folded_for_others(
    open_page: Open, serve: Serve, make_app: Callable[..., App]
) -> None:
    server = serve(make_app())  # conftest.py starts it with these phases: imports 1, model 2.345678
    first, later = open_page(server=server), open_page(server=server)
    assert "Your request started this server." in first.locator("#start .note").inner_text()
    for page, is_open in ((first, True), (later, False)):
        assert page.locator("#start").get_attribute("open") == ("" if is_open else None)
        assert page.locator("#start summary").inner_text() == "Cold start: 3 ms"
    rows = first.locator(".waterfall li").all_inner_texts()
    assert [row.split() for row in rows] == [["imports", "1", "ms"], ["model", "2", "ms"]]
    imports, model = (bar.bounding_box() for bar in first.locator(".waterfall .fill").all())
    assert imports
    assert model
    assert model["x"] == pytest.approx(imports["x"] + imports["width"], abs=2)


def test_it_works_behind_a_stage_of_an_api(browser: Browser, address: str) -> None:
    def answer(route: Route) -> None:
        path = urlsplit(route.request.url).path.removeprefix("/prod")
        route.fulfill(response=route.fetch(url=address + (path or "/")))

    with browser.new_context() as context:
        page = context.new_page()
        page.route("**/*", answer)
        page.goto("https://stories.example.com/prod")
        page.locator("#corpus:not(:empty)").wait_for()
        search(page, "missed the last ferry of the year")
        assert "ferry" in texts(page)[0]
        assert curl(page)[2] == "https://stories.example.com/prod/similar"
