"""The extension of Sphinx, in real builds; Furo's pages in a real browser. `make test-site` installs Sphinx."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from semsearch.engine.bundle import PASSAGES
from semsearch.engine.passages import Passages
from semsearch.indexing.corpus import Corpus
from tests.browser.page.browser import Browser, Page
from tests.browser.page.conftest import watched_page
from tests.browser.site.conftest import Host
from tests.browser.site.world import write_site_bundle
from tests.project import ROOT

TOOLS = ROOT / "build" / "sphinx-tools"
CONFIG = """\
project = "Stories"
extensions = ["semsearch.sphinx"]
source_suffix = [".rst", ".txt"]
semsearch_out = "search"
semsearch_exclude = ["drafts/*"]
semsearch_attributes = {"placeholder": 'Ask "why"'}
"""
ELEMENT = '<semantic-search placeholder="Ask &#34;why&#34;"></semantic-search>'
SOURCES = {
    "index": ("Stories", "An angry goose.\n\n.. toctree::\n\n   guide/kitchen\n   drafts/b"),
    "guide/kitchen": ("Kitchen", "The night nurse.\n\nWalls\n-----\n\nThe baker painted the kitchen."),
    "drafts/b": ("Draft", "The mayor."),
}


def build(folder: Path, theme: str, builder: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run sphinx-build, which reads folder/docs and writes folder/project. A warning is an error."""
    if not (TOOLS / "installed").exists():
        pytest.skip(f"{TOOLS}: Sphinx is not there; `make test-site` installs it")
    for name, (title, text) in SOURCES.items():
        path = folder / "docs" / f"{name}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{title}\n=======\n\n{text}\n", encoding="utf-8")
    (folder / "docs" / "conf.py").write_text(CONFIG, encoding="utf-8")
    bundle = folder / "docs" / ".cache" / "semantic-search"
    bundle.parent.mkdir()
    # so that the tests' model embeds the pages
    write_site_bundle(bundle, Corpus(["The ferry"], ["a"], ["{}"]))
    return run_sphinx(folder, "-W", "-b", builder, "-D", f"html_theme={theme}", *options)


def run_sphinx(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run sphinx-build with the project's own packages. It reads folder/docs and writes folder/project."""
    (packages,) = TOOLS.glob("lib/python*/site-packages")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{packages}"}
    command = [sys.executable, "-m", "sphinx", *options, "docs", "project"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def urls(folder: Path) -> list[str]:
    passages = Passages(folder / "docs" / ".cache" / "semantic-search" / PASSAGES)
    return sorted(passages.metadata(row)["url"] for row in range(len(passages)))


@pytest.fixture(scope="module")
def furo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a documentation with Furo, whose pages are in project/."""
    folder: Path = tmp_path_factory.mktemp("furo")
    done = build(folder, "furo", "html")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def page(furo: Path, host: Host, browser: Browser) -> Iterator[Page]:
    """A page of the documentation on a phone. At the end it fails for any error of a script."""
    address = f"http://127.0.0.1:{host(furo / 'project' / 'search').place}".removesuffix("search/")
    with watched_page(browser, viewport={"width": 390, "height": 800}, base_url=address) as page:
        page.goto("guide/kitchen.html")
        yield page


def test_a_build_indexes_the_pages_and_puts_the_box_into_furos_sidebar(furo: Path) -> None:
    assert (furo / "project" / "search" / "index.html").is_file()
    kept = furo / "docs" / ".cache" / "semantic-search-site"
    assert (kept / "search.js").read_bytes() == (furo / "project" / "search" / "search.js").read_bytes()
    assert urls(furo) == ["./#stories", "guide/kitchen.html#kitchen", "guide/kitchen.html#walls"]
    for name, script in {"index": "search/search.js", "drafts/b": "../search/search.js"}.items():
        text = (furo / "project" / f"{name}.html").read_text(encoding="utf-8")
        _, _, sidebar = text.partition('<div class="sidebar-search-container"')
        assert f'<script type="module" src="{script}"></script>\n{ELEMENT}' in sidebar
        assert 'name="q"' not in text


def test_a_build_with_folders_for_pages_and_another_theme_has_the_box_too(tmp_path: Path) -> None:
    done = build(tmp_path, "alabaster", "dirhtml", "-D", "semsearch_out=find")
    assert done.returncode == 0, done.stderr
    assert urls(tmp_path) == ["./#stories", "guide/kitchen/#kitchen", "guide/kitchen/#walls"]
    text = (tmp_path / "project" / "guide" / "kitchen" / "index.html").read_text(encoding="utf-8")
    assert f'<script type="module" src="../../find/search.js"></script>\n{ELEMENT}' in text


def test_other_builders_write_no_search_and_no_box(tmp_path: Path) -> None:
    done = build(tmp_path, "furo", "singlehtml")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "project" / "search").exists()
    assert "<semantic-search" not in (tmp_path / "project" / "index.html").read_text(encoding="utf-8")


def test_a_build_says_its_progress_and_what_was_left_out(tmp_path: Path) -> None:
    done = build(tmp_path, "alabaster", "html")
    said = re.sub(r"took [\d:]+", "took T", done.stdout)
    assert "semsearch: read texts: 100%, took T\n" in said
    assert "semsearch: page: 100%, took T\n" in said
    assert re.search(r"^semsearch: files +2 read; .*an excluded path", said, re.MULTILINE)
    assert re.search(r"^semsearch: queries +a table learned from \d+ spans: ", said, re.MULTILINE)


def test_a_search_that_cannot_be_written_fails_the_build(tmp_path: Path) -> None:
    done = build(tmp_path, "alabaster", "html", "-D", "semsearch_out=guide")
    assert done.returncode == 2
    assert "semsearch.sphinx: project/guide: holds kitchen.html" in done.stderr.replace(f"{tmp_path}/", "")


def test_the_box_opens_from_furos_sidebar_on_a_phone_and_leads_to_a_heading(page: Page) -> None:
    page.locator("label.nav-overlay-icon").first.click()
    button = page.get_by_role("button", name='Ask "why"')
    margins = """(button) => {
      const inside = button.getBoundingClientRect();
      const around = document.querySelector(".sidebar-container").getBoundingClientRect();
      return [inside.left - around.left, around.right - inside.right];
    }"""
    assert button.evaluate(margins) == [0, 0]  # as those of Furo's own field
    button.click()
    page.get_by_role("combobox").fill("baker painted kitchen")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/guide/kitchen.html#walls*")


def test_the_key_of_sphinxs_own_field_opens_the_box(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("/")
    page.get_by_role("combobox").wait_for()


def test_sphinxs_own_search_page_works(page: Page) -> None:
    page.goto("search.html?q=baker")
    assert page.locator("#search-results li a").first.get_attribute("href") == "guide/kitchen.html"


__all__ = ["furo", "page"]
