"""Anchors and addresses against what GitHub, Python-Markdown and docutils make of the same headings."""

import pytest

from semsearch.indexing.documents.addresses import Slugs, page_address

# made with github-slugger 2.0, with slugify and unique of markdown.extensions.toc, and with docutils.nodes.make_id
ANCHORS = [
    ("github", "`code` & more: a/b", "code--more-ab"),
    ("github", "Über uns", "über-uns"),
    ("github", "हिन्दी शब्द", "हिन्दी-शब्द"),
    ("github", "x² ½ e\u0301te a‿b Ⅷ", "x--e\u0301te-a‿b-ⅷ"),
    ("mkdocs", "Über   uns -- x", "uber-uns-x"),
    ("mkdocs", "東京", "_1"),
    ("mkdocs", "x² ½ Straße", "x2-12-strae"),
    ("sphinx", "3. Hello, World!", "hello-world"),
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


@pytest.mark.parametrize(
    ("path", "base", "style", "address"),
    [
        ("guide/a.md", "https://x.org/docs", "github", "https://x.org/docs/guide/a"),
        ("guide/a.md", "https://x.org", "sphinx", "https://x.org/guide/a.html"),
        ("guide/index.md", "https://x.org", "mkdocs", "https://x.org/guide/"),
        ("guide/README.md", "https://x.org", "sphinx", "https://x.org/guide/README.html"),
        ("guide/ReadMe.MD", "https://x.org", "mkdocs", "https://x.org/guide/"),
        ("README.md", "https://github.com/o/r/blob/main", "github", "https://github.com/o/r/blob/main/README.md"),
        ("a/index.html", "https://x.org", "github", "https://x.org/a/"),
        ("guide/a.md", "", "mkdocs", "guide/a/"),
        ("index.md", "", "mkdocs", "./"),
        ("guide/_index.md", "https://x.org", "github", "https://x.org/guide/"),
        ("guide/a.md", "", "github", "guide/a.md"),
        ("guide/a.rst", "https://x.org", "github", "https://x.org/guide/a.html"),
        ("guide/a.rst", "https://github.com/o/r/blob/main", "github", "https://github.com/o/r/blob/main/guide/a.rst"),
        ("guide/a.rst", "", "sphinx", "guide/a.html"),
        ("guide/a.rst", "", "github", "guide/a.rst"),
        ("a b/c.md", "file:///x y/", "mkdocs", "file:///x y/a%20b/c.md"),
    ],
)
def test_a_page_has_the_address_of_the_site(path: str, base: str, style: str, address: str) -> None:
    assert page_address(path, base, style) == address


@pytest.mark.parametrize(
    ("path", "base", "canonical", "address"),
    [
        ("guide/a/index.html", "", "https://x.org/docs/guide/a/", "guide/a/"),
        ("guide/a/index.html", "", "https://x.org/docs/guide/a", "guide/a"),
        ("guide/a.html", "", "https://x.org/guide/a", "guide/a"),
        ("guide/a.html", "https://y.org", "https://x.org/guide/a.html", "https://y.org/guide/a.html"),
        ("1.0/a/index.html", "", "https://x.org/latest/a/", "https://x.org/latest/a/"),
        ("index.html", "", "https://x.org/docs/", "./"),
    ],
)
def test_a_canonical_address_decides_the_form_or_the_page(path: str, base: str, canonical: str, address: str) -> None:
    assert page_address(path, base, "github", canonical) == address
