"""Deployments of a site to a host that lets browsers keep every file for ten minutes, as GitHub Pages does.

Each build goes into an empty folder, as in a workflow, and takes the files of the build before from a folder that the
workflow keeps. All files that differ between builds have other names, and those of older builds are gone.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from semsearch.site.site import write_site
from tests.browser.page.browser import Browser, Page
from tests.browser.page.conftest import watched_page
from tests.browser.site.conftest import Host, StaticHost, make_site_of_pages
from tests.browser.site.test_box import NO_SHARED_WORKER, PAGES, SAVES_DATA
from tests.browser.site.world import PACKAGES
from tests.server.running import eventually

BUILDS = 5
QUESTION = "baker painted kitchen"
TEN_MINUTES = "max-age=600"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Page</title>
<script type="module" src="search/search.js"></script>
<main><h1>Page</h1><semantic-search></semantic-search></main></html>"""
KEPT = """async () => {
  const found = [];
  const cache = await caches.open("data /project/search/");
  for (const request of await cache.keys()) {
    const bytes = (await (await cache.match(request)).arrayBuffer()).byteLength;
    found.push([request.url.split("/").at(-1), bytes]);
  }
  return found;
}"""


OFFLINE_PAGE = """async () => {
  const names = (await caches.keys()).filter((name) => name.startsWith("code "));
  const pages = names.map(async (name) => (await (await caches.open(name)).match("./")).text());
  return (await Promise.all(pages)).join();
}"""
LOAD_ALL = """async () => {
  const { connect } = await import(`./search/${await code()}client.js`);
  await connect(new URL(`search/${await code()}`, location.href), () => {}).ask("offline");
  async function code() {
    return (await (await fetch("search/search.js")).text()).match(/code\\/\\w{16}\\//)[0];
  }
}"""


ASK_AGAIN_AND_AGAIN = """async (code) => {
  const { connect } = await import(`${code}client.js`);
  const { ask } = connect(new URL(code), () => {});
  globalThis.messages = [];
  while (messages.length < 10) messages.push(await ask("keyword").catch(({ message }) => message));
}"""


@dataclass
class Builds:
    """The folders of the builds of a project, each with the files that its build alone lists."""

    folders: list[Path]

    def listed(self, number: int) -> dict[str, int]:
        """Return the bytes of each data file that a build lists, by name."""
        return listed(self.folders[number] / "project" / "search")


def code_of(search: Path) -> Path:
    """Return the folder of the code that search.js names."""
    (code,) = re.findall(r"code/\w{16}/", (search / "search.js").read_text())
    return search / str(code)


def listed(search: Path) -> dict[str, int]:
    files = json.loads((code_of(search) / "site.json").read_text())["files"]
    return {each["path"].rpartition("/")[2]: each["bytes"] for each in files.values()}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """Five builds of pages whose texts differ."""
    kept: Path = tmp_path_factory.mktemp("cache") / "site"
    folders = []
    for number in range(BUILDS):
        folder: Path = tmp_path_factory.mktemp("build")
        pages = {name: f"{page}<p>Build {number} of the wooden door." for name, page in PAGES.items()}
        search = make_site_of_pages(pages, folder)
        shutil.rmtree(search)
        write_site(folder / "bundle", search, packages=PACKAGES, keep=kept)
        folders.append(folder)
    return Builds(folders)


class Deployed:
    """A host of one build after another."""

    def __init__(self, builds: Builds, folder: Path, host: Host) -> None:
        """Deploy nothing yet."""
        self.search = folder / "served" / "project" / "search"
        self.host: StaticHost = host(self.search)
        self.host.caching = TEN_MINUTES
        self.address = f"http://127.0.0.1:{self.host.place.removesuffix('search/')}"
        self._builds = builds

    def deploy(self, number: int) -> None:
        """Replace everything by a build."""
        project = self.search.parent
        shutil.rmtree(project, ignore_errors=True)
        shutil.copytree(self._builds.folders[number] / "project", project)
        for name in ("page", *(f"page-{visit}" for visit in range(BUILDS))):
            (project / f"{name}.html").write_text(PAGE)
        for path in project.rglob("*"):
            os.utime(path, (number, number))  # the host tells builds apart by whole seconds

    def delete_former(self) -> None:
        """Delete the files of the former build, as if nothing had kept them."""
        for path in (self.search / "code").iterdir():
            if path != code_of(self.search):
                shutil.rmtree(path)
        names = listed(self.search)
        for path in (self.search / "data").iterdir():
            if path.name not in names:
                path.unlink()

    @property
    def code(self) -> str:
        """The address of the folder of code that search.js names."""
        return f"{self.address}search/code/{code_of(self.search).name}/"


@pytest.fixture
def deployed(builds: Builds, tmp_path: Path, host: Host) -> Deployed:
    return Deployed(builds, tmp_path, host)


Come = Callable[..., Page]


@pytest.fixture
def come(browser: Browser, deployed: Deployed) -> Iterator[Come]:
    """Return what opens a page in a browser of a visitor's own. At the end it fails for any error of a script."""
    with ExitStack() as visitors:

        def open_one(name: str = "page.html", script: str = "", **options: Any) -> Page:
            page = visitors.enter_context(watched_page(browser, **options))
            if script:
                page.add_init_script(script)
            page.goto(deployed.address + name)
            return page

        yield open_one


KITCHEN = "guide/kitchen.html#walls"  # the answer to QUESTION, which all builds have


def search(page: Page, key: str = "", text: str = QUESTION) -> str:
    """Open the box by the button, or by a key, type a text and return the place of the first result."""
    if not page.get_by_role("combobox").is_visible():
        if key:
            page.keyboard.press(key)
        else:
            page.locator("semantic-search button").first.click()
    page.get_by_role("combobox").fill(text)
    found = page.locator("semantic-search [part=hit]").first
    found.wait_for()
    href: str = found.get_attribute("href") or ""
    return href.rpartition("/project/")[2]


def search_by_meaning(page: Page) -> None:
    page.get_by_role("button", name="Search by meaning too").click()
    page.locator("semantic-search [part=hit]").nth(2).wait_for()  # no other page has the words


KITCHEN = "guide/kitchen.html#walls"


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER], ids=["shared", "own"])
def test_all_visitors_of_five_deployments_get_answers(deployed: Deployed, come: Come, script: str) -> None:
    looked: list[Page] = []  # pages open since each build, whose box was never opened
    opened: list[Page] = []  # pages open since each build, whose box is open and has loaded the keywords alone
    cached: list[Page] = []  # visitors since each build, who come to another page with the search.js in their cache
    for number in range(BUILDS):
        deployed.deploy(number)
        looked.append(come(script=script))
        opened.append(come(script=f"{SAVES_DATA}; {script}"))
        assert search(opened[-1]) == KITCHEN
        cached.append(come(script=script))
        for page in cached:
            page.goto(f"{deployed.address}page-{number}.html")
        for page in cached[::2]:
            assert search(page, "Control+k") == KITCHEN
            page.reload()
            assert search(page, "Control+k") == KITCHEN
    for number, page in enumerate([*looked, *cached]):
        assert search(page, "" if number % 2 else "Control+k") == KITCHEN
    for page in opened:
        assert search(page, text="baker painted") == KITCHEN
        search_by_meaning(page)


def kept(page: Page) -> dict[str, int]:
    """Return the bytes of each data file that the browser keeps, by name."""
    names = dict(page.evaluate(KEPT))
    names.pop("builds.json", None)  # the lists
    return names


def test_a_browser_keeps_what_the_last_two_builds_list(deployed: Deployed, builds: Builds, come: Come) -> None:
    deployed.deploy(0)
    page = come()
    tools = page.context.new_cdp_session(page)
    before: dict[str, int] = {}
    for number in range(BUILDS):
        deployed.deploy(number)
        tools.send("Network.clearBrowserCache")  # ten minutes later
        page.goto(deployed.address + "page.html")
        assert search(page) == KITCHEN
        page.evaluate(LOAD_ALL)
        own = builds.listed(number)
        assert own.keys() - before.keys()
        page.wait_for_function(f"async (count) => (await ({KEPT})()).length === count", arg=len(own | before) + 1)
        assert kept(page) == own | before
        before = own


def test_pages_find_the_new_build_without_the_files_of_the_former(deployed: Deployed, come: Come) -> None:
    deployed.deploy(0)
    by_key, by_button, cached, own = come(), come(), come(), come("search/")
    opened = come(script=SAVES_DATA)
    assert search(opened) == KITCHEN
    own.locator("#corpus:not(:empty)").wait_for()
    deployed.deploy(1)
    deployed.delete_former()
    cached.goto(deployed.address + "page-1.html")
    assert search(by_key, "Control+k") == KITCHEN
    assert search(by_button) == KITCHEN
    assert search(cached) == KITCHEN
    search_by_meaning(opened)
    own.reload()
    own.locator("#query").fill(QUESTION)
    own.locator("li.hit").first.wait_for()
    # search.js was replaced in the cache too: the next page begins with the new build
    asked = len(deployed.host.asked)
    by_key.goto(deployed.address + "page-2.html")
    assert search(by_key) == KITCHEN
    assert "/project/search/search.js" not in deployed.host.asked[asked:]


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER], ids=["shared", "own"])
def test_a_page_that_searched_by_meaning_does_so_in_the_new_build(deployed: Deployed, come: Come, script: str) -> None:
    deployed.deploy(0)
    page = come(script=script)
    page.keyboard.press("Control+k")
    page.evaluate("import('./search/search.js').then(({ open }) => open()).then((search) => search.load())")
    deployed.deploy(1)
    deployed.delete_former()
    deployed.host.held["queries-"] = Event()
    assert search(page) == KITCHEN  # by words, whose texts were not loaded before
    assert page.locator("semantic-search [part=hit]").count() == 1
    deployed.host.held["queries-"].set()
    page.locator("semantic-search [part=hit]").nth(2).wait_for()  # by meaning
    if script:
        assert [worker.url for worker in page.workers] == [f"{deployed.code}worker/worker.js"]


def test_the_sites_own_page_is_that_of_the_newest_build_and_is_kept_for_use_offline(
    deployed: Deployed, come: Come
) -> None:
    deployed.deploy(0)
    page = come("search/")

    def wait_until_kept() -> None:
        page.locator("#loading[data-ready=offline]").wait_for(state="attached")
        # each answer is awaited: the promise of `wait_for_function` would count as true
        assert eventually(
            lambda: page.evaluate(
                """async () => {
                    const code = document.querySelector("script[src]").src.match(/code.(\\w+)/)[1];
                    const { active } = await navigator.serviceWorker.ready;
                    return active.scriptURL.endsWith(code) && active.state === "activated";
                }"""
            )
        )

    def script() -> str:
        source: str = page.locator("script[src]").first.evaluate("(script) => script.src")
        return source

    wait_until_kept()
    for number in (1, 2):
        deployed.deploy(number)
        deployed.delete_former()
        page.goto(f"{deployed.address}search/index.html")
        assert script() == f"{deployed.code}page.js"
        wait_until_kept()
        assert f"code/{code_of(deployed.search).name}/page.js" in page.evaluate(OFFLINE_PAGE)


def said(page: Page) -> str:
    """Open the box by the button, and return what a dialog says in place of the box."""
    page.locator("semantic-search button").first.click()
    alert = page.get_by_role("alert")
    alert.wait_for()
    text: str = alert.inner_text()
    page.get_by_role("button", name="Close").click()
    alert.wait_for(state="detached")
    return text


ADVICE = "Check the network, or reload the page in some minutes."


def test_a_box_that_cannot_be_loaded_says_so_and_the_next_click_tries_again(deployed: Deployed, come: Come) -> None:
    deployed.deploy(0)
    page = come()
    page.context.set_offline(True)
    for _ in range(2):
        assert said(page) == f"{deployed.code}box.js cannot be loaded. {ADVICE}"
    page.context.set_offline(False)
    assert search(page) == KITCHEN


@pytest.mark.parametrize("missing", ["code/", "box.js", "client.js"], ids=["all", "box", "client"])
def test_code_that_the_host_does_not_have_yet_is_asked_for_at_the_next_click(
    deployed: Deployed, come: Come, missing: str
) -> None:
    """Caches keep the refusal for ten minutes, as they keep each reply."""
    deployed.deploy(0)
    page = come()
    deployed.deploy(1)
    deployed.delete_former()
    path = code_of(deployed.search) / missing.replace("code/", "")
    path.rename(deployed.search / "later")
    name = missing.replace("code/", "box.js")
    if missing == "client.js":
        page.keyboard.press("Control+k")
        page.get_by_role("status").filter(has_text=f"{deployed.code}{name} cannot be loaded. {ADVICE}").wait_for()
        page.keyboard.press("Escape")
    else:
        assert said(page) == f"{deployed.code}{name} cannot be loaded. {ADVICE}"
    (deployed.search / "later").rename(path)
    assert search(page) == KITCHEN


@pytest.mark.parametrize("script", ["", NO_SHARED_WORKER], ids=["shared", "own"])
@pytest.mark.parametrize(
    ("missing", "has_page_for_all", "message"),
    [
        ("data", False, r"/data/keywords-\w{16}\.bin cannot be loaded \(404\)\. Check"),
        ("data", True, r"/data/keywords-\w{16}\.bin cannot be loaded \(a page\)\. Check"),
        ("site.json", False, r"/site\.json cannot be loaded \(404\)\. Check"),
        ("site.json", True, r"/site\.json cannot be loaded \(a page\)\. Check"),
        ("worker", False, r"/worker/worker\.js cannot be started\. Check"),
    ],
    ids=["data", "data-page", "list", "list-page", "worker"],
)
def test_files_that_the_host_does_not_have_are_named_and_asked_for_again(
    deployed: Deployed, come: Come, missing: str, has_page_for_all: bool, message: str, script: str
) -> None:
    deployed.deploy(0)
    deployed.host.has_page_for_all = has_page_for_all
    path = deployed.search / "data" if missing == "data" else code_of(deployed.search) / missing
    path.rename(deployed.search / "later")
    page = come(script=script)
    page.keyboard.press("Control+k")
    page.get_by_role("status").filter(has_text=re.compile(message)).wait_for()
    (deployed.search / "later").rename(path)
    page.keyboard.press("Escape")
    assert search(page) == KITCHEN


def test_each_start_of_a_missing_worker_fails_also_right_after_another(deployed: Deployed, come: Come) -> None:
    deployed.deploy(0)
    (code_of(deployed.search) / "worker" / "worker.js").unlink()
    page = come()
    page.evaluate(f"(code) => void ({ASK_AGAIN_AND_AGAIN})(code)", deployed.code)
    page.wait_for_function("() => globalThis.messages?.length === 10")
    messages = page.evaluate("messages")
    assert messages == [f"{deployed.code}worker/worker.js cannot be started. {ADVICE}"] * 10


def test_a_host_that_still_sends_the_older_search_js_is_asked_again(deployed: Deployed, come: Come) -> None:
    deployed.deploy(0)
    page, older = come(), (deployed.search / "search.js").read_bytes()
    box = f"{deployed.code}box.js"
    deployed.deploy(1)
    deployed.delete_former()
    newer = (deployed.search / "search.js").read_bytes()
    (deployed.search / "search.js").write_bytes(older)
    assert said(page) == f"{box} cannot be loaded. {ADVICE}"
    (deployed.search / "search.js").write_bytes(newer)
    assert search(page) == KITCHEN


def test_a_style_that_was_missing_is_loaded_when_the_box_opens(deployed: Deployed, come: Come) -> None:
    deployed.deploy(0)
    path = code_of(deployed.search) / "search.css"
    path.rename(deployed.search / "later")
    page = come()
    page.wait_for_load_state("networkidle")
    (deployed.search / "later").rename(path)
    assert search(page) == KITCHEN
    style = "getComputedStyle(document.querySelector('semantic-search').shadowRoot.querySelector('dialog'))"
    page.wait_for_function(f"() => {style}.display === 'flex'")


def test_the_button_of_a_page_with_an_older_search_js_has_the_style_of_the_new_build(
    deployed: Deployed, come: Come
) -> None:
    deployed.deploy(0)
    (code_of(deployed.search) / "search.css").unlink()  # so that the browser keeps search.js alone
    page = come()
    page.wait_for_load_state("networkidle")
    deployed.deploy(1)
    deployed.delete_former()
    page.goto(f"{deployed.address}page-1.html")
    button = "document.querySelector('semantic-search').shadowRoot.querySelector('button')"
    page.wait_for_function(f"() => getComputedStyle({button}).display === 'inline-flex'")


def test_the_style_is_that_of_the_build_that_opens_the_box(deployed: Deployed, come: Come) -> None:
    deployed.deploy(0)
    page = come()
    deployed.deploy(1)
    deployed.delete_former()
    assert search(page) == KITCHEN
    links = (
        "Array.from(document.querySelector('semantic-search').shadowRoot.querySelectorAll('link'), (link) => link.href)"
    )
    page.wait_for_function(f"(href) => String({links}) === href", arg=f"{deployed.code}search.css")
