"""Anchors and addresses against what GitHub, Python-Markdown and docutils make of the same headings."""

import re
from pathlib import Path

import pytest

from export.documents.addresses import Slugs, page_address
from export.documents.document import Heading
from export.documents.markdown import read_markdown

PROJECT = Path(__file__).parents[3]

# made with github-slugger 2.0, with slugify and unique of markdown.extensions.toc, and with docutils.nodes.make_id
ANCHORS = [
    ("github", "Hello World!", "hello-world"),
    ("github", "`code` & more: a/b", "code--more-ab"),
    ("github", "Über uns", "über-uns"),
    ("github", "snake_case - x", "snake_case---x"),
    ("github", "東京", "東京"),
    ("github", "हिन्दी शब्द", "हिन्दी-शब्द"),
    ("github", "x² ½ e\u0301te a‿b Ⅷ", "x--e\u0301te-a‿b-ⅷ"),
    ("github", "日本語。テスト", "日本語テスト"),
    ("mkdocs", "Hello World!", "hello-world"),
    ("mkdocs", "Über   uns -- x", "uber-uns-x"),
    ("mkdocs", "code & more: a/b", "code-more-ab"),
    ("mkdocs", "東京", "_1"),
    ("mkdocs", "x² ½ Straße", "x2-12-strae"),
    ("sphinx", "3. Hello, World!", "hello-world"),
    ("sphinx", "snake_case", "snake-case"),
    ("sphinx", "東京", "id1"),
    ("sphinx", "x² ½ Straße Ærø Łódź", "x2-12-strasze-aero-lodz"),
]


@pytest.mark.parametrize(("style", "heading", "anchor"), ANCHORS)
def test_an_anchor_is_that_of_the_site(style: str, heading: str, anchor: str) -> None:
    assert Slugs(style)(heading) == anchor


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("github", ["a", "a-1", "a-1-1", "a-2"]),
        ("mkdocs", ["a", "a_1", "a-1", "a_2"]),
        ("sphinx", ["a", "id1", "a-1", "id2"]),
    ],
)
def test_repeated_headings_get_numbers(style: str, expected: list[str]) -> None:
    slugs = Slugs(style)
    assert [slugs(heading) for heading in ("A", "A", "A 1", "A")] == expected


def test_mkdocs_takes_the_authors_own_anchor() -> None:
    assert Slugs("mkdocs")("A", "mine") == "mine"


@pytest.mark.parametrize(
    ("path", "base", "style", "address"),
    [
        ("guide/a.md", "https://x.org/docs", "github", "https://x.org/docs/guide/a"),
        ("guide/a.md", "https://x.org/docs/", "mkdocs", "https://x.org/docs/guide/a/"),
        ("guide/a.md", "https://x.org", "sphinx", "https://x.org/guide/a.html"),
        ("guide/index.md", "https://x.org", "mkdocs", "https://x.org/guide/"),
        ("guide/README.md", "https://x.org", "sphinx", "https://x.org/guide/README.html"),
        ("README.md", "https://x.org", "mkdocs", "https://x.org/"),
        ("README.md", "https://github.com/o/r/blob/main", "github", "https://github.com/o/r/blob/main/README.md"),
        ("a/index.html", "https://x.org", "github", "https://x.org/a/"),
        ("a/b.html", "https://x.org", "github", "https://x.org/a/b.html"),
        ("a b.pdf", "https://x.org", "github", "https://x.org/a%20b.pdf"),
        ("guide/a.md", "", "mkdocs", "guide/a/"),
        ("index.md", "", "mkdocs", "./"),
        ("guide/a.md", "", "github", "guide/a.md"),
    ],
)
def test_a_page_has_the_address_of_the_site(path: str, base: str, style: str, address: str) -> None:
    assert page_address(path, base, style) == address


def test_the_links_of_this_project_lead_to_anchors() -> None:
    pages = {page: page.read_text("utf-8") for page in [PROJECT / "README.md", *(PROJECT / "docs").glob("*.md")]}
    anchors = {
        page.resolve(): {block.anchor for part in read_markdown(page, "github").parts for block in part.blocks
                         if isinstance(block, Heading)}
        for page in pages
    }  # fmt: skip
    links = [
        (page, target, anchor)
        for page, text in pages.items()
        for target, anchor in re.findall(r"\]\(([\w/.-]*\.md)?#([^)\s]+)\)", text)
    ]
    assert len(links) > 10
    for page, target, anchor in links:
        assert anchor in anchors[(page.parent / target if target else page).resolve()], (page, target, anchor)
