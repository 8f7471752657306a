"""Visits of a site in a real browser: what can be searched when, what is kept, and what happens without a network."""

import re
import shutil
from pathlib import Path
from threading import Event

import pytest

from semsearch.indexing.corpus import Corpus
from semsearch.site.site import write_site
from tests.browser.page.browser import INSECURE, Browser, Page
from tests.browser.site.conftest import Connect, Function, Host, Visit, make_site, make_site_of_pages, wait_until
from tests.browser.site.world import write_site_bundle

QUERY = "lost a silver key in the snow"


def found(page: Page, text: str = QUERY) -> list[str]:
    """Search for a text and return the ids of the results."""
    page.locator("#query").fill(text)
    page.locator("#hits:not([aria-busy]) li.hit").first.wait_for()
    page.wait_for_function("text => shown?.request.text === text && !hits.hasAttribute('aria-busy')", arg=text)
    ids: list[str] = page.locator("li.hit .id").all_text_contents()
    return ids


def expected(function: Function, mode: str, text: str = QUERY) -> list[str]:
    request = {"text": text, "mode": mode, "num_results": 10}
    return [result["id"] for result in function(request)["results"]]


@pytest.fixture(scope="module")
def function(site_bundle: Path, function_over: Connect) -> Function:
    return function_over(site_bundle)


def test_words_are_searched_before_the_model_has_arrived_and_meaning_after(
    site: Path, host: Host, visit: Visit, function: Function
) -> None:
    own = host(site)
    own.held["queries-"] = Event()
    page = visit(own)
    wait_until(page, "keyword")
    assert found(page) == expected(function, "keyword")
    assert page.locator("input[name=mode][value=keyword]").is_enabled()
    assert page.locator("input[name=mode]:disabled").count() == 2
    assert re.search(r"Loading the search by meaning: \d\.\d of \d+\.\d MB", page.locator("#loading").inner_text())
    assert 0 < page.locator("#loading progress").evaluate("one => one.value") < 1
    own.held["queries-"].set()
    page.wait_for_function("() => shown.request.mode === 'hybrid'")  # the same query, now with meaning
    assert found(page) == expected(function, "hybrid")
    assert page.locator("input[name=mode]:disabled").count() == 0
    page.get_by_label("Meaning").check()
    page.wait_for_function("() => shown.request.mode === 'semantic'")
    assert found(page) == expected(function, "semantic")


def test_a_query_with_a_token_that_the_corpus_lacks_waits_for_the_other_vectors(
    site: Path, host: Host, visit: Visit, function: Function
) -> None:
    own = host(site)
    own.held["others-"] = Event()
    page = visit(own)
    wait_until(page, "semantic")
    page.get_by_label("Meaning").check()
    assert found(page) == expected(function, "semantic")
    page.locator("#query").fill("silver -9-")  # no text has the digit
    page.wait_for_selector("#hits[aria-busy]")
    own.held["others-"].set()
    assert found(page, "silver -9-") == expected(function, "semantic", "silver -9-")


def test_after_one_visit_everything_works_without_a_network(
    site: Path, host: Host, visit: Visit, function: Function
) -> None:
    own = host(site)
    page = visit(own)
    wait_until(page, "offline")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    assert "works offline" in page.locator("#loading").inner_text()
    own.stop()
    page.reload()
    wait_until(page, "semantic")
    for mode, label in (("semantic", "Meaning"), ("keyword", "Words"), ("hybrid", "Both")):
        page.get_by_label(label).check()
        assert found(page) == expected(function, mode)
        assert found(page, "the baker") == expected(function, mode, "the baker")
    page.get_by_role("button", name="Filters").click()
    page.locator("#facets button").first.click()
    page.wait_for_function("() => shown.request.filter && !hits.hasAttribute('aria-busy')")
    assert page.locator("#problem").is_hidden()


def test_a_new_site_replaces_the_code_and_the_data_that_the_browser_keeps(
    site: Path, documents_bundle: Path, host: Host, visit: Visit, tmp_path: Path
) -> None:
    own = shutil.copytree(site, tmp_path / "project" / "search")
    page = visit(host(own))
    wait_until(page, "offline")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    write_site(documents_bundle, own)
    page.reload()
    page.locator("#corpus", has_text="40 texts").wait_for()
    wait_until(page, "offline")
    names = {path.name for path in (own / "data").iterdir()}
    kept = """async () => {
        const cache = await caches.open(`data ${new URL('.', location.href).pathname}`);
        return (await cache.keys()).map((request) => request.url.split('/').at(-1));
    }"""
    page.wait_for_function(f"async (names) => (await ({kept})()).every((name) => names.includes(name))", arg=[*names])


def test_a_damaged_file_is_named_and_words_are_still_searched(
    site: Path, host: Host, visit: Visit, function: Function
) -> None:
    own = host(site)
    own.damaged.add("queries-")
    page = visit(own)
    page.wait_for_selector("#loading.problem")
    text = page.locator("#loading").inner_text()
    assert re.search(r"^Only words are searched: data/queries-[0-9a-f]{16}\.bin is damaged \(.*SHA-256", text)
    assert found(page) == expected(function, "keyword")
    own.damaged.clear()
    page.reload()
    wait_until(page, "semantic")


def test_without_https_it_works_and_says_what_it_cannot_do(
    site: Path, host: Host, visit: Visit, function: Function
) -> None:
    own = host(site)
    page = visit(own, name=INSECURE)
    wait_until(page, "offline")
    assert page.evaluate("'caches' in globalThis || 'serviceWorker' in navigator") is False
    assert "each visit loads it again" in page.locator("#loading").inner_text()
    assert found(page) == expected(function, "hybrid")
    own.damaged.add("queries-")  # the browser cannot compare hashes here; gzip's own checksum finds it
    visit(own, name=INSECURE).wait_for_selector("#loading.problem")


@pytest.mark.parametrize("anchors", ["github", "mkdocs"])
def test_links_lead_to_the_documents_around_the_site_also_from_a_frame(
    host: Host, browser: Browser, tmp_path: Path, anchors: str
) -> None:
    pages = {
        "guide/a kitchen.md": "# Kitchen\n\n## Walls\n\nThe baker painted the kitchen.",
        "index.html": "<h1>Doors</h1><p>An old sailor opened the wooden door.</p>",
    }
    if anchors == "mkdocs":
        pages["guide/a kitchen/index.html"] = "built"
    own = host(make_site_of_pages(pages, tmp_path, anchors))
    (tmp_path / "frame.html").write_text('<iframe src="project/search/?q=painted" width="600" height="600"></iframe>')
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{own.place.partition('/')[0]}/frame.html")
        frame = page.frame_locator("iframe")
        frame.locator("#loading[data-ready=offline]").wait_for(state="attached")
        links = frame.locator("h2 a")
        links.nth(1).wait_for()
        assert {page.request.get(one.get_attribute("href") or "").status for one in links.all()} == {200}
        with page.expect_navigation() as seen:
            links.first.click()
        assert seen.value.ok
        built = {"github": "a%20kitchen.md", "mkdocs": "a%20kitchen/"}[anchors]
        assert page.url == f"http://127.0.0.1:{own.place.removesuffix('search/')}guide/{built}#walls"


def test_the_title_of_the_texts_is_that_of_the_page(tmp_path: Path) -> None:
    corpus = Corpus(["A lost key."], ["7"], ["{}"])
    bundle = write_site_bundle(tmp_path / "bundle", corpus, options={"title": "Doors & <b>keys"})
    site = make_site(bundle, tmp_path)
    found = re.findall(r"<(title|h1)>(.*)</\1>", (site / "index.html").read_text())
    assert found == [("title", "Doors &amp; &lt;b&gt;keys"), ("h1", "Doors &amp; &lt;b&gt;keys")]
