"""What a document is: a page, a changelog or a post, by its path, its marks and its headings."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch.indexing.documents.html import read_html_text
from semsearch.indexing.documents.kinds import kind_of
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import DocumentOptions, Reading, read_document

PATHS = {
    "guide/install.md": "page",
    "CHANGELOG.md": "changelog",
    "docs/release-notes/index.html": "changelog",
    "whatsnew/3.12.html": "changelog",
    "what's-new.md": "changelog",
    "release_notes.md": "changelog",
    "blog/2024/05/02/hatch-v1100/index.html": "post",
    "de/blog/a.md": "post",
    "_posts/2024-05-02-a.md": "post",
    "announce/release-8.0.html": "post",
    "blog.md": "page",
    "guide/blogging/a.md": "page",
    "api/changes.html": "page",
    "history.md": "page",
    "news/index.html": "page",
    "changelogs-of-others.md": "page",
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_says_what_a_document_is(path: str) -> None:
    assert kind_of(path, "Title", []) == PATHS[path]


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        *(("Changelog", "changelog"), ("Change log of it", "changelog"), ("What\u2019s new in 2", "changelog")),
        *(("Release notes", "changelog"), ("Release 8.1.3 (2024)", "changelog"), ("Version v1.2", "changelog")),
        *(("How to write a changelog", "page"), ("Releases", "page"), ("Version control", "page")),
        *(("Changelogs", "page"), ("Release 8", "page")),
    ],
)
def test_a_title_says_what_a_document_is(title: str, kind: str) -> None:
    assert kind_of("a.md", title, []) == kind


VERSIONS = [
    *("1.24.1 - 2024-04-18", "v2.0", "pytest 8.3.0 (2024-07-20)", "[1.0.0] - 2024-01-01", "2022-12-28 (3.40.1)"),
    *("April 18, 2024", "18 April 2024", "Hatch v1.9.0rc1", "Release 8.1.3, released 2024", "1.0.0 \u2014 first"),
    *("[2.0]", "2024/05/02", "Version 1.2"),
]
OTHERS = [
    "2.1. Paths",
    "2.1 Paths",
    "Python",
    "1. Paths",
    "HTTP 404",
    "May 5",
    "Use 1.0 of it",
    "3.",
    "2024",
    "2.1. - a",
]


@pytest.mark.parametrize("heading", [*VERSIONS, *OTHERS])
def test_headings_that_are_versions_or_dates_make_a_changelog(heading: str) -> None:
    kind = "changelog" if heading in VERSIONS else "page"
    assert kind_of("a.md", "A", [("A", heading, "Fixed"), ("A", f"{heading}"), *_levels(3, heading)]) == kind


def _levels(number: int, heading: str) -> list[tuple[str, ...]]:
    return [("A", f"part {place}", heading) for place in range(number)]


@pytest.mark.parametrize(
    ("path", "versions", "others", "kind"),
    [
        *(("a.md", 3, 2, "changelog"), ("a.md", 3, 3, "page"), ("a.md", 2, 0, "page"), ("a.md", 0, 0, "page")),
        *(("changes.md", 1, 0, "changelog"), ("changes/b.md", 1, 0, "changelog"), ("history.md", 1, 1, "page")),
        ("news.md", 0, 5, "page"),
    ],
)
def test_so_many_headings_of_a_level_must_be_versions(path: str, versions: int, others: int, kind: str) -> None:
    found = [("A", f"1.{number}.0") for number in range(versions)]
    found += [("A", f"other {number}") for number in range(others)]
    assert kind_of(path, "A", [*found, *found, ("A",)]) == kind


@pytest.mark.parametrize(
    ("html", "kind"),
    [
        ('<html class="blog-wrapper blog-post-page plugin-blog"><main>x', "post"),
        ('<div class="md-content md-content--post"><article>x', "post"),
        ('<article itemscope itemtype="https://schema.org/BlogPosting">x', "post"),
        ('<article itemtype="https://schema.org/TechArticle">x', None),
    ],
)
def test_the_html_of_a_post_says_so(html: str, kind: str | None) -> None:
    assert read_html_text(html, Path("a.html")).fields.get("kind") == kind


def test_passages_have_the_kind_of_their_document_or_that_of_its_front_matter(
    tmp_path: Path, make_splitter: Callable[..., Splitter]
) -> None:
    pages = {
        "a.md": "# A\n\ntext",
        "changes.md": "# Changes\n\n## 1.0.0\n\ntext",
        "blog/a.md": "---\nkind: story\n---\ntext",
        "b.html": '<div class="md-content--post">text</div>',
    }
    options = DocumentOptions("", "github", (), (), ignore=True, follow_symlinks=False, drafts=False, strict=False)
    reading = Reading(make_splitter(40), options)
    found = {}
    for name, content in pages.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        rows = read_document(tmp_path, reading, tmp_path / name).rows
        found[name] = {json.loads(row.metadata)["kind"] for row in rows}
    assert found == {"a.md": {"page"}, "changes.md": {"changelog"}, "blog/a.md": {"story"}, "b.html": {"post"}}
