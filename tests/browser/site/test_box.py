"""The search box in the pages of somebody else's site, in a real browser."""

import gzip
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from semsearch.app.app import App
from semsearch.app.settings import ApiKey, Settings, hash_key
from semsearch.engine.bundle import check_bundle
from semsearch.engine.embedder import Embedder
from tests.browser.page.browser import Browser, Page, Route
from tests.browser.page.conftest import Serve, serve, watched_page
from tests.browser.page.test_accessibility import axe, violations
from tests.browser.site.conftest import Connect, Host, StaticHost, make_site_of_pages
from tests.browser.site.test_equal import assert_equal

KEY = "a-key-of-the-tests"
QUESTION = "baker painted kitchen"
NO_COLUMNS: dict[str, Any] = {"index": {"columns": {}}}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src *; worker-src 'self'; frame-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types semantic-search"
)
PAGES = {
    "guide/kitchen.html": "<h1>Kitchen</h1><h2 id='doors'>Doors</h2><p>An old sailor opened the wooden door.</p>"
    "<h2 id='walls'>Walls</h2><p>The baker painted the kitchen.</p>",
    "market.html": "<h1>Market</h1><h2 id='apples'>Apples</h2><p>A judge sold forty apples at the market.</p>",
    "river.html": "<h1>River</h1><h2 id='ducks'>Ducks</h2><p>Forty ducks crossed the frozen river.</p>",
}
NO_SHARED_WORKER = "delete globalThis.SharedWorker"
SAVES_DATA = "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })"

OpenBox = Callable[..., Page]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site for searching three pages, beside them. Its bundle is in ../../bundle."""
    return make_site_of_pages(PAGES, tmp_path_factory.mktemp("box"))


@pytest.fixture
def box_bundle(project: Path) -> Path:
    return project.parents[1] / "bundle"


@pytest.fixture
def open_box(browser: Browser, project: Path) -> Iterator[OpenBox]:
    """Return what opens a page with the box and these attributes. At the end it fails for any error of a script.

    element is the HTML that makes the element, if the page does not have it from the start.
    """
    numbers = count()
    with ExitStack() as contexts:

        def open_one(
            host: StaticHost,
            attributes: str = "",
            page: Page | None = None,
            lang: str = "en",
            script: str = "",
            element: str = "",
            **options: Any,
        ) -> Page:
            if page is None:
                page = contexts.enter_context(watched_page(browser, **options))
                if script:
                    page.add_init_script(script)
            name = f"page-{next(numbers)}.html"
            element = element or f"<semantic-search {attributes}></semantic-search>"
            (project.parent / name).write_text(
                f'<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>Page</title>'
                '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
                '<script type="module" src="search/search.js"></script>'
                f"<main><h1>Page</h1>{element}"
                '<p><label>Name <input id="name"></label></p></main></html>'
            )
            page.goto(f"http://127.0.0.1:{host.place.removesuffix('search/')}{name}")
            page.locator("semantic-search button").first.wait_for()
            return page

        yield open_one


def ask(page: Page, text: str = QUESTION) -> list[str]:
    """Open the box by its key, type a text and return the headings above the results."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(text)
    page.get_by_role("option").first.wait_for()
    titles: list[str] = page.locator("semantic-search [part=title]").all_text_contents()
    return titles


def wait_for_meaning(page: Page) -> None:
    page.evaluate("import('./search/search.js').then(({ open }) => open()).then((search) => search.load())")


def names(host: StaticHost) -> set[str]:
    """Return what of the site was asked for: names without their hashes."""
    return {re.sub(r"-[0-9a-f]{16}\.bin", "", path.rpartition("/")[2]) for path in host.asked if "/search/" in path}


def test_nothing_is_loaded_before_the_box_is_opened_and_no_vectors_before_the_visitor_types(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    own = host(project)
    page = open_box(own)
    page.wait_for_load_state("networkidle")
    assert names(own) == {"search.js", "search.css"}
    files = [path for path in own.asked if "/search/" in path]
    assert sum(len(gzip.compress((project.parents[1] / path[1:]).read_bytes())) for path in files) < 8000
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").wait_for()
    page.evaluate("import('./search/search.js').then(({ open }) => open())")
    assert "keywords" in names(own)
    assert not names(own) & {"queries", "index", "vocabulary"}
    page.keyboard.type(QUESTION)
    page.get_by_role("option").first.wait_for()
    wait_for_meaning(page)
    assert {"queries", "index", "vocabulary"} <= names(own)


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER])
def test_the_keyboard_alone_leads_to_the_right_place_of_a_page_under_a_strict_policy(
    project: Path, host: Host, open_box: OpenBox, script: str
) -> None:
    own = host(project)
    own.policy = POLICY
    page = open_box(own, script=script)
    page.locator("#name").focus()
    page.keyboard.type("/")
    assert page.locator("#name").input_value() == "/"
    assert ask(page)[0] == "Kitchen"
    page.keyboard.press("Escape")
    assert page.get_by_role("combobox").count() == 0
    assert page.evaluate("document.activeElement.id") == "name"
    page.locator("h1").click()
    page.keyboard.press("/")
    page.get_by_role("option").first.wait_for()
    active = [page.get_by_role("combobox").get_attribute("aria-activedescendant")]
    for key in ("ArrowDown", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        active.append(page.get_by_role("combobox").get_attribute("aria-activedescendant"))
    assert active[:4] == ["hit-1", "hit-2", "hit-1", "hit-0"]  # the page is above its first section, which is selected
    assert active[5:] == ["hit-0", "hit-1"]
    assert page.get_by_role("option", selected=True).text_content() == "WallsThe baker painted the kitchen."
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.evaluate("location.href").endswith("/project/guide/kitchen.html#walls")
    assert page.locator("#walls").count() == 1


@pytest.mark.parametrize("keys", [["Enter"], ["ArrowUp", "ArrowDown", "Enter"]])
def test_enter_right_after_a_new_question_opens_the_first_result_of_that_question(
    project: Path, host: Host, open_box: OpenBox, keys: list[str]
) -> None:
    page = open_box(host(project), 'mode="keyword"')
    assert ask(page) == ["Kitchen"]
    page.clock.install()
    page.clock.pause_at(4_000_000_000)  # the pause after which the box searches never ends
    page.get_by_role("combobox").fill("ducks crossed the river")
    with page.expect_navigation():
        for key in keys:
            page.keyboard.press(key)
    assert page.evaluate("location.href").endswith("/project/river.html#ducks")


def slow_results(page: Page, quick: str) -> dict[str, Route]:
    """Hold the requests to the API in the folder api/, and return them by their text; `answer` answers one.

    Those with the text quick are answered at once: while the box opens, it may search a second time.
    """
    held: dict[str, Route] = {}

    def hold(route: Route) -> None:
        text = route.request.post_data_json["text"]
        if text == quick:
            fulfill(route, text)
        else:
            held[text] = route

    page.route("**/api/info", lambda route: route.fulfill(json=NO_COLUMNS))
    page.route("**/api/similar", hold)
    return held


def answer(page: Page, held: dict[str, Route], text: str) -> None:
    """Wait for the request with a text, and answer it."""
    while text not in held:
        page.wait_for_timeout(10)
    fulfill(held.pop(text), text)


def fulfill(route: Route, text: str) -> None:
    """Reply with one document whose page has the text as its name."""
    metadata = {"title": text, "url": f"{text}.html#{text}", "headings": [text, "part"]}
    snippet = {"text": text, "highlights": []}
    result = {"id": text, "score": 1, "metadata": metadata, "snippet": snippet}
    route.fulfill(json={"results": [result]})


def test_enter_waits_for_a_slow_reply_unless_the_visitor_types_on_or_closes_the_box(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_box(host(project), 'api="api/"')
    held = slow_results(page, quick="old")
    page.evaluate("""() => {
        window.chosen = [];
        addEventListener("select", (event) => { chosen.push(event.detail.result.id); event.preventDefault(); });
    }""")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    field.fill("old")
    page.get_by_role("option").first.wait_for()

    field.fill("forgotten")
    page.keyboard.press("Enter")
    field.fill("new")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    answer(page, held, "forgotten")
    answer(page, held, "new")
    field.wait_for(state="hidden")
    assert page.evaluate("chosen") == ["new"]

    page.keyboard.press("Control+k")
    field.fill("closed")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    answer(page, held, "closed")
    page.keyboard.press("Control+k")
    answer(page, held, "closed")  # the first request was given up
    page.locator("semantic-search [part=title]", has_text="closed").wait_for()
    assert page.evaluate("chosen") == ["new"]


def test_a_filter_that_is_no_json_is_named(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'filter="[object Object]"')
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(QUESTION)
    page.get_by_role("status").filter(has_text="filter: expected JSON").wait_for()


def test_an_element_that_is_moved_while_its_box_is_open_opens_it_again(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_box(host(project))
    ask(page)
    page.evaluate("document.querySelector('main').append(document.querySelector('semantic-search'))")
    page.get_by_role("dialog").wait_for(state="hidden")
    page.keyboard.press("Control+k")
    page.get_by_role("option").first.wait_for()
    assert page.locator("semantic-search dialog").evaluate("(dialog) => dialog.matches(':modal')")


def test_the_text_of_the_box_has_no_style_of_the_navigation_bar_around_the_element(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    style = "text-align:end;text-transform:uppercase;letter-spacing:9px;white-space:nowrap;pointer-events:none"
    page = open_box(host(project), element=f'<nav style="{style}"><semantic-search></semantic-search></nav>')
    ask(page)
    names = "['textAlign', 'textTransform', 'letterSpacing', 'whiteSpace', 'pointerEvents']"
    styles = page.locator("[part=excerpt]").first.evaluate(f"(e) => {names}.map((name) => getComputedStyle(e)[name])")
    assert styles == ["start", "none", "normal", "normal", "auto"]


def test_node_imports_the_script_without_a_browser(project: Path) -> None:
    """As the server of a site does that makes its pages with the modules of the browser."""
    code = f"import({json.dumps((project / 'search.js').as_uri())}).then(({{ texts }}) => console.log(texts.en.search))"
    done = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Search\n"


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER])
def test_a_second_page_loads_no_data_again(project: Path, host: Host, open_box: OpenBox, script: str) -> None:
    own = host(project)
    page = open_box(own, script=script)
    ask(page)
    wait_for_meaning(page)
    before = len(own.asked)
    open_box(own, page=page)
    assert ask(page)[0] == "Kitchen"
    wait_for_meaning(page)
    assert not [path for path in own.asked[before:] if "/data/" in path]
    if not script:  # the worker of the first page is still there
        assert not [path for path in own.asked[before:] if "/worker/" in path]


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER])
def test_who_saves_data_is_asked_once_before_the_search_by_meaning_is_loaded(
    project: Path, host: Host, open_box: OpenBox, script: str
) -> None:
    own = host(project)
    page = open_box(own, script=f"{SAVES_DATA}; {script}")
    assert ask(page) == ["Kitchen"]  # no other page has these words
    button = page.get_by_role("button", name="Search by meaning too")
    button.wait_for()
    assert "queries" not in names(own)
    button.click()
    page.get_by_role("option").nth(2).wait_for()
    assert button.count() == 0
    open_box(own, page=page)
    ask(page)
    page.get_by_role("option").nth(2).wait_for()
    assert button.count() == 0


def test_a_damaged_file_is_named_and_words_are_still_found(project: Path, host: Host, open_box: OpenBox) -> None:
    own = host(project)
    own.damaged.add("queries-")
    page = open_box(own)
    assert ask(page) == ["Kitchen"]
    page.get_by_role("button", name="Search by meaning too").wait_for()
    own.damaged.clear()
    page.get_by_role("button", name="Search by meaning too").click()
    page.get_by_role("option").nth(2).wait_for()


def test_the_function_answers_the_box_and_says_what_is_wrong_with_a_key(
    box_bundle: Path, project: Path, host: Host, open_box: OpenBox, serve: Serve, make_app: Callable[..., App]
) -> None:
    own = host(project)
    own.policy = POLICY
    origin = f"http://127.0.0.1:{own.place.partition('/')[0]}"
    settings = Settings(cors_origins=(origin,), api_keys=(ApiKey("box", hash_key(KEY)),))
    embedder = Embedder.open(box_bundle, check_bundle(box_bundle).model)
    server = serve(make_app(bundle=box_bundle, embedder=embedder, settings=settings))
    page = open_box(own, f'api="{server}" key="{KEY}" limit="2"')
    assert ask(page)[0] == "Kitchen"
    page.locator("semantic-search [part=hit]").first.click()
    page.wait_for_url("**/guide/kitchen.html#walls*")
    page = open_box(own, f'api="{server}" key="wrong"')
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(QUESTION)
    page.get_by_role("status").filter(has_text="key").wait_for()
    assert not names(own) & {"worker.js", "keywords"}
    page = open_box(own, f'key="{KEY}"')  # without api
    page.keyboard.press("Control+k")
    page.get_by_role("status").filter(has_text="public").wait_for()
    assert not names(own) & {"worker.js", "keywords"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_a_narrow_screen_in_a_frame_shows_all_of_it(
    project: Path, host: Host, open_box: OpenBox, axe: str, scheme: str
) -> None:
    own = host(project)
    page = open_box(own, color_scheme=scheme, viewport={"width": 360, "height": 640})
    assert violations(page, axe) == []
    ask(page)
    page.keyboard.press("ArrowDown")
    assert violations(page, axe) == []
    (project.parent / "frame.html").write_text(
        f'<!doctype html><title>Frame</title><iframe src="{page.url}" width="330" height="500"></iframe>'
    )
    page.goto(page.url.rpartition("/")[0] + "/frame.html")
    frame = page.frame_locator("iframe")
    frame.locator("semantic-search button").first.click()
    frame.get_by_role("combobox").fill(QUESTION)
    frame.get_by_role("option").first.wait_for()
    box = frame.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["width"] <= 330
    frame.locator("semantic-search [part=hit]").first.click()
    frame.locator("#walls").wait_for()
    assert page.url.endswith("/frame.html")


def test_open_answers_as_the_function_does(
    box_bundle: Path, project: Path, host: Host, open_box: OpenBox, function_over: Connect
) -> None:
    page = open_box(host(project))
    search = """async ([text, options]) => {
        const { open } = await import("./search/search.js");
        const search = await open("search/");
        const early = await search.search(text, options);
        await search.load();
        return [early, await search.search(text, options)];
    }"""
    options = {"num_results": 2, "group_by": "path", "highlights": True}
    function = function_over(box_bundle)
    for mode, reply in zip(("keyword", "hybrid"), page.evaluate(search, [QUESTION, options]), strict=True):
        request = {"text": QUESTION, "mode": mode} | options
        assert_equal(request, reply, function(request))


def test_a_box_in_another_language_loads_its_texts_when_it_opens(project: Path, host: Host, open_box: OpenBox) -> None:
    own = host(project)
    page = open_box(own, lang="fr-CA")
    page.wait_for_load_state("networkidle")
    assert "fr.js" not in names(own)
    page.get_by_role("button", name="Rechercher", exact=True).click()
    page.get_by_role("button", name="Fermer").wait_for()
    assert page.get_by_role("combobox", name="Rechercher").count() == 1
    assert "de.js" not in names(own)


def test_a_page_in_xhtml_states_the_language_of_the_box(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), lang='" xml:lang="de_AT')
    page.get_by_role("button", name="Suchen", exact=True).click()
    page.get_by_role("button", name="Schließen").wait_for()


def test_attributes_events_and_texts(project: Path, host: Host, open_box: OpenBox) -> None:
    only = json.dumps({"path": {"$in": ["market.html", "river.html"]}})
    attributes = f"""keys="ctrl+j" mode="hybrid" limit="1" target="_blank" filter='{only}'"""
    page = open_box(host(project), attributes, lang="de-AT")
    page.evaluate("""async () => {
        const { texts } = await import("./search/search.js");
        texts.de.found = "Gefunden: {}";
        window.told = [];
        addEventListener("search", ({ detail }) => told.push(detail.text));
        addEventListener("select", (event) => { told.push(event.detail.url); event.preventDefault(); });
        addEventListener("click", ({ defaultPrevented }) => told.push(defaultPrevented));
    }""")
    assert page.get_by_role("button", name="Suchen", exact=True).count() == 1
    page.keyboard.press("Control+k")
    assert page.get_by_role("combobox").count() == 0
    page.keyboard.press("Control+j")
    page.get_by_role("combobox").fill(f"{QUESTION} forty")
    page.get_by_role("status").filter(has_text="Gefunden: 1").wait_for()
    assert page.get_by_role("option").first.get_attribute("target") == "_blank"
    page.keyboard.press("Enter")
    told = page.evaluate("told")
    assert told[0] == f"{QUESTION} forty"
    assert re.search(r"/project/(market|river)\.html#\w+$", told[-2])
    assert told[-1] is True  # the link is not followed


__all__ = ["axe", "serve"]
