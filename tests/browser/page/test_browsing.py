"""Beyond the first results: more of them, texts like one of them, an order, and lists without a query."""

import json
from pathlib import Path

from tests.app.test_no_model import app_over
from tests.browser.page.browser import Page, Route
from tests.browser.page.conftest import Open, Serve, requested, search, texts, wait_for_text
from tests.world import WHO


def shown_ids(page: Page) -> list[str]:
    ids: list[str] = page.locator("li.hit .id").all_text_contents()
    return ids


def chapters(page: Page) -> list[int]:
    return [int(text.split()[1]) for text in page.get_by_role("button", name="chapter").all_inner_texts()]


def test_more_results_follow_the_first_without_repeating_one(page: Page) -> None:
    page.get_by_label("Number of results").select_option("5")
    search(page, "lost a silver key")
    first = shown_ids(page)
    page.get_by_role("button", name="More results").click()
    wait_for_text(page, "#status", "10 results")
    assert shown_ids(page)[:5] == first
    assert len(set(shown_ids(page))) == 10
    assert page.locator("li.hit").nth(5).evaluate("one => one === document.activeElement")
    assert json.loads((page.locator("#curl pre").text_content() or "").split("-d ")[1].strip("'"))["offset"] == 5
    search(page, "ferry")
    assert len(shown_ids(page)) == 5


def test_texts_like_a_result_are_found_and_back_leads_to_the_query(page: Page) -> None:
    search(page, "lost a silver key")
    before, hit = texts(page), page.locator("li.hit").nth(1)
    id = hit.locator(".id").inner_text()
    with page.expect_response("**/similar") as seen:
        hit.get_by_role("button", name="More like this").click()
    sent = requested(seen.value)
    assert (sent["id"], sent["mode"], "text" in sent) == (id, "semantic", False)
    wait_for_text(page, "#like-label", before[1])
    page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()
    assert id not in shown_ids(page)
    assert page.locator("#query").input_value() == ""
    page.go_back()
    page.locator("#like").wait_for(state="hidden")
    page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()
    assert texts(page) == before


def test_an_order_or_a_filter_lists_texts_without_a_query(page: Page) -> None:
    assert page.get_by_label("Order").locator("option").all_inner_texts() == [
        *("Best first", "chapter, highest first", "chapter, lowest first"),
        *("told, newest first", "told, oldest first"),
    ]
    with page.expect_response("**/similar") as seen:
        page.get_by_label("Order").select_option(label="chapter, highest first")
    assert requested(seen.value) == {"num_results": 10, "highlights": True, "sort": {"chapter": "desc"}}
    wait_for_text(page, "#status", "10 of 203 results")
    assert chapters(page) == [len(WHO) - 1] * 9 + [len(WHO) - 2]
    assert page.locator("li.hit .score").count() == 0
    page.get_by_role("button", name="More results").click()
    wait_for_text(page, "#status", "20 of 203 results")
    page.get_by_label("Order").select_option(label="Best first")
    page.wait_for_selector("#empty:visible")


def test_a_corpus_in_s3_vectors_is_asked_only_for_what_it_can_answer(page: Page) -> None:
    def in_s3_vectors(route: Route) -> None:
        content = route.fetch().json()
        content["index"] |= {"vectors": {"bucket": "b", "index": "i"}, "keywords": None}
        route.fulfill(json=content)

    page.route("**/info", in_s3_vectors)
    page.goto(f"{page.url}?like=story-011")
    page.locator("#filters-toggle:visible").wait_for()
    page.get_by_label("Number of results").select_option("50")
    page.get_by_role("button", name="Filters").click()
    assert page.locator("#empty").is_visible()
    assert search(page, "ferry") == {"text": "ferry", "num_results": 50, "mode": "semantic", "highlights": True}
    assert page.locator("#modes").is_hidden()
    assert page.locator("#sort").is_hidden()
    assert page.get_by_role("button", name="More like this").count() == 0
    page.get_by_role("button", name="More results").click()
    wait_for_text(page, "#status", "100 results")
    assert page.locator("#more").is_hidden()  # as many as S3 Vectors finds


def test_without_a_model_the_page_searches_by_words_and_offers_no_other_mode(
    open_page: Open, serve: Serve, no_model: Path, no_model_no_words: Path
) -> None:
    page = open_page("/?mode=semantic", server=serve(app_over(no_model)))
    assert page.locator("#modes").is_hidden()
    assert page.locator("#query").get_attribute("placeholder") == "Words that the texts have"
    sent = search(page, "silver key")
    assert (sent["mode"], sent["prefix"]) == ("keyword", True)
    assert all("silver key" in text for text in texts(page))
    with page.expect_response("**/similar") as seen:
        page.locator("li.hit").first.get_by_role("button", name="More like this").click()
    assert (requested(seen.value)["mode"], seen.value.status) == ("semantic", 200)
    page = open_page(server=serve(app_over(no_model_no_words)))
    page.locator("#query").fill("silver key")
    page.locator("#problem:visible").wait_for()
    assert (page.locator("#problem").text_content() or "").startswith(
        "text: found without a vector, but this bundle has"
    )
