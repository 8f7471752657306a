"""The sites under the boxes in docs/search-box.md, but for that of the documentation, which `make docs` writes.

Each is in build/pictures. `make pictures` installs what they need; that of Docusaurus needs npm and its registry.
"""

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from semsearch.engine.bundle import QUERY_TABLE, check_bundle
from semsearch.indexing.make import index
from semsearch.indexing.vectors.query_table import write_queries
from semsearch.site.site import write_site
from tests.browser.site.test_sphinx import run_sphinx
from tests.project import ROOT

FOLDER = ROOT / "build" / "pictures"
FURO, HTML, DOCUSAURUS = FOLDER / "furo" / "project", FOLDER / "html", FOLDER / "docusaurus" / "build"
LEARNED = ROOT / "build" / "pages-bundle"  # the index of the documentation, with a query table

# Plain HTML: some pages of docs/, as somebody would write them by hand.
HTML_PAGES = ("documents", "bundle", "relevance", "models")
HTML_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>:root {{ color-scheme: light dark; font-family: "DejaVu Serif", serif }} body {{ margin: 2rem }}</style>
<script type="module" src="find/search.js"></script>
<semantic-search keys="ctrl+k"></semantic-search>
<main>{main}</main>
</html>
"""

# Sphinx: the Python API, read from its docstrings.
SPHINX_CONFIG = """\
project = "semsearch"
html_title = "semsearch for Python"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "semsearch.sphinx"]
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
"""
SPHINX_PAGES = {
    "index": ("Python API", ".. toctree::\n\n   searching\n   indexing"),
    "searching": ("Searching", ".. autoclass:: semsearch.Search\n\n.. autoclass:: semsearch.Hit"),
    "indexing": ("Indexing", ".. autofunction:: semsearch.index\n\n.. autofunction:: semsearch.remove"),
}

CREATE_DOCUSAURUS = "create-docusaurus@3.10.2"
DOCUSAURUS_VERSION = "1.0"


def write_html() -> None:
    """Write pages of plain HTML with a font of their own, and their search."""
    HTML.mkdir(parents=True)
    reader = MarkdownIt("commonmark").enable("table")
    for name in HTML_PAGES:
        tokens = reader.parse((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
        for opened, text in pairwise(tokens):
            if opened.type == "heading_open":
                opened.attrSet("id", text.content.lower().replace(" ", "-"))
        main = reader.renderer.render(tokens, reader.options, {}).replace(".md", ".html")
        page = HTML_PAGE.format(title=tokens[1].content, main=main)
        (HTML / f"{name}.html").write_text(page, encoding="utf-8")
    write_index(HTML, FOLDER / "html-index")
    write_site(FOLDER / "html-index", HTML / "find")


def write_furo() -> None:
    """Write a documentation with Sphinx and Furo, with documented objects."""
    docs = FURO.parent / "docs"
    docs.mkdir(parents=True)
    for name, (title, text) in SPHINX_PAGES.items():
        (docs / f"{name}.rst").write_text(f"{title}\n{'=' * len(title)}\n\n{text}\n", encoding="utf-8")
    (docs / "conf.py").write_text(SPHINX_CONFIG.replace(', "semsearch.sphinx"', ""), encoding="utf-8")
    run_sphinx(FURO.parent, "-b", "html", "-D", "html_theme=furo").check_returncode()
    # The extension finds an index of these pages, and so learns no query table.
    write_index(FURO, docs / ".cache" / "semantic-search")
    (docs / "conf.py").write_text(SPHINX_CONFIG, encoding="utf-8")
    run_sphinx(FURO.parent, "-E", "-b", "html", "-D", "html_theme=furo").check_returncode()


def write_docusaurus() -> None:
    """Write the site that Docusaurus creates, in two versions and two languages."""
    site = DOCUSAURUS.parent
    _run(FOLDER, "npx", "--yes", CREATE_DOCUSAURUS, site.name, "classic", "--javascript", "--skip-install")
    _run(site, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund")
    _run(site, "npm", "run", "docusaurus", "docs:version", DOCUSAURUS_VERSION)
    config = site / "docusaurus.config.js"
    languages = config.read_text(encoding="utf-8").replace("locales: ['en']", "locales: ['en', 'fr']")
    config.write_text(languages, encoding="utf-8")
    (site / "src" / "theme").mkdir()
    shutil.copy(ROOT / "deploy" / "docusaurus" / "SearchBar.js", site / "src" / "theme")
    _run(site, "npm", "run", "build")
    write_index(DOCUSAURUS, site / "search-index")
    write_site(site / "search-index", DOCUSAURUS / "find")


def write_index(site: Path, out: Path) -> None:
    """Index a site with the model and the query table of the documentation, because learning a table takes minutes."""
    index(site, out, update=LEARNED, mode="replace", queries="model")
    shutil.copy(LEARNED / QUERY_TABLE, out)
    queries = check_bundle(LEARNED).queries
    assert queries is not None
    write_queries(out, check_bundle(out), queries)


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True)
