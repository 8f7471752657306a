"""A box that searches several sites of one host."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page.browser import Page
from tests.browser.page.test_accessibility import axe, violations
from tests.browser.site.conftest import Host, make_site_of_pages
from tests.browser.site.test_box import PAGES, POLICY, OpenBox, open_box

API_PAGES = {
    "guide/kitchen.html": "<h1>Door</h1><h2 id='open'>Open</h2><p>The sailor sold a wooden door.</p>"
    + "".join(f"<h2 id='door-{number}'>Door</h2><p>A door of the sailor, {number}.</p>" for number in range(5)),
}
SITES = 'mode="keyword" src="search/ api/find/"'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site "Guide"; the site "API" has the pages of ../api and is in ../api/find."""
    project = make_site_of_pages(PAGES, tmp_path_factory.mktemp("guide"))
    api = make_site_of_pages(API_PAGES, tmp_path_factory.mktemp("api"))
    shutil.copytree(api, project.parent / "api" / "find")
    change_index(project, title="Guide")
    change_index(project.parent / "api" / "find", title="API")
    return project


def change_index(site: Path, **facts: Any) -> None:
    """Change what the site says of its index."""
    [path] = site.glob("code/*/site.json")
    described = json.loads(path.read_text())
    described["info"]["index"] |= facts
    path.write_text(json.dumps(described))


def ask(page: Page, text: str) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill(text)
    page.locator("[part=hit]").first.wait_for()


def links(page: Page) -> list[str]:
    found = page.locator("[part=hit]").all()
    return [str(one.get_attribute("href")).rpartition("/project/")[2] for one in found]


def test_each_site_has_its_results_under_its_name_in_the_order_of_the_attribute(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    own = host(project)
    own.policy = POLICY
    page = open_box(own, SITES)
    ask(page, "wooden door")
    assert page.locator("[part=site]").all_inner_texts() == ["Guide", "API"]
    found = links(page)
    assert found[0] == "guide/kitchen.html#doors"
    assert found[1] == "api/guide/kitchen.html#open"
    selected = []
    for _ in range(page.get_by_role("option").count()):
        selected.append(page.get_by_role("option", selected=True).get_attribute("id"))
        page.keyboard.press("ArrowDown")
    assert selected == ["hit-1", *[f"hit-{number}" for number in range(2, len(selected))], "hit-0"]
    page = open_box(own, 'mode="keyword" src="api/find search/"', page=page)
    ask(page, "wooden door")
    assert page.locator("[part=site]").all_inner_texts() == ["API", "Guide"]
    page.keyboard.press("Enter")
    page.wait_for_url("**/api/guide/kitchen.html#open*")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_results_of_several_sites(
    project: Path, host: Host, open_box: OpenBox, axe: str, scheme: str
) -> None:
    page = open_box(host(project), SITES, color_scheme=scheme, viewport={"width": 360, "height": 640})
    ask(page, "wooden door")
    page.keyboard.press("ArrowDown")
    assert violations(page, axe) == []


def test_more_of_a_page_is_searched_in_its_site_alone(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), SITES)
    ask(page, "door")
    assert sum(link.startswith("api/") for link in links(page)) == 3
    page.get_by_role("option", name="More on this page").click()
    page.locator("[part=hit][href*='/api/']").nth(3).wait_for()
    found = links(page)
    assert {f"api/guide/kitchen.html#door-{number}" for number in range(5)} < set(found)
    assert len(found) == len(set(found))
    assert page.locator("[part=site]").all_inner_texts() == ["Guide", "API"]


def test_a_site_that_cannot_be_loaded_says_so_and_the_others_answer(
    project: Path, host: Host, open_box: OpenBox
) -> None:
    own = host(project)
    page = open_box(own, 'mode="keyword" src="search/ nowhere/ api/find/"')
    ask(page, "wooden door")
    assert page.locator("[part=site]").all_inner_texts() == ["Guide", "API"]
    status = page.get_by_role("status")
    assert "nowhere/: " in status.inner_text()
    assert "/project/nowhere/search.js cannot be loaded." in status.inner_text()
    assert "unseen" not in str(status.get_attribute("class"))
    page = open_box(own, 'src="nowhere/"', page=page)
    page.keyboard.press("Control+k")
    page.get_by_role("status").filter(has_text="/project/nowhere/search.js cannot be loaded.").wait_for()


@pytest.mark.parametrize(
    ("floors", "expected"),
    [((0, 1000), ["Guide"]), ((1000, 0), ["API"]), ((1000, 1000), [])],
    ids=["api", "guide", "both"],
)
def test_a_site_below_its_own_floor_is_left_out(
    project: Path, host: Host, open_box: OpenBox, floors: tuple[float, float], expected: list[str]
) -> None:
    for site, floor in zip((project, project.parent / "api" / "find"), floors, strict=True):
        change_index(site, floor={"keyword": {"score": floor, "kept": 1}})
    page = open_box(host(project), SITES)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("wooden door")
    said = "Results:" if expected else "Nothing on these pages is much like"
    page.get_by_role("status").filter(has_text=said).wait_for(state="attached")
    if expected:
        assert page.locator("[part=site]").all_inner_texts() == expected
    for site in (project, project.parent / "api" / "find"):
        change_index(site, floor={})


def test_the_meaning_of_all_sites_is_searched_once_it_is_loaded(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'src="search/ api/find/"')
    ask(page, "baker painted kitchen")
    page.locator("[part=site]", has_text="API").wait_for()  # none of its pages has these words
    assert page.locator("[part=site]").all_inner_texts() == ["Guide", "API"]


def test_api_beside_src_is_an_error(project: Path, host: Host, open_box: OpenBox) -> None:
    page = open_box(host(project), 'src="search/" api="api/"')
    page.keyboard.press("Control+k")
    page.get_by_role("status").filter(has_text="remove one of the two").wait_for()


__all__ = ["axe", "open_box"]
