"""What the search box shows: cards of sections, the version and the language of its page, and what it offers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page.browser import Page
from tests.browser.page.test_accessibility import axe, violations
from tests.browser.site.conftest import Connect, Host, make_site_of_pages
from tests.browser.site.test_box import OpenBox, open_box, wait_for_meaning
from tests.browser.site.test_equal import compare

HEAD = '<!doctype html><html lang="{}"><meta name="docusaurus_version" content="{}"><title>Guide</title><main>'
GUIDE = (
    "<h1>Guide</h1><p>The old sailor lost a silver key.</p>"
    "<h2 id='doors'>Doors</h2><p>The sailor opened the wooden door.</p>"
    "<h2 id='walls'>Walls</h2><p>The baker painted the kitchen.</p>"
    "<h3 id='apples'>Apples and a heading that is much too long for one line of the dialog at any width of it</h3>"
    "<p>A judge sold forty apples at the market.</p>"
    "<h2 id='snow'>Snow</h2><p>A sailor lost the key in the snow.</p>"
    "<h2 id='ships'>Ships</h2><p>The sailor found a sailor.</p>"
)
OBJECT = (
    "<h1>API</h1><dl class='py method'><dt class='sig sig-object py' id='ship.Sailor.open_door'>"
    "ship.Sailor.open_door(door, wooden=True)</dt><dd><p>Open a door.</p></dd></dl>"
)
LONG = "<h1>Hook function and its validation, all in one</h1>" + "".join(
    f"<h2 id=h{number}>{('Hook function validation and execution of all' * 2)[:number]}</h2><p>A baker of {number}</p>"
    for number in (29, 36, 39, 40, 60)
)
CHANGES = (
    "<h1>History</h1><h2 id='hatchling-v1.24.1'>1.24.1 - 2024-04-18</h2><p>A tailor.</p>"
    "<h2 id='v0.24.0'>0.24.0 - 2022-04-28</h2><p>A tailor again.</p>"
    "<h2 id='sailor.open'>sailor.opened and sailor.open - story</h2><p>A tailor at sea.</p>"
    "<h2 id='sailor.Ship'>class sailor.Ship: Boat</h2><p>A tailor on a ship.</p>"
)
PAGES = {
    "guide.html": HEAD.format("en", "2.0") + GUIDE,
    "1.0/guide.html": HEAD.format("en", "1.0") + GUIDE.replace("painted", "sold"),
    "de/guide.html": HEAD.format("de", "2.0") + GUIDE,
    "api.html": HEAD.format("en", "2.0") + OBJECT,
    "long.html": HEAD.format("en", "2.0") + LONG,
    "changelog.html": HEAD.format("en", "2.0") + "<h1>Changelog</h1><p>A cobbler mended the boots.</p>",
    "shoes.html": HEAD.format("en", "2.0") + "<h1>Shoes</h1><p>A cobbler mended the boots.</p>",
    "changes.html": HEAD.format("en", "2.0") + CHANGES,
}


COLOURS = """(dialog) => {
    const { backgroundColor, color, colorScheme } = getComputedStyle(dialog);
    return [backgroundColor, color, colorScheme];
}"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site for searching pages in two versions and two languages, beside them.

    By meaning, none of its results is relevant.
    """
    return make_site_of_pages(PAGES, tmp_path_factory.mktemp("results"), floor={"semantic": 2.0})


def stand_on(page: Page, version: str, lang: str) -> None:
    """Set the version and the language of the page around the box, as a change of the route does."""
    page.evaluate(
        """([version, lang]) => {
            document.documentElement.lang = lang;
            document.querySelector("meta[name=docusaurus_version]")?.remove();
            const meta = document.createElement("meta");
            document.head.append(Object.assign(meta, { name: "docusaurus_version", content: version }));
        }""",
        [version, lang],
    )


@pytest.fixture
def page(project: Path, host: Host, open_box: OpenBox) -> Page:
    """A page of version 2.0 in English whose box searches words."""
    page = open_box(host(project), 'mode="keyword"')
    stand_on(page, "2.0", "en")
    return page


def ask(page: Page, text: str) -> list[str]:
    """Open the box if it is closed, type a text and return the addresses of the sections."""
    if page.get_by_role("combobox").count() == 0:
        page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("")
    page.locator("[part=hit]").first.wait_for(state="detached")
    page.get_by_role("combobox").fill(text)
    hits = page.locator("[part=hit]")
    hits.first.wait_for()
    return [str(hit.get_attribute("href")).rpartition("/project/")[2] for hit in hits.all()]


def test_a_card_has_the_way_the_name_and_the_signature(page: Page) -> None:
    assert ask(page, "Sailor.open_door")[0] == "api.html#ship.Sailor.open_door"
    card = page.locator("[part=hit]").first
    assert card.locator("[part=heading]").inner_text() == "ship.Sailor.open_door"
    assert card.locator("[part=signature]").inner_text() == "(door, wooden=True)"
    assert card.locator(".icon.code").count() == 1
    assert page.locator("[part=title]").first.get_attribute("href") == page.url.rpartition("/")[0] + "/api.html"
    assert ask(page, "judge sold forty apples")[0] == "guide.html#apples"
    card = page.locator("[part=hit]").first
    assert card.locator("[part=place]").inner_text() == "Walls"
    heading = card.locator("[part=heading]")
    assert str(heading.text_content()).endswith("at any width of it")
    box = heading.bounding_box()
    assert box is not None
    assert box["height"] < 30


def test_a_version_with_dots_is_a_heading_and_no_object(page: Page) -> None:
    ask(page, "tailor")
    page.get_by_role("option", name="More on this page").click()
    page.locator("[part=hit]").nth(3).wait_for()
    cards = {
        str(hit.get_attribute("href")).rpartition("#")[2]: (
            hit.locator("[part=heading]").inner_text(),
            hit.locator("[part=signature]").all_inner_texts(),
            hit.locator(".icon").first.get_attribute("class"),
        )
        for hit in page.locator("[part=hit]").all()
    }
    assert cards == {
        "hatchling-v1.24.1": ("1.24.1 - 2024-04-18", [], "icon section"),
        "v0.24.0": ("0.24.0 - 2022-04-28", [], "icon section"),
        "sailor.open": ("sailor.opened and sailor.open - story", [], "icon section"),
        "sailor.Ship": ("class sailor.Ship", [": Boat"], "icon code"),
    }


def test_no_heading_leaves_its_card_on_a_phone(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'mode="keyword"', viewport={"width": 360, "height": 640})
    stand_on(page, "2.0", "en")
    ask(page, "baker hook")
    page.get_by_role("option", name="More on this page").click()
    page.locator("[part=hit][href*='long.html']").nth(4).wait_for()
    assert page.locator("[part=hits]").evaluate("(hits) => hits.scrollWidth - hits.clientWidth") == 0
    edges = page.locator("[part=hit] .heading > span, [part=title] .heading > span").evaluate_all(
        "(spans) => spans.map((span) => span.closest('[role=option]').getBoundingClientRect().right"
        " - span.getBoundingClientRect().right)"
    )
    assert min(edges) >= 0
    heading = page.locator("[part=hit][href$='#h60'] .heading")
    heading.scroll_into_view_if_needed()
    assert heading.evaluate("(heading) => heading.scrollHeight - heading.clientHeight") == 0  # no line of it is cut
    assert heading.evaluate("(heading) => heading.scrollWidth - heading.clientWidth") == 0
    assert len(str(heading.inner_text())) == 60


def test_the_box_calls_versions_by_their_labels(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), """mode="keyword" versions='{"2.0": "2.x", "1.0": "old"}'""")
    stand_on(page, "2.0", "en")
    ask(page, "wooden door")
    page.get_by_role("button", name="Only version 2.x, English").click()
    page.locator("[part=also]").first.wait_for()
    texts = page.locator("[part=also], [part=badge]").all_inner_texts()
    assert "2.0" not in " ".join(texts)
    assert any("old" in text for text in texts)
    page = open_box(host(project), "versions='{'", page=page)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("wooden door")
    page.get_by_role("status").filter(has_text='versions: expected JSON, such as {"current": "5.x"}').wait_for()


def test_the_button_has_a_readable_size_in_a_header_with_small_text(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_box(host(project), element='<p style="font-size: 10px"><semantic-search></semantic-search></p>')
    button = page.get_by_role("button", name="Search", exact=True)
    assert button.evaluate("(button) => getComputedStyle(button).fontSize") == "14px"
    box = button.bounding_box()
    assert box is not None
    assert box["height"] >= 32


def test_the_button_is_not_printed(page: Page) -> None:
    button = page.get_by_role("button", name="Search", exact=True)
    assert button.is_visible()
    page.emulate_media(media="print")
    assert not button.is_visible()


FACETS = {"version": [{"value": "1.0", "count": 1}, {"value": "2.0", "count": 1}]}
LINE = "(option) => [option.querySelector('.icon')?.classList[1] ?? 'more', option.innerText]"


def section(title: str, url: str, *headings: str, text: str, **metadata: Any) -> dict[str, Any]:
    """Return a result of a page: a section below these headings, or else the beginning of the page."""
    place = {"title": title, "url": url, "headings": [title, *headings], "path": url.partition("#")[0], **metadata}
    return {"id": url, "score": 1, "metadata": place, "snippet": {"text": text, "highlights": []}}


def reply_of(page: Page, *groups: list[dict[str, Any]], columns: dict[str, str] | None = None) -> None:
    """Search in an API that replies with these pages, each a list of its passages, the best one first."""
    found = [first | {"other_passages": others} for first, *others in groups]
    page.route("**/api/info", lambda route: route.fulfill(json={"index": {"columns": columns or {}}}))
    page.route("**/api/similar", lambda route: route.fulfill(json={"results": found, "facets": FACETS}))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("judge")
    page.locator("[part=hit]").first.wait_for()


def lines(page: Page) -> list[str]:
    """Return the icon of each title and card, and its text in one line."""
    found = [option.evaluate(LINE) for option in page.get_by_role("option").all()]
    return [f"{icon}: {' '.join(text.split())}" for icon, text in found]


def test_a_page_whose_beginning_is_its_best_section_is_named_once(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'api="api/"')
    reply_of(
        page,
        [section("Guide", "guide.html", text="A text."), section("Guide", "guide.html#a", "Apples", text="Some.")],
        [section("Market", "market.html#a", "Apples", text="Many."), section("Market", "market.html", text="Market")],
        [section("River", "river.html#a", "Ducks", text="Forty."), section("River", "river.html", text="A river.")],
        [section("Snow", "snow.html", text="Snow"), section("Snow", "snow.html#b", "Keys", text="Lost.")],
        [section("Letters", "letters.pdf#page=3", text="Dear judge.", page=3)],
    )
    assert lines(page) == [
        *("page: Guide A text.", "section: Apples Some."),
        *("page: Market", "section: Apples Many."),
        *("page: River", "section: Ducks Forty.", "page: River A river."),
        *("page: Snow", "section: Keys Lost."),
        *("page: Letters", "page: page 3 Dear judge."),
    ]
    assert page.get_by_role("option", selected=True).inner_text().startswith("Guide")
    links = [
        str(option.get_attribute("href")).rpartition("/project/")[2] for option in page.get_by_role("option").all()
    ]
    assert links[:4] == ["guide.html", "guide.html#a", "market.html", "market.html#a"]


def test_the_card_of_a_beginning_has_the_version_of_its_page(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'api="api/"')
    old = section("Old", "old.html", text="A text.", version="1.0")
    new = section("New", "new.html#a", "Apples", text="A text.", version="2.0")
    reply_of(page, [old], [new], columns={"version": "string"})
    assert lines(page) == ["page: Old A text. 1.0", "page: New 2.0", "section: Apples A text."]


def test_a_section_of_several_passages_is_one_card(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'api="api/"')
    apples = [section("Guide", "guide.html#a", "Apples", text=text) for text in ("Best.", "Worse.", "Worst.")]
    pears = section("Guide", "guide.html#b", "Pears", text="Green.")
    without_anchors = [section("Old", "old.html", name, text="Same.") for name in ("Apples", "Pears")]
    reply_of(page, [*apples, pears], without_anchors)
    assert lines(page) == [
        *("page: Guide", "section: Apples Best.", "section: Pears Green.", "more: More on this page"),
        *("page: Old", "section: Apples Same.", "section: Pears Same."),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("open_door(door: str, wooden=True) → None", ""),
        ("door: str, wooden=True)", ""),
        ("open_door(door: str, wooden=True) → None: opens it", "open_door(door: str, wooden=True) → None: opens it"),
        ("Opens it.", "Opens it."),
    ],
)
def test_the_card_of_an_object_shows_no_excerpt_of_its_signature(
    project: Path, host: Host, open_box: OpenBox, text: str, shown: str
) -> None:
    page = open_box(host(project), 'api="api/"')
    heading = "open_door(door: str, wooden=True) → None"
    reply_of(page, [section("API", "api.html#ship.Sailor.open_door", "class ship.Sailor", heading, text=text)])
    card = page.locator("[part=hit]")
    assert card.locator("[part=signature]").inner_text() == "(door: str, wooden=True) → None"
    assert "".join(card.locator("[part=excerpt]").all_inner_texts()) == shown


def test_a_page_shows_three_sections_and_more_after_a_key(page: Page) -> None:
    assert len([link for link in ask(page, "sailor") if link.startswith("guide")]) == 3
    page.get_by_role("option", name="More on this page").wait_for()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("[part=hit][href*='/guide.html']").nth(3).wait_for()
    assert page.get_by_role("option", name="More on this page").count() == 0


def test_the_box_searches_the_version_and_language_of_its_page(page: Page) -> None:
    stand_on(page, "1.0", "en")
    assert {link.partition("#")[0] for link in ask(page, "wooden door")} == {"1.0/guide.html"}
    chip = page.get_by_role("button", name="Only version 1.0, English")
    assert chip.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Escape")
    stand_on(page, "2.0", "de")  # as a router does, without loading the page
    assert {link.partition("#")[0] for link in ask(page, "wooden door")} == {"de/guide.html"}
    page.keyboard.press("Alt+a")
    page.get_by_role("button", name="Nur Version 2.0, Deutsch", pressed=False).wait_for()
    page.locator("[part=hit][href$='/project/guide.html#doors']").wait_for()
    assert page.locator("[part=also]").first.inner_text() == "auch in 1.0, de"
    assert page.locator("[part=hit][href*='#doors']").count() == 1


def test_nothing_found_in_the_scope_leads_to_all(page: Page) -> None:
    stand_on(page, "1.0", "en")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("painted")
    page.get_by_role("status").filter(has_text="Nothing was found for “painted”.").wait_for()
    page.get_by_role("option", name="Search all versions and languages").click()
    page.locator("[part=hit][href$='guide.html#walls']").first.wait_for()


def test_a_word_is_left_out_until_its_chip_is_removed(page: Page) -> None:
    assert "guide.html#snow" not in ask(page, "sailor -snow")
    chip = page.get_by_role("button", name="without “snow”")
    chip.click()
    page.locator("[part=hit][href$='#snow']").wait_for()
    assert chip.count() == 0
    assert page.get_by_role("combobox").input_value() == "sailor -snow"
    assert len(ask(page, "-snow")) == 1  # a word at the beginning is no instruction


def test_a_corrected_word_is_named_with_the_other_reading(page: Page) -> None:
    assert ask(page, "paintde kitchen")[0] == "guide.html#walls"
    page.get_by_role("status").filter(has_text="instead of “paintde”").wait_for()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("option", selected=True).inner_text() == "Search for “paintde kitchen”"
    page.keyboard.press("Enter")
    page.get_by_role("status").filter(has_text="Results:").wait_for(state="attached")


def hit_of(name: str, score: float) -> dict[str, Any]:
    """Return a result of a hybrid search, with words of the query in its snippet."""
    metadata = {"title": f"Page {name}", "url": f"{name}.html#part", "headings": [f"Page {name}", f"Part {name}"]}
    snippet = {"text": f"a text of {name}", "highlights": [[2, 6]]}
    scores = {"semantic": score, "keyword": 0}
    return {"id": name, "score": score, "scores": scores, "metadata": metadata, "snippet": snippet}


def reply_with(page: Page, scores: list[float], floor: float) -> None:
    """Search in an API that replies with results of these scores, called a, b and so on, with two sections each."""
    info = {"index": {"columns": {}, "floor": {"hybrid": {"score": floor, "kept": 1}}}}
    results = [hit_of(chr(97 + place), score) for place, score in enumerate(scores)]
    others = [{"other_passages": [hit_of(f"{each['id']}-other", each["score"])]} for each in results]
    reply = {"results": [one | more for one, more in zip(results, others, strict=True)], "truncated": False}
    page.route("**/api/info", lambda route: route.fulfill(json=info))
    page.route("**/api/similar", lambda route: route.fulfill(json=reply))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("qwrtzpl")
    page.locator("[part=hit]").first.wait_for()


UNLIKE = "Nothing on these pages is much like “qwrtzpl”. Try other words, fewer words, or a whole question."
CLOSEST = f"{UNLIKE} The closest results:"
PIXEL = """(element, name) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = getComputedStyle(element)[name];
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


def luminance(pixel: list[int]) -> float:
    """Return the relative luminance of red, green and blue, 0 to 255, as WCAG 2 defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (n / 255 for n in pixel)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(paper: list[int], ink: list[int]) -> float:
    """Return the contrast of two pixels, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted([luminance(paper), luminance(ink)])
    return (high + 0.05) / (low + 0.05)


# ink and paper of a page, and whether its softer text has to be darker than that of a black one
@pytest.mark.parametrize(
    ("ink", "paper"),
    [("#000", "#fff"), ("#3c3c43", "#fff"), ("#555", "#fff"), ("#dfdfd6", "#1b1b1f"), ("#999", "#111")],
)
def test_softer_text_of_a_selected_card_is_readable_on_any_readable_page(
    project: Path, host: Host, open_box: OpenBox, ink: str, paper: str
) -> None:
    page = open_box(host(project), 'mode="keyword"')
    page.evaluate(f"Object.assign(document.body.style, {{ color: '{ink}', background: '{paper}' }})")
    stand_on(page, "2.0", "en")
    ask(page, "judge sold forty apples")
    selected = page.locator("[part=hit][aria-selected=true]")
    card = selected.evaluate(PIXEL, "backgroundColor")
    heading = selected.locator(".heading").evaluate(PIXEL, "color")
    for part in (".way", ".excerpt"):
        soft = selected.locator(part).evaluate(PIXEL, "color")
        assert 4.5 <= contrast(card, soft) <= contrast(card, heading)
    if ink in ("#000", "#dfdfd6"):
        assert contrast(card, soft) < 0.8 * contrast(card, heading)


def contrasts(page: Page) -> list[float]:
    """Return the contrasts, from 1 to 21, of the text of the dialog, a heading, a snippet and a marked word."""
    paper = page.get_by_role("dialog").evaluate(PIXEL, "backgroundColor")
    places = ("dialog", "[part=hit] .heading", "[part=hit] .excerpt", "[part=hit] mark")
    inks = [page.locator(f"semantic-search {place}").first.evaluate(PIXEL, "color") for place in places]
    return [contrast(paper, ink) for ink in inks]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_three_closest_results_are_grey_and_readable_if_none_is_relevant(
    project: Path, host: Host, open_box: OpenBox, axe: str, scheme: str
) -> None:
    page = open_box(host(project), 'api="api/"', color_scheme=scheme)
    reply_with(page, [0.39, 0.3, 0.2, 0.1], floor=0.4)
    assert page.get_by_role("status").inner_text() == CLOSEST
    assert page.locator("[part=hit] [part=heading]").all_inner_texts() == ["Part a", "Part b", "Part c"]
    ink, heading, excerpt, marked = contrasts(page)
    assert 4.5 < heading == excerpt == marked < ink
    assert violations(page, axe) == []
    page.keyboard.press("ArrowDown")
    assert violations(page, axe) == []


def test_closest_results_are_selected_by_arrows_after_the_message_and_opened_by_enter(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_box(host(project), 'api="api/"')
    reply_with(page, [0.3, 0.2], floor=0.4)
    status, hits = page.get_by_role("status"), page.get_by_role("listbox")
    assert (
        status.evaluate("(one, other) => one.compareDocumentPosition(other)", hits.element_handle()) == 4
    )  # FOLLOWING
    assert page.get_by_role("option", selected=True).count() == 0
    assert page.get_by_role("combobox").get_attribute("aria-activedescendant") == ""
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").is_visible()
    selected = []
    for _ in range(4):
        page.keyboard.press("ArrowDown")
        selected.append(page.get_by_role("option", selected=True).get_attribute("href"))
    assert [str(link).rpartition("/")[2] for link in selected] == ["a.html", "a.html#part", "b.html", "b.html#part"]
    page.keyboard.press("Enter")
    page.wait_for_url("**/b.html#part")


@pytest.mark.parametrize(("score", "is_relevant"), [(0.4, True), (0.3999, False)])
def test_a_best_result_at_the_floor_is_relevant(
    project: Path, host: Host, open_box: OpenBox, score: float, is_relevant: bool
) -> None:
    page = open_box(host(project), 'api="api/"')
    reply_with(page, [score, 0.1, 0.1, 0.1], floor=0.4)
    assert page.get_by_role("status").inner_text().startswith("Results: 4" if is_relevant else UNLIKE)
    assert page.get_by_role("option", selected=True).count() == int(is_relevant)
    assert page.locator("[part=hit]").count() == (4 * 2 if is_relevant else 3)
    ink, heading, *_ = contrasts(page)
    assert (ink == heading) is is_relevant


def test_the_closest_results_are_the_first_pages_that_the_function_finds(
    project: Path, host: Host, open_box: OpenBox, function_over: Connect
) -> None:
    page = open_box(host(project), 'mode="semantic"')
    stand_on(page, "2.0", "en")
    page.keyboard.press("Control+k")
    wait_for_meaning(page)
    found = ask(page, "wooden door")
    filters = {"$and": [{"version": "2.0"}, {"language": "en"}]}
    asked = {"text": "wooden door", "mode": "semantic", "group_by": "path", "filter": filters}
    results = function_over(project.parents[1] / "bundle")(asked)["results"]
    assert found == [each["metadata"]["url"] for each in results[:3]]
    page.get_by_role("status").filter(has_text="The closest results:").wait_for()
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("option", selected=True).inner_text() == "Search all versions and languages"


def test_a_page_that_only_its_boost_puts_before_a_relevant_changelog_hides_nothing(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    page = open_box(host(project), 'api="api/"')
    info = {"index": {"columns": {"kind": "string"}, "floor": {"hybrid": {"score": 0.4, "kept": 1}}}}
    page.route("**/api/info", lambda route: route.fulfill(json=info))

    def hit(name: str, own: float, boost: float) -> dict[str, Any]:
        scores = {"semantic": 0.5, "keyword": 0.1, "hybrid": own, "boost": boost}
        place = {"id": name, "metadata": {"title": name, "url": f"{name}.html"}}
        return place | {"score": own + boost, "scores": scores, "snippet": {"text": "a text", "highlights": []}}

    reply = {"results": [hit("a", 0.39, 0.15), hit("b", 0.41, 0)], "truncated": False}
    page.route("**/api/similar", lambda route: route.fulfill(json=reply))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("mend boots")
    page.locator("[part=hit]").nth(1).wait_for()


def test_recent_searches_and_links_of_the_owner_are_shown_first(
    project: Path, host: Host, open_box: OpenBox, axe: str
) -> None:
    element = '<semantic-search><a href="guide.html">First steps</a></semantic-search>'
    own = host(project)
    page = open_box(own, element=element)
    page.evaluate("addEventListener('select', (event) => event.preventDefault())")
    ask(page, "wooden door")
    page.locator("[part=hit]").first.wait_for()  # the owner's link was an option before
    page.keyboard.press("Enter")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("")
    recent = page.get_by_role("option", name="wooden door", exact=True)
    recent.wait_for()
    assert page.get_by_role("option", name="First steps").evaluate("(link) => link.href").endswith("/guide.html")
    assert violations(page, axe) == []
    recent.click()
    page.locator("[part=hit]").first.wait_for()
    page.get_by_role("button", name="Clear").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Delete")
    recent.wait_for(state="detached")
    page.keyboard.press("Escape")
    page = open_box(own, 'recent="off"', page=page)
    page.evaluate("addEventListener('select', (event) => event.preventDefault())")
    ask(page, "wooden door")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("")
    page.locator("[part=hit]").first.wait_for(state="detached")
    assert page.get_by_role("option").count() == 0


def test_a_boost_of_the_owner_orders_the_results(project: Path, host: Host, open_box: OpenBox) -> None:
    boost = json.dumps({"path": {"equals": "1.0/guide.html", "weight": 100}})
    page = open_box(host(project), f"""mode="keyword" boost='{boost}'""")
    stand_on(page, "3.0", "en")  # a version that the site does not have
    assert ask(page, "sailor")[0].startswith("1.0/guide.html")


PAGES_FIRST = {"kind": {"equals": "page", "weight": 0.15}}
OWN = {"path": {"equals": "a.html", "weight": 1}}


@pytest.mark.parametrize(
    ("attributes", "index", "text", "boost"),
    [
        ("", {"kind": "string"}, "mend boots", PAGES_FIRST),
        ("", {"kind": "list"}, "mend boots", None),
        ("", {}, "mend boots", None),
        ("kind-boost=0", {"kind": "string"}, "mend boots", None),
        ("kind-boost=0.3", {"kind": "string"}, "mend boots", {"kind": {"equals": "page", "weight": 0.3}}),
        (f"boost='{json.dumps(OWN)}'", {"kind": "string"}, "mend boots", PAGES_FIRST | OWN),
        (f"boost='{json.dumps(OWN)}' kind-boost=0", {"kind": "string"}, "mend boots", OWN),
        (f"boost='{json.dumps(OWN)}'", {}, "mend boots", OWN),
        (
            """boost='{"kind": {"equals": "a", "weight": 1}}'""",
            {"kind": "string"},
            "mend",
            {"kind": {"equals": "a", "weight": 1}},
        ),
        ("", {"kind": "string"}, "what changed in 1.24", None),
        ("", {"kind": "string"}, "chapter 24", PAGES_FIRST),
        (f"boost='{json.dumps(OWN)}'", {"kind": "string"}, "what changed in v1.24?", OWN),
    ],
)
def test_the_box_asks_for_pages_before_changelogs_and_posts(
    attributes: str, index: dict[str, str], text: str, boost: object, project: Path, host: Host, open_box: OpenBox
) -> None:
    assert _boost_of(open_box(host(project), f'api="api/" {attributes}'), {"columns": index}, text) == boost


def test_the_boost_of_pages_is_added_to_that_of_the_corpus(project: Path, host: Host, open_box: OpenBox) -> None:
    index = {"columns": {"kind": "string"}, "boost": OWN}
    assert _boost_of(open_box(host(project), 'api="api/"'), index, "mend boots") == PAGES_FIRST | OWN
    page = open_box(host(project), 'api="api/" kind-boost="x"')
    page.route("**/api/info", lambda route: route.fulfill(json={"index": index}))
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("mend boots")
    page.get_by_role("status").filter(has_text="kind-boost: expected a number of 0 or more").wait_for()


def _boost_of(page: Page, index: dict[str, Any], text: str) -> object:
    """Return the boost of the request that the box sends for a text."""
    page.route("**/api/info", lambda route: route.fulfill(json={"index": index}))
    page.route("**/api/similar", lambda route: route.fulfill(json={"results": [], "truncated": False}))
    page.keyboard.press("Control+k")
    with page.expect_request("**/api/similar") as sent:
        page.get_by_role("combobox").fill(text)
    return sent.value.post_data_json.get("boost")


def test_a_page_comes_before_a_changelog_with_the_same_text(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'mode="keyword" kind-boost="0.3"')
    stand_on(page, "2.0", "en")
    assert ask(page, "cobbler mended boots") == ["shoes.html", "changelog.html"]
    page = open_box(host(project), 'mode="keyword" kind-boost="0"', page=page)
    stand_on(page, "2.0", "en")
    assert ask(page, "cobbler mended boots") == ["changelog.html", "shoes.html"]


def test_ctrl_enter_opens_a_tab_and_keeps_the_box(page: Page) -> None:
    ask(page, "wooden door")
    with page.context.expect_page() as opened:
        page.keyboard.press("Control+Enter")
    opened.value.wait_for_url("**/project/guide.html#doors*")
    assert page.get_by_role("dialog").is_visible()


def test_the_box_is_dark_on_a_dark_page_whatever_the_system_says(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), color_scheme="light")
    page.evaluate("document.querySelector('meta[name=color-scheme]').remove()")
    colours: list[list[str]] = []
    for background, ink in (("rgb(20, 20, 30)", "rgb(230, 230, 240)"), ("rgb(250, 250, 240)", "rgb(10, 10, 10)")):
        page.evaluate(
            "(colours) => Object.assign(document.body.style, colours)", {"background": background, "color": ink}
        )
        page.keyboard.press("Control+k")
        colours.append(page.get_by_role("dialog").evaluate(COLOURS))
        page.keyboard.press("Escape")
    assert colours == [
        ["rgb(20, 20, 30)", "rgb(230, 230, 240)", "dark"],
        ["rgb(250, 250, 240)", "rgb(10, 10, 10)", "light"],
    ]


def test_the_accent_is_that_of_the_theme_or_else_of_links_in_the_text(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    element = '<semantic-search></semantic-search><p><a href="#a" style="color: rgb(1, 2, 3)">A</a></p>'
    page = open_box(host(project), element=element)
    page.evaluate("document.body.insertAdjacentHTML('afterbegin', '<a href=#b style=color:red>Skip the menu</a>')")
    accents = []
    for theme in ("", "--sl-color-text-accent: rgb(4, 5, 6)", "--vp-c-brand-1: rgb(7, 8, 9)"):
        page.evaluate("(style) => document.documentElement.setAttribute('style', style)", theme)
        page.keyboard.press("Control+k")
        accents.append(page.locator("[part=field] > .icon").evaluate("(icon) => getComputedStyle(icon).color"))
        page.keyboard.press("Escape")
    assert accents == ["rgb(1, 2, 3)", "rgb(4, 5, 6)", "rgb(7, 8, 9)"]


def test_a_phone_shows_the_dialog_on_the_whole_screen(project: Path, host: Host, open_box: OpenBox) -> None:
    from playwright.sync_api import expect

    page = open_box(host(project), viewport={"width": 360, "height": 640})
    ask(page, "wooden door")
    box = page.get_by_role("dialog").bounding_box()
    assert box == {"x": 0, "y": 0, "width": 360, "height": 640}
    page.evaluate("visualViewport.dispatchEvent(new Event('resize'))")
    page.set_viewport_size({"width": 360, "height": 400})  # as when the keyboard comes
    expect(page.get_by_role("dialog")).to_have_css("height", "400px")  # waits: the page learns of its size later
    assert page.get_by_role("dialog").bounding_box() == {"x": 0, "y": 0, "width": 360, "height": 400}


def test_the_scrollbar_of_the_page_covers_nothing_of_the_dialog(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), viewport={"width": 360, "height": 640})
    page.evaluate("document.documentElement.style = 'overflow-x: hidden; scrollbar-gutter: stable'")
    page.keyboard.press("Control+k")
    inside = page.evaluate("document.documentElement.offsetWidth")
    assert inside < 360
    assert page.get_by_role("dialog").bounding_box() == {"x": 0, "y": 0, "width": inside, "height": 640}


def test_sections_and_their_copies_are_those_of_the_function(project: Path, function_over: Connect) -> None:
    function = function_over(project.parents[1] / "bundle")
    asked: list[dict[str, Any]] = [
        {"text": text, "mode": mode, "num_results": count, "group_by": "path", "group_size": size, "offset": offset}
        | ({"filter": condition} if condition else {})
        for text in ("sailor", "wooden door", "Sailor.open_door", "baker sold apples", "open_door -key", "ship")
        for mode in ("semantic", "keyword", "hybrid")
        for count, size, offset in ((1, 4, 0), (3, 2, 0), (2, 3, 1))
        for condition in (None, {"version": "1.0"}, {"$not": {"path": {"$startsWith": "de/"}}})
    ]
    assert any(hit.get("also_in") for request in asked for hit in function(request)["results"])
    compare(project, function, asked)


__all__ = ["axe", "open_box"]
