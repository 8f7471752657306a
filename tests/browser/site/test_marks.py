"""A sentence of a result, marked on the page that the result opens."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.page.browser import Page
from tests.browser.site.conftest import Host, StaticHost, make_site_of_pages
from tests.browser.site.test_box import NO_COLUMNS, POLICY, OpenBox, open_box

GAP = "<br>" * 200  # more than a screen
DOOR = "<p>A baker, a <b>wooden-door</b> sailor &amp; ducks.</p>"
BOX = '<script type="module" src="search/search.js"></script><semantic-search mode="keyword"></semantic-search>'
PAGES = {
    "guide.html": f"{BOX}<main><h1>Guide</h1>{GAP}<h2 id='walls'>Walls</h2>{DOOR}{GAP}</main>",
    "river.html": f"<main><h1>River</h1>{GAP}<p>Forty ducks crossed the river.</p>{GAP}</main>",
    "market.html": f"<main><h1>Market</h1>{GAP}<h2 id='apples'>Apples</h2>"
    f"<p>A judge sold apples at the market.</p>{GAP}</main>",
}
MARKED_DOOR = "guide.html#walls:~:text=A%20baker%2C%20a%20wooden%2Ddoor%20sailor%20%26%20ducks."
WORDS = [f"word{number:02}" for number in range(17)]  # 118 characters with the spaces between
CASES: list[tuple[str, str, list[tuple[int, int]], str]] = [
    ("a.html#b", "Twenty characters it.", [], "a.html#b:~:text=Twenty%20characters%20it."),
    ("a.html", "Twenty characters it.", [], "a.html#:~:text=Twenty%20characters%20it."),
    ("a.html#b", "Nineteen characters", [(0, 8)], "a.html#b"),
    ("a.html#b", "Twenty characters it", [(0, 6)], "a.html#b:~:text=Twenty%20characters%20it"),
    ("a.html#b", "Only ten. A sentence of no word of the query.", [(0, 4)], "a.html#b"),
    (
        "a.html",
        "The first sentence has one. The second one has two.",
        [(4, 9), (32, 38), (47, 50)],
        "The%20second%20one%20has%20two.",
    ),
    (
        "a.html",
        "The first sentence has one. The second one has two.",
        [(23, 26), (47, 50)],
        "The%20first%20sentence%20has%20one.",
    ),
    ("a.html", f"{' '.join(WORDS)}ab", [], f"{'%20'.join(WORDS)}ab"),  # 120 characters
    ("a.html", f"{' '.join(WORDS)}abc", [], f"{'%20'.join(WORDS[:8])},{'%20'.join(WORDS[-8:])}abc"),
    ("a.html", f"one {'o' * 120}", [], f"one%20{'o' * 120}"),
    # a character of two units in UTF-16 is one place of a highlight
    ("a.html", "🦆🦆🦆🦆🦆 The first sentence. The second sentence.", [(27, 33)], "The%20second%20sentence."),
    ("a.html", "- an item, of a list & more\n- x", [(5, 9)], "an%20item%2C%20of%20a%20list%20%26%20more"),
    ("a.html", "name | the second cell of this row | 3", [(7, 10)], "the%20second%20cell%20of%20this%20row"),
    ("a.html", "a first line of code\nand the next line of it", [(21, 24)], "and%20the%20next%20line%20of%20it"),
    (
        "a.html",
        "東京タワーは港区にあります。京都は東京から遠いところにある古い都です。",
        [(14, 16)],
        "%E4%BA%AC%E9%83%BD%E3%81%AF%E6%9D%B1%E4%BA%AC%E3%81%8B%E3%82%89%E9%81%A0%E3%81%84%E3%81%A8%E3%81%93%E3%82%8D%E3%81%AB%E3%81%82%E3%82%8B%E5%8F%A4%E3%81%84%E9%83%BD%E3%81%A7%E3%81%99%E3%80%82",
    ),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site whose page market.html has had other words since its search was made."""
    project = make_site_of_pages(PAGES, tmp_path_factory.mktemp("marks"))
    (project.parent / "market.html").write_text(PAGES["market.html"].replace("judge", "baker"))
    return project


@pytest.fixture
def strict(project: Path, host: Host) -> StaticHost:
    own = host(project)
    own.policy = POLICY
    return own


def ask(page: Page, text: str) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(text)
    page.locator("[part=hit]").first.wait_for()


def name_of(address: str) -> str:
    return address.rpartition("/project/")[2]


def is_marked(page: Page) -> bool:
    """Return whether the last paragraph looks different from when its page is opened without a text fragment."""
    paragraph = page.locator("main p")
    seen, address = paragraph.screenshot(), page.url.partition("#")[0]
    page.goto(f"{address}?")
    return bool(paragraph.screenshot() != seen)


@pytest.mark.parametrize(
    ("text", "name"),
    [("baker sailor", MARKED_DOOR), ("forty ducks", "river.html#:~:text=Forty%20ducks%20crossed%20the%20river.")],
    ids=["anchor", "page"],
)
def test_the_page_of_a_result_scrolls_to_its_sentence_and_marks_it(
    strict: StaticHost, open_box: OpenBox, text: str, name: str
) -> None:
    from playwright.sync_api import expect

    page = open_box(strict, 'mode="keyword"')
    ask(page, text)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("main p")).to_be_in_viewport()
    assert name_of(page.url) == name
    assert is_marked(page)


@pytest.mark.parametrize(
    ("attributes", "script", "name"),
    [
        ("", "", "market.html#apples:~:text=A%20judge%20sold%20apples%20at%20the%20market."),
        ('marks="off"', "", "market.html#apples"),
        ("", "delete Document.prototype.fragmentDirective", "market.html#apples"),
    ],
    ids=["other words", "off", "old browser"],
)
def test_without_the_sentence_the_page_scrolls_to_the_anchor(
    strict: StaticHost, open_box: OpenBox, attributes: str, script: str, name: str
) -> None:
    from playwright.sync_api import expect

    page = open_box(strict, f'mode="keyword" {attributes}', script=script)
    ask(page, "judge apples")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.locator("#apples")).to_be_in_viewport()
    assert page.locator("#apples").evaluate("(heading) => heading.getBoundingClientRect().top") < 1
    assert name_of(page.url) == name
    assert not is_marked(page)


def test_a_result_on_the_page_of_the_box_is_marked_without_loading_it(strict: StaticHost, open_box: OpenBox) -> None:
    from playwright.sync_api import expect

    page = open_box(strict)
    page.goto(page.url.rpartition("/")[0] + "/guide.html")
    page.evaluate("window.isSame = true")
    ask(page, "baker sailor")
    page.locator("[part=hit]").first.click()
    expect(page.locator("main p")).to_be_in_viewport()
    assert page.evaluate("isSame")
    assert is_marked(page)


def test_a_result_in_a_new_tab_is_marked(strict: StaticHost, open_box: OpenBox) -> None:
    page = open_box(strict, 'mode="keyword"')
    ask(page, "baker sailor")
    hit = page.locator("[part=hit]").first
    assert name_of(str(hit.get_attribute("href"))) == "guide.html#walls"
    ways: list[Callable[[], None]] = [
        lambda: page.keyboard.press("Control+Enter"),
        lambda: hit.click(modifiers=["Control"]),
        lambda: hit.click(button="middle"),
    ]
    for way in ways:
        with page.context.expect_page() as opened:
            way()
        opened.value.wait_for_load_state()
        assert is_marked(opened.value)
        opened.value.close()


def test_a_page_of_a_pdf_and_the_title_of_a_page_get_no_sentence(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'api="api/"')
    page.route("**/api/info", lambda route: route.fulfill(json=NO_COLUMNS))
    snippet = {"text": "An old sailor opened the door.", "highlights": []}
    pages = [
        {"title": "Wood", "url": "guide.pdf#page=3", "page": 3},
        {"title": "Doors", "url": "guide.html#walls", "headings": ["Doors", "Walls"]},
    ]
    reply = {"results": [{"id": "1", "score": 1, "metadata": about, "snippet": snippet} for about in pages]}
    page.route("**/api/similar", lambda route: route.fulfill(json=reply))
    ask(page, "door")
    for link, name in (
        (page.locator("[part=hit]").first, "guide.pdf#page=3"),
        (page.get_by_text("Doors"), "guide.html"),
    ):
        with page.context.expect_page() as opened:
            link.click(modifiers=["Control"])
        opened.value.close()
        addresses = [name_of(each.evaluate("(link) => link.href")) for each in page.locator("[role=option]").all()]
        assert name in addresses
        assert not [address for address in addresses if ":~:" in address]


# Turbo's way: its listener is the last one that is there when a click begins.
ROUTER = """
window.told = [];
addEventListener("select", ({ detail }) => told.push(detail.url));
const follow = (event) => {
    event.preventDefault();
    told.push(event.composedPath().find(({ href }) => href).href);
};
addEventListener("click", () => {
    removeEventListener("click", follow);
    addEventListener("click", follow);
}, true);
"""


def test_a_router_takes_the_address_without_a_sentence(strict: StaticHost, open_box: OpenBox) -> None:
    page = open_box(strict, 'mode="keyword"')
    ask(page, "baker sailor")
    with page.context.expect_page() as opened:
        page.keyboard.press("Control+Enter")  # gives the link its sentence
    opened.value.close()
    page.evaluate(ROUTER)
    page.keyboard.press("Enter")
    page.get_by_role("combobox").wait_for(state="hidden")
    assert [name_of(url) for url in page.evaluate("told")] == ["guide.html#walls"] * 2


def test_a_link_names_the_first_sentence_with_most_words_of_the_query(
    project: Path, strict: StaticHost, open_box: OpenBox
) -> None:
    page = open_box(strict)
    [module] = project.glob("code/*/fragment.js")
    add = "async ([name, ...rest]) => (await import(`./search/${name}`)).addSentence(...rest)"
    place = module.relative_to(project).as_posix()
    for url, text, highlights, expected in CASES:
        found = page.evaluate(add, [place, url, {"text": text, "highlights": highlights}])
        assert found == (expected if expected.startswith("a.html") else f"a.html#:~:text={expected}")


__all__ = ["open_box"]
