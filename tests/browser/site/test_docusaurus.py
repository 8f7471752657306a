"""The search bar for Docusaurus in React, with stand-ins for Docusaurus' own modules."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page.browser import Browser, Page
from tests.browser.site.conftest import Host
from tests.browser.site.test_box import QUESTION, project
from tests.browser.site.test_frameworks import framework_source
from tests.project import ROOT

MODULES = {
    "react": 'export const { createElement, useEffect, useState } = require("react");',
    "@docusaurus/router": """
export const useHistory = () => ({ push: (path) => pushed.push(path) });
export const matchPath = (path, { path: route, exact }) =>
  route === "*" || (exact ? path === route : path.startsWith(route));
""",
    "@docusaurus/useDocusaurusContext": "export default () => context;",
    "@docusaurus/useGlobalData": "export default () => globalData;",
    "@generated/routes": "export default routes;",
}
# Docusaurus has a page for one of the three files, and one for all addresses that it does not know.
ROUTES = [{"path": "/project", "routes": [{"path": "/project/guide/kitchen.html", "exact": True}]}, {"path": "*"}]
LOCALES = {"en": {"path": "en"}, "fr": {"path": "fr"}}
MOUNT = """
import SearchBar from "./SearchBar.js";
require("react-dom/client").createRoot(root).render(require("react").createElement(SearchBar));
"""

OpenSite = Callable[..., Page]


@pytest.fixture
def open_site(browser: Browser, project: Path, host: Host) -> Iterator[OpenSite]:
    """Return what opens a page of a site at this base URL, whose search is in project/find/."""
    folder = project.parent
    if not (folder / "find").exists():
        (folder / "find").symlink_to(project, target_is_directory=True)
    names = {name: f"./module-{number}.js" for number, name in enumerate(MODULES)}
    for name, source in MODULES.items():
        (folder / names[name]).write_text(source)
    component = (ROOT / "deploy" / "docusaurus" / "SearchBar.js").read_text(encoding="utf-8")
    imports = re.sub('from "(.*?)"', lambda found: f"from {json.dumps(names[found[1]])}", component)
    (folder / "SearchBar.js").write_text(imports)
    (folder / "mount.js").write_text(MOUNT)
    (folder / "react.js").write_text(framework_source("react"))
    address = f"http://127.0.0.1:{host(project).place}".removesuffix("search/")
    with ExitStack() as contexts:

        def open_one(base: str = "/project/", locale: str = "en", plugins: dict[str, Any] | None = None) -> Page:
            i18n = {"currentLocale": locale, "defaultLocale": "en", "localeConfigs": LOCALES}
            context = {"siteConfig": {"baseUrl": base}, "i18n": i18n}
            stated = f"const pushed = [], routes = {json.dumps(ROUTES)}, context = {json.dumps(context)};"
            stated += f"const globalData = {json.dumps(plugins or {})};"
            (folder / "site.html").write_text(
                '<!doctype html><meta charset="utf-8"><title>Site</title><div id="root"></div>'
                f"<script>{stated}</script>"
                '<script src="react.js"></script><script type="module" src="mount.js"></script>'
            )
            page: Page = contexts.enter_context(browser.new_context()).new_page()
            page.goto(f"{address}site.html")
            return page

        yield open_one


def ask(page: Page, text: str = QUESTION) -> None:
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("combobox").fill(text)
    page.get_by_role("option").first.wait_for()


def test_a_result_that_is_a_page_of_docusaurus_is_opened_by_its_router_or_with_ctrl_in_a_tab(
    open_site: OpenSite,
) -> None:
    page = open_site()
    ask(page)
    with page.context.expect_page() as opened:
        page.locator("[part=hit]").first.click(modifiers=["Control"])
    opened.value.wait_for_url("**/project/guide/kitchen.html#walls*")
    assert page.evaluate("pushed") == []
    page.locator("[part=hit]").first.click()
    page.get_by_role("combobox").wait_for(state="hidden")
    ask(page)
    page.keyboard.press("Enter")
    page.get_by_role("combobox").wait_for(state="hidden")
    assert page.evaluate("pushed") == ["/project/guide/kitchen.html#walls"] * 2
    assert page.url.endswith("/project/site.html")


def test_a_result_that_is_another_file_of_the_site_is_loaded(open_site: OpenSite) -> None:
    page = open_site()
    ask(page, "forty ducks frozen river")
    page.locator("[part=hit]").first.click()
    page.wait_for_url("**/project/river.html#ducks*")


def test_the_pages_of_another_language_have_the_search_of_the_whole_site(open_site: OpenSite) -> None:
    page = open_site("/project/fr/", "fr")
    ask(page)
    page.keyboard.press("Enter")
    page.get_by_role("combobox").wait_for(state="hidden")
    assert page.evaluate("pushed") == ["/project/guide/kitchen.html#walls"]


def test_the_box_calls_versions_by_the_labels_of_the_site(open_site: OpenSite) -> None:
    def of(label: str) -> dict[str, Any]:
        return {"versions": [{"name": "current", "label": label}, {"name": "4", "label": f"4 of {label}"}]}

    element = "document.querySelector('semantic-search').getAttribute('versions')"
    docs = {"default": of("5.x"), "other": {"versions": [{"name": "current", "label": "Next"}]}}
    page = open_site(plugins={"docusaurus-plugin-content-docs": docs, "another-plugin": {}})
    assert json.loads(page.evaluate(element)) == {"current": "5.x", "4": "4 of 5.x"}
    page = open_site(plugins={"docusaurus-plugin-content-docs": {"other": of("1")}})
    assert json.loads(page.evaluate(element)) == {"current": "1", "4": "4 of 1"}
    assert json.loads(open_site().evaluate(element)) == {}


def test_a_site_without_an_index_says_so(open_site: OpenSite) -> None:
    page = open_site("/nowhere/")
    assert page.get_by_role("button", name="no index here yet").is_disabled()
    assert page.locator("semantic-search").count() == 0


__all__ = ["open_site", "project"]
