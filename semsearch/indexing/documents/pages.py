"""The pages that generators of sites build: what in them is no text of the page, and what they say of themselves.

Docusaurus, MkDocs with Material, Sphinx, VitePress and Starlight mark these by classes, roles and meta elements.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from semsearch.indexing.documents.kinds import POST
from semsearch.indexing.documents.looks import Looks, read_beside
from semsearch.indexing.file_choice import SITE_VERSIONS

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

CHROME = ", ".join(
    (
        # Docusaurus: the version, tables of contents, cards of other pages
        ".theme-doc-version-badge, .theme-doc-version-banner, .theme-edit-this-page, .theme-last-updated",
        ".theme-doc-toc-mobile, .theme-doc-toc-desktop, .table-of-contents, .theme-doc-card-container",
        # Material: links to the source, tags, dates of changes
        ".md-content__button, .md-tags, .md-source-file, .md-sidebar",
        # Sphinx: lists of pages, and what is around an article
        ".toctree-wrapper, .prev-next-area, .bd-sidebar-secondary",
        # the versions of a documentation: Read the Docs, PyData, Material
        ".rst-versions, .version-switcher__container, .md-version",
        # VitePress and Starlight: the language of code and "Terminal window", both before the code
        "div[class*=language-] > .lang, figcaption > .sr-only",
        # numbers of lines, buttons, and Doxygen's sign after headings
        ".linenos, .lineno, .copybtn, span.permalink",
    )
)
ALTERNATE = "a[hreflang][rel~=alternate i]"  # a link to the page in another language
LABEL_CHARACTERS = 40  # characters beside the links of a list of languages, such as "Available Languages:"
SEPARATOR_CHARACTERS = 5  # characters between two of its links, such as " | "
LIST_CLASS = re.compile(  # classes of html, in Docusaurus
    r"(?<!\S)(blog-list-page|blog-tags-(post-)?list-page|blog-authors-(list|posts)-page|docs-tags?-(doc-)?list-page)(?!\S)"
)
LIST_ELEMENTS = ", ".join(
    (
        "[class*=generatedIndexPage]",  # a category of Docusaurus
        ".md-post--excerpt, h2 > .md-tag",  # a blog and the tags of Material
        ".genindex-jumpbox, .modindex-jumpbox, .genindex-section, .domainindex-section",  # Sphinx
    )
)
# a post of a blog: of Docusaurus, of Material, and as schema.org marks it
POST_ELEMENTS = "html.blog-post-page, .md-content--post, [itemtype$=BlogPosting], [typeof=BlogPosting]"
POST_CLASS = re.compile(r"(?<!\S)(blog-post-page|md-content--post)(?!\S)")
PAGE_LANGUAGE = "meta[name='docsearch:language' i][content], meta[name=docusaurus_locale i][content]"
PAGE_VERSION = "meta[name='docsearch:version' i][content], meta[name=docusaurus_version i][content]"
READ_THE_DOCS = re.compile(r"([a-z]{2}(?:[-_][A-Za-z]{2,4})?)/(latest|stable|v?\d[\w.]*)/")


class PageMarks(NamedTuple):
    """What the elements of a page say of it."""

    is_list: bool  # whether it lists other pages, as those of tags, archives and indexes do
    is_post: bool
    has_alternates: bool  # whether it links to itself in other languages


def page_marks(tree: "LexborHTMLParser") -> PageMarks:
    """Return the marks of a page. One look at all of its elements finds all of them."""
    is_list = _is_list_class(tree)
    is_post = has_alternates = False
    for node in tree.css(f"{LIST_ELEMENTS}, {POST_ELEMENTS}, {ALTERNATE}"):
        stated = node.attributes
        types = f"{stated.get('itemtype') or ''} {stated.get('typeof') or ''}"
        if node.tag == "a" and "hreflang" in stated:
            has_alternates = True
        elif "BlogPosting" in types or POST_CLASS.search(stated.get("class") or ""):
            is_post = True
        else:
            is_list = True
    return PageMarks(is_list, is_post, has_alternates)


def _is_list_class(tree: "LexborHTMLParser") -> bool:
    html = tree.css_first("html")
    classes = (html.attributes.get("class") or "") if html is not None else ""
    is_archive = (
        "plugin-blog" in classes and "blog-wrapper" not in classes
    )  # that page of Docusaurus has no class of its own
    return is_archive or bool(LIST_CLASS.search(classes))


def page_columns(tree: "LexborHTMLParser", *, is_post: bool) -> dict[str, object]:
    """Return the language and the version that a page states, and the kind of a post."""
    root = tree.css_first("html")
    stated = {"language": _content(tree, PAGE_LANGUAGE), "version": _content(tree, PAGE_VERSION)}
    if not stated["language"] and root is not None:
        named = root.attributes
        stated["language"] = named.get("lang") or named.get("xml:lang") or ""  # XHTML 1.1 has the second one alone
    if is_post:
        stated["kind"] = POST
    return {name: value.strip() for name, value in stated.items() if value.strip()}


def path_columns(folder: Path, path: str, looks: Looks) -> dict[str, object]:
    """Return the language and the version that the path of a page in a built site has, as Read the Docs and mike do.

    `looks` gets what was looked at.
    """
    if found := READ_THE_DOCS.match(path):
        return {"language": found[1], "version": found[2]}
    first = path.partition("/")[0]
    listed = read_beside(folder / SITE_VERSIONS, looks)
    if listed is not None and first in _versions_of_mike(listed):
        return {"version": first}
    return {}


@cache
def _versions_of_mike(listed: bytes) -> set[str]:
    try:
        versions = json.loads(listed.decode())
        return {name for each in versions for name in (each["version"], *each.get("aliases", ()))}
    except (ValueError, TypeError, KeyError):  # another program's file
        return set()


def _content(tree: "LexborHTMLParser", selector: str) -> str:
    found = tree.css_first(selector)
    return "" if found is None else found.attributes.get("content") or ""


def remove_chrome(tree: "LexborHTMLParser", *, has_alternates: bool) -> None:
    """Remove what is no text of a page, and let the labels of tabs be captions of their panels."""
    for node in tree.css(CHROME):
        node.decompose()
    for node in _language_lists(tree) if has_alternates else ():
        node.decompose()
    for labels in tree.css("[role=tablist]"):
        _caption(labels, "[role=tab]", "role", "tabpanel")
    for labels in tree.css(".tabbed-labels"):  # Material
        _caption(labels, "label", "class", "tabbed-block")


def _language_lists(tree: "LexborHTMLParser") -> "list[LexborNode]":
    """Return the outermost elements with nothing but links to the page in several languages."""
    found: dict[int, LexborNode] = {}
    for link in tree.css(ALTERNATE):
        place, around = link, link.parent
        while around is not None and around.tag != "body" and _lists_languages(around):
            place, around = around, around.parent
        if place is not link and len(place.css("a")) > 1:
            found[place.mem_id] = place
    return list(found.values())


def _lists_languages(node: "LexborNode") -> bool:
    """Return whether an element has only links to the page in other languages, a link to itself and a label."""
    links = node.css("a")
    beside = len(node.text(strip=True)) - sum(len(link.text(strip=True)) for link in links)
    is_short = beside <= LABEL_CHARACTERS + SEPARATOR_CHARACTERS * len(links)
    return is_short and len(links) - len(node.css(ALTERNATE)) <= 1


def _caption(labels: "LexborNode", label: str, attribute: str, panel: str) -> None:
    """Put each label before its panel, instead of the list of labels. A panel has this word in the attribute."""
    texts = [" ".join(node.text().split()) for node in labels.css(label)]
    around = labels.parent
    if around is not None and around.text(strip=True) == labels.text(strip=True):
        around = around.parent  # Starlight puts the list into an element of its own
    first = around.css_first(f"[{attribute}~={panel}]") if around is not None else None
    if first is None or first.parent is None:
        return
    panels = [each for each in first.parent.iter() if panel in (each.attributes.get(attribute) or "").split()]
    if len(panels) == len(texts):
        for node, text in zip(panels, texts, strict=True):
            node.insert_before(text)
        labels.decompose()
