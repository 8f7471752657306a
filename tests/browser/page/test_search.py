"""Searching by typing: what is shown of the results, and of everything that is no result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from semsearch.app.app import App
from semsearch.indexing.corpus import Corpus
from tests.browser.page.browser import Page, Route
from tests.browser.page.conftest import ATTACK, DUCKS, Open, Serve, requested, search, texts, wait_for_text
from tests.world import write_bundle


def test_results_appear_as_one_types_best_first_and_their_number_is_announced(page: Page, corpus: Corpus) -> None:
    with page.expect_response(lambda reply: "in the snow" in (reply.request.post_data or "")):
        page.locator("#query").press_sequentially("lost a silver key in the snow")
    page.locator("#hits:not([aria-busy])").wait_for(state="attached")
    wait_for_text(page, "#status", "10 results")
    assert all("lost a silver key" in text for text in texts(page))
    assert set(texts(page)) < set(corpus.texts)
    assert page.locator("#status").get_attribute("role") == "status"
    scores = [float(text.split()[-1]) for text in page.locator(".score").all_inner_texts()]
    assert scores == sorted(scores, reverse=True)


def test_the_parts_that_the_server_names_are_marked_also_after_an_emoji(page: Page) -> None:
    page.get_by_label("Words").check()
    page.get_by_label("Number of results").select_option("50")
    with page.expect_response(lambda reply: requested(reply).get("text") == DUCKS) as seen:
        page.locator("#query").fill(DUCKS)
    page.locator("li.hit").first.wait_for()
    result = next(one for one in seen.value.json()["results"] if one["id"] == "ducks")
    text, (begin, end) = result["text"], [result["snippet"][name] for name in ("start", "end")]
    marked = [text[start:stop] for start, stop in result["highlights"]]
    assert marked == ["Forty", "ducks"]
    hit = page.locator("li.hit", has_text="Forty ducks")
    assert hit.locator(".text").text_content() == text[begin:end]
    assert hit.locator("mark").all_text_contents() == marked
    hit.get_by_role("button", name="Show all").click()
    assert hit.locator(".text").text_content() == text
    assert hit.locator("mark").all_text_contents() == marked


def test_a_corrected_word_is_shown_with_what_replaced_it(page: Page) -> None:
    note = page.locator("#corrected")
    page.get_by_label("Both").check()
    search(page, "the angry gooes and the fery")
    assert note.inner_text() == "Results for “goose” instead of “gooes”, “ferry” instead of “fery”."
    assert {"angry", "goose"} <= set(page.locator("mark").all_text_contents())
    page.get_by_label("Meaning").check()
    note.wait_for(state="hidden")
    page.get_by_label("Both").check()
    note.wait_for()
    search(page, "the angry goose")
    assert not note.is_visible()
    search(page, "gooes")
    assert note.is_visible()
    page.locator("#query").fill("")
    note.wait_for(state="hidden")


def test_nothing_is_asked_for_an_empty_or_blank_field(page: Page) -> None:
    search(page, "ferry")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    for text in ("", "   "):
        page.locator("#query").fill(text)
        page.keyboard.press("Enter")
        page.wait_for_selector("#empty:visible")
        assert (texts(page), page.locator("#status").text_content()) == ([], "")
        assert page.locator("#curl").is_hidden()
    assert asked == []


def test_while_one_types_nothing_is_asked_until_there_is_a_pause(open_page: Open) -> None:
    page = open_page()
    page.clock.install(time=0)
    page.clock.pause_at(3_600)  # seconds; from here on the test moves the page's clock
    asked: list[str] = []
    page.on("request", lambda one: asked.append(json.loads(one.post_data or "{}").get("text")))
    for letter in "goose":
        page.locator("#query").press(letter)
        page.clock.run_for(100)
    assert asked == []
    with page.expect_response("**/similar"):
        page.clock.run_for(100)
    assert asked == ["goose"]


def test_the_arrow_right_after_a_new_question_leads_to_its_first_result(page: Page) -> None:
    search(page, "ferry")
    page.clock.install()
    page.clock.pause_at(4_000_000_000)  # the pause after which the page searches never ends
    page.locator("#query").fill("forty ducks crossed the frozen river")
    page.keyboard.press("ArrowDown")
    page.locator("li.hit:focus").wait_for()
    focused = page.locator("li.hit:focus .text").text_content()
    assert "ducks" in (focused or "")
    assert focused == page.locator("li.hit .text").first.text_content()


def test_a_reply_that_comes_after_a_later_one_is_dropped(page: Page) -> None:
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/similar", hold_the_first)
    # as if the browser could not take back what it has asked: the late reply does arrive
    page.evaluate(
        "() => { AbortController.prototype.abort = function () { this.signal.dropped = true; "
        "Object.defineProperty(this.signal, 'aborted', { value: true }); }; }"
    )
    with page.expect_request("**/similar"):
        page.locator("#query").fill("apples")
    search(page, "missed the last ferry of the year")
    late = {"results": [{"index": 0, "id": "late", "score": 1, "text": "late", "metadata": {}}], "truncated": False}
    with page.expect_response("**/similar"):
        held[0].fulfill(json=late)
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
    )  # it would be drawn by now
    assert "late" not in texts(page)
    assert any("ferry" in text for text in texts(page))


def test_an_error_is_shown_in_the_servers_own_words(page: Page) -> None:
    search(page, "ferry")
    search(page, "a" * 70_000)
    problem = page.locator("#problem")
    assert (problem.text_content() or "").startswith("text: string should have at most 65536 characters, found 'aaa")
    assert problem.get_attribute("role") == "alert"
    assert texts(page) == []
    search(page, "ferry")
    assert problem.is_hidden()
    assert len(texts(page)) == 10


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ({"status": 502, "body": "<h1>Bad gateway</h1>"}, "The server answered 502 without saying why."),
        ({"status": 422, "body": json.dumps({"error": ATTACK})}, ATTACK),
    ],
)
def test_an_error_that_is_not_this_servers_is_shown_too(page: Page, reply: dict[str, Any], shown: str) -> None:
    page.route("**/similar", lambda route: route.fulfill(**reply))
    search(page, "ferry")
    assert page.locator("#problem").text_content() == shown


def test_no_text_id_or_metadata_is_taken_for_html(page: Page) -> None:
    page.get_by_label("Words").check()
    search(page, "onerror")
    hit = page.locator("li.hit", has_text="onerror")
    assert ATTACK in (hit.locator(".text").text_content() or "")
    assert ATTACK in (hit.locator(".id").text_content() or "")
    assert ATTACK in (hit.locator(".metadata button").first.text_content() or "")
    assert page.locator("#hits img, #hits script").count() == 0
    assert page.evaluate("window.attacked") is None


def test_a_query_or_a_shared_address_is_not_taken_for_html(open_page: Open) -> None:
    page = open_page(f'/?q={ATTACK}&mode={ATTACK}&n={ATTACK}&filters=[["who","is","<b>x"],["{ATTACK}"]]')
    page.wait_for_selector("#curl:not([hidden])", state="attached")
    assert page.locator("#query").input_value() == ATTACK
    assert page.evaluate("[window.attacked, document.querySelectorAll('img, b').length]") == [None, 0]


def test_the_title_of_the_texts_is_that_of_the_page(
    open_page: Open, serve: Serve, make_app: Callable[..., App], tmp_path: Path
) -> None:
    title = f"{ATTACK} Donaudampfschifffahrtsgesellschaftskapitän"
    corpus = Corpus(["A lost key."], ["7"], ["{}"])
    bundle = write_bundle(tmp_path / "bundle", corpus, options={"title": title})
    server = serve(make_app(bundle=bundle))
    page = open_page(server=server, viewport={"width": 320, "height": 700})
    assert (page.title(), page.locator("h1").text_content()) == (title, title)
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_each_mode_of_the_bundle_can_be_chosen(page: Page) -> None:
    assert page.get_by_label("Both").is_checked()  # by default
    page.get_by_label("Both").check()
    assert search(page, "angry goose")["mode"] == "hybrid"
    parts = page.locator("li.hit").first.locator(".metadata").inner_text()
    assert "meaning " in parts
    widths = page.locator("li.hit .track").evaluate_all(
        "all => all.map(one => [...one.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0))"
    )
    assert widths == pytest.approx(sorted(widths, reverse=True), abs=0.1)
    assert 0 < max(widths) <= page.locator("li.hit .track").first.evaluate("one => one.getBoundingClientRect().width")
