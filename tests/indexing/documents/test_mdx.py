"""MDX: what is text in it, and the pages that Docusaurus makes of files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch.indexing.documents.docusaurus import page_of
from semsearch.indexing.documents.markdown import read_mdx
from semsearch.indexing.documents.markup import EditedText
from semsearch.indexing.documents.mdx import LONGEST_STATEMENT, MOST_PARTIALS, MOST_UNCLOSED, find_mdx_edits
from semsearch.indexing.documents.passages import Splitter, divide
from tests.indexing.documents.files import ReadPassages

PAGE = """\
---
title: A page
---
import Tabs from '@theme/Tabs';
import {a,
  b} from "./x";
export const data = {

  key: [1, 2],
};



## Own {#own}

Text with {/* a secret */} <Badge kind="new">new</Badge> `<code> {x}` {'a string'} {props.value}.

<Tabs groupId="os" values={[{label: 'L', value: 'v'}]}>
  <TabItem value="deb" label="Debian">

    Run *this*:

    ```bash
    apt install {name} <x>
    ```

  </TabItem>
  <TabItem value="rpm" label="Fedora">Inside.</TabItem>
</Tabs>

:::tip Title

A tip.

:::

<img src={logo} alt="The logo" />

- item

    still the item

## B {/* #second */}

1 < 2, and {not closed
"""


def test_text_in_elements_stays_with_its_place_and_javascript_leaves(passages: ReadPassages) -> None:
    expected = (
        "Text with new <code> {x} a string .\n\nDebian\n\nRun this:\n\napt install {name} <x>\n\nFedora\n\nInside."
        "\n\nTitle\n\nA tip.\n\nThe logo\n\n- item\n\nstill the item"
    )
    own, second = passages(PAGE, 400, ".mdx", "docusaurus")
    assert (own.anchor, own.text) == ("own", expected)
    assert (second.anchor, second.text) == ("second", "1 < 2, and {not closed")
    assert PAGE[second.start : second.end] == second.text


def test_an_address_and_a_comparison_are_no_tags(passages: ReadPassages) -> None:
    (found,) = passages("See <https://a.b/c> for more.\n\na<b and\n\nIt is c>d ok", suffix=".mdx")
    assert found.text == "See https://a.b/c for more.\n\na<b and\n\nIt is c>d ok"


def test_a_blank_beside_an_icon_is_a_part_of_an_id(passages: ReadPassages) -> None:
    page = '## <Icon name="x" /> One two\n\na\n\n## Three <Badge>new</Badge>\n\nb\n\n## Four <Icon />\n\nc'
    found = [(each.anchor, each.text) for each in passages(page, suffix=".mdx", anchors="docusaurus")]
    assert found == [("-one-two", "a"), ("three-new", "b"), ("four-", "c")]


def test_a_partial_stands_where_it_is_used(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "secret.mdx").write_text("secret")
    (tmp_path / "site" / "_inner.mdx").write_text("inner")
    (tmp_path / "site" / "_part.mdx").write_text("---\nx: 1\n---\nimport I from './_inner.mdx'\n\n## Part\n\n<I />\n")
    page = tmp_path / "site" / "a.mdx"
    page.write_text("import P from './_part.mdx'\nimport S from '../secret.mdx'\n\na\n\n<P />\n\n<S />\n")
    found = divide(read_mdx(page, "docusaurus"), make_splitter(400))
    assert [(each.anchor, each.text) for each in found] == [("", "a"), ("part", "inner")]


def test_a_partial_that_imports_itself_stands_there_some_times(tmp_path: Path) -> None:
    page = tmp_path / "a.mdx"
    page.write_text("import A from './a.mdx'\n\nword\n\n<A />\n")
    (part,) = read_mdx(page, "docusaurus").parts
    assert part.text.count("word") == 1 + MOST_PARTIALS


@pytest.mark.parametrize("piece", ["{", "<a", "import ", "export const a = {", "`", "<A>", "{`"])
def test_broken_mdx_keeps_its_text(piece: str, passages: ReadPassages) -> None:
    first, *_ = passages(f"word\n\n{piece * 5_000}", 400, ".mdx")
    assert first.text.startswith("word")


MARKDOWN_OF = {  # what stays of a piece of MDX
    "```js\n<A> {x}\n": "```js\n<A> {x}\n",
    "```": "```",
    "````\n```\n<A>\n````\n<B>x</B>": "````\n```\n<A>\n````\nx",
    "a ` b <B>c</B>": "a ` b c",
    "a ` <B>\n\n` {x}b": "a ` \n\n` b",
    "a `` ` {x} `` {y}": "a `` ` {x} `` ",
    "a\n\nexport const b = 1": "a\n\n",
    "a\n\nexport const b = [\n1": "a\n\nexport const b = [\n1",
    "export const a = [\n\n1];\n\n{x}c": "\n\nc",
    "export const a = 1)\n\nb": "\n\nb",
    "import{a} from 'b'\n\nimport'c'\n\nd": "\n\n\n\nd",
    "a {f({b: '}'})} {/* c */}{/* #d */}{'e'}{''} f": "a  {#d}e f",
    'a <b c\n\n> d <E f={1 > 0} g=">">h</E>': "a <b c\n\n> d h",
    "\\<a\\{b": "\\<a\\{b",
    "<Tab label='A' title=\"B\">c</Tab><Tab title=''>d</Tab>": "A\n\ncd",
    "<img alt='a'/><img alt=''/><p title='b'>c</p>": "a c ",
    "<b>c</b><p>d</p><>e</><br/>f": "c d e f",
    "#  <I/> a\n# <I/>a\n# b <I/>\nc\n# d <I/>": "#  &#32;a\n# a\n# b&#32;\nc\n# d&#32;",
    "# a <I/> b\nx # <I/> c\n    # <I/> d": "# a  b\nx #  c\n    #  d",
    "<div>\n    one\n      two\n  three\n\n  </div>\n  four": " \none\n  two\nthree\n\n \n  four",
    "<A>\n  <B>\n      a\n  </B>\n    b\n</A>\n  c": "\n\na\n\n  b\n\n  c",
    "<A>b\n  c\n</A>": "b\nc\n",
    "<A>\n  b\n    </A>\nc": "\nb\n\nc",
    "\n# <I/> a": "\n# &#32;a",
    "<IMG>\n  a\n</a>\n  b\n<A/>\n  c": "\n  a\n\n  b\n\n  c",
}


@pytest.mark.parametrize("word", ["important", "imports", "exporting", "exported to"])
def test_a_word_that_begins_like_a_statement_is_text(word: str) -> None:
    assert not list(find_mdx_edits(f"{word} words\n\nmore"))


@pytest.mark.parametrize("mdx", MARKDOWN_OF)
def test_what_stays_of_mdx_is_markdown(mdx: str) -> None:
    assert EditedText(mdx, find_mdx_edits(mdx)).text == MARKDOWN_OF[mdx]


@pytest.mark.parametrize(("begin", "end", "more"), [("export const a = ", "", -1), ("{", "}", 1), ("<A", ">", 1)])
def test_what_is_too_long_was_not_closed(begin: str, end: str, more: int) -> None:
    longest = "word\n\n" + begin + "x" * (LONGEST_STATEMENT + more - len(begin + end))
    assert EditedText(longest + end, find_mdx_edits(longest + end)).text == "word\n\n"
    assert not list(find_mdx_edits(f"{longest}x{end}"))


def test_an_end_is_looked_for_until_there_were_many_without_one() -> None:
    for unclosed, stays in ((MOST_UNCLOSED - 1, False), (MOST_UNCLOSED, True)):
        text = "{ " * unclosed + "\n\n<A>a"
        assert EditedText(text, find_mdx_edits(text)).text.endswith("<A>a") == stays


def test_text_after_a_tag_without_content_is_no_code_by_indentation(passages: ReadPassages) -> None:
    (found,) = passages("<div>\n  <p>\n      one\n      <br/>\n\n      two *three*\n  </p>\n</div>\n", 400, ".mdx")
    assert found.text.endswith("two three")


PAGES: dict[str, tuple[dict[str, object], str, str, str]] = {
    "docs/intro.md": ({}, "docs/next/intro", "", "current"),
    "docs/01-guide/02_setup.mdx": ({}, "docs/next/guide/setup", "", "current"),
    "docs/guide/index.md": ({}, "docs/next/guide/", "", "current"),
    "docs/guide/guide.md": ({}, "docs/next/guide/", "", "current"),
    "docs/1.2-notes.md": ({}, "docs/next/1.2-notes", "", "current"),
    "docs/guide/Readme.md": ({}, "docs/next/guide/", "", "current"),
    "docs/guide/a/guide.md": ({}, "docs/next/guide/a/guide", "", "current"),
    "docs/a/1.md": ({"slug": 5, "id": 6}, "docs/next/a/1", "", "current"),
    "docs/a/2.md": ({"slug": ""}, "docs/next/a/2", "", "current"),
    "blog/a/readme.md": ({"slug": 5}, "blog/a", "", ""),
    "docs/a/b.md": ({"slug": "/c"}, "docs/next/c", "", "current"),
    "docs/a/c.md": ({"slug": "d"}, "docs/next/a/d", "", "current"),
    "docs/a/d.md": ({"id": "e"}, "docs/next/a/e", "", "current"),
    "versioned_docs/version-2.0/a.md": ({}, "docs/a", "", "2.0"),
    "versioned_docs/version-1.0/a.md": ({}, "docs/1.0/a", "", "1.0"),
    "i18n/de/docusaurus-plugin-content-docs/current/a.md": ({}, "de/docs/next/a", "de", "current"),
    "i18n/de/docusaurus-plugin-content-docs/version-1.0/a.md": ({}, "de/docs/1.0/a", "de", "1.0"),
    "i18n/de/docusaurus-plugin-content-docs/a.md": ({}, "de/docs/a", "de", ""),
    "versioned_docs/a.md": ({}, "versioned_docs/a", "", ""),
    "blog/2026-01-02-news.md": ({}, "blog/2026/01/02/news", "", ""),
    "blog/2026-01-02-news/index.mdx": ({"slug": "news"}, "blog/news", "", ""),
    "docs/2024/1.md": ({}, "docs/next/2024/1", "", "current"),
    "i18n/en/docusaurus-plugin-content-docs/current/a.md": ({}, "docs/next/a", "en", "current"),
    "community/a.md": ({}, "community/a", "", ""),
    "about.md": ({}, "about", "", ""),
    "src/a.md": ({}, "a", "", ""),
    "src/pages/about.mdx": ({}, "about", "", ""),
}


@pytest.mark.parametrize("path", PAGES)
def test_a_file_has_the_page_that_docusaurus_makes(path: str, tmp_path: Path) -> None:
    fields, *expected = PAGES[path]
    (tmp_path / "versions.json").write_text(json.dumps(["2.0", "1.0"]))
    page = page_of(tmp_path, tmp_path / path, fields, {})
    assert [page.path, page.language, page.version] == expected


@pytest.mark.parametrize("listed", ["{", "2", '["2.0"'])
def test_a_site_whose_list_of_versions_is_broken_has_none(listed: str, tmp_path: Path) -> None:
    (tmp_path / "versions.json").write_text(listed)
    pages = [page_of(tmp_path, tmp_path / path, {}, {}) for path in ("docs/a.md", "versioned_docs/version-1.0/a.md")]
    assert [(page.path, page.version) for page in pages] == [("docs/a", ""), ("docs/a", "")]


def test_a_page_of_a_folder_of_the_site_is_relative_to_it(tmp_path: Path) -> None:
    page = page_of(tmp_path, tmp_path / "docs" / "01-a.md", {}, {})
    assert page.address(tmp_path, "https://x.org") == "https://x.org/docs/a"
    assert page.address(tmp_path / "docs", "https://x.org/docs/") == "https://x.org/docs/a"
    assert (page.address(tmp_path / "docs", ""), page.version) == ("a", "")
    deep = page_of(tmp_path, tmp_path / "docs" / "guide" / "ä.md", {}, {})
    assert [deep.address(tmp_path / folder, "") for folder in ("", "docs", "docs/guide", "blog")] == [
        *("docs/guide/%C3%A4", "guide/%C3%A4", "%C3%A4", "docs/guide/%C3%A4")
    ]
    assert deep.address(tmp_path / "docs" / "02-guide", "") == "guide/%C3%A4"
    assert page_of(tmp_path, tmp_path / "src" / "pages" / "index.md", {}, {}).address(tmp_path, "") == "./"
