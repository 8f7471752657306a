"""A corpus of documents: titles, headings, links, groups, and the passages of one document."""

import pytest

from tests.browser.page.browser import Page
from tests.browser.page.conftest import SITE, Open, search, wait_for_text


@pytest.fixture
def page(open_page: Open, documents: str) -> Page:
    return open_page(server=documents)


def test_a_document_is_one_result_with_its_best_section_the_way_to_it_a_link_and_its_further_sections(
    page: Page,
) -> None:
    sent = search(page, "the baker sold forty apples at the market")
    assert sent["group_by"] == "path"
    wait_for_text(page, "#status", "8 documents")
    hit = page.locator("li.hit").first
    title = hit.locator("h2 a")
    assert (title.inner_text(), title.get_attribute("href")) == ("End", f"{SITE}stories/0.md#part-4")
    assert title.get_attribute("rel") == "noopener"
    assert hit.locator(".way").first.inner_text() == "Story 0 \u203a Part 4 \u203a page 4"
    assert "sold forty apples" in hit.locator(".text").inner_text()
    shown = hit.locator(".metadata").inner_text()
    assert "stories/0.md" in shown
    assert "author Ann" in shown
    assert not any(name in shown for name in ("start", "end", "passage", "url", "headings"))
    others = hit.get_by_role("list", name="More sections of this document").locator("li")
    assert others.count() == 2
    for other in others.all():
        link = other.locator("a")
        assert (link.get_attribute("href") or "").startswith(f"{SITE}stories/0.md#part-")
        assert other.locator(".way").inner_text().startswith("Part ")
        assert "The baker" in other.locator(".excerpt").inner_text()


def test_texts_that_are_listed_have_titles_and_no_groups(page: Page) -> None:
    page.get_by_role("button", name="Filters").click()
    page.locator("#facets").get_by_role("button", name="stories/3.md").click()
    wait_for_text(page, "#status", "5 results")
    assert page.locator("h2").all_inner_texts() == ["End"] * 5
    assert {text.partition(" \u203a")[0] for text in page.locator(".way").all_inner_texts()} == {"Story 3"}
    assert page.locator("#facets legend").all_inner_texts() == ["author", "path"]
    assert page.locator("#sort").is_hidden()  # no one sorts by where a passage begins


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://example.com/a?b#c", "https://example.com/a?b#c"),
        ("guide/install.md#linux", f"{SITE}guide/install.md#linux"),
        ("javascript:attacked=true", None),
        (" java\tscript:attacked=true", None),
        (7, None),
    ],
)
def test_only_addresses_of_the_web_become_links(page: Page, url: object, link: str | None) -> None:
    assert page.evaluate("([url, folder]) => toLink(url, folder)", [url, SITE]) == link
