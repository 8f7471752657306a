"""Markdown: sections, titles, anchors, and what stays together."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from semsearch.indexing.documents.dialects import Code, find_comments, find_edits
from semsearch.indexing.documents.document import Heading
from semsearch.indexing.documents.front_matter import read_front_matter
from semsearch.indexing.documents.markdown import read_markdown, read_markdown_text
from semsearch.indexing.documents.markup import Edit, EditedText
from tests.indexing.documents.files import ReadPassages

WORDS = "one two three four five six seven eight nine ten eleven twelve"

CASES = {
    "text before the first heading": (f"{WORDS}\n\n# A\n\n{WORDS}", [((), "", WORDS), (("A",), "a", WORDS)]),
    "nested headings": (
        "# A\na\n## B *c* `d`\nb\n### E\ne\n## F\nf",
        [(("A",), "a", "a"), (("A", "B c d"), "b-c-d", "b"), (("A", "B c d", "E"), "e", "e"), (("A", "F"), "f", "f")],
    ),
    "a skipped level": (f"### A\n{WORDS}\n# B\n{WORDS}", [(("A",), "a", WORDS), (("B",), "b", WORDS)]),
    "underlined headings": (f"A\n===\n{WORDS}\n\nB\n---\n{WORDS}", [(("A",), "a", WORDS), (("A", "B"), "b", WORDS)]),
    "a repeated heading": (f"# A\n{WORDS}\n# A\n{WORDS}", [(("A",), "a", WORDS), (("A",), "a-1", WORDS)]),
    "a heading in code is none": (f"# A\n```\n# B {WORDS}\n```", [(("A",), "a", f"# B {WORDS}")]),
    "Windows line ends": (f"# A\r\n\r\n{WORDS}\r\n{WORDS}\r\n", [(("A",), "a", f"{WORDS} {WORDS}")]),
    "headings without text": (
        f"# A\n\n## B\n\n{WORDS}\n\n## C\n",
        [(("A",), "a", "A"), (("A", "B"), "b", WORDS), (("A", "C"), "c", "C")],
    ),
    "comments alone": (f"# A\n\n<!-- b -->\n\n{WORDS}\n\n---\n", [(("A",), "a", WORDS)]),
}


@pytest.mark.parametrize("case", CASES)
def test_sections_become_passages(case: str, passages: ReadPassages) -> None:
    text, expected = CASES[case]
    assert [(each.headings, each.anchor, each.text) for each in passages(text)] == expected


@pytest.mark.parametrize(("anchors", "anchor"), [("github", "a-b--mine-"), ("mkdocs", "mine"), ("sphinx", "a-b-mine")])
def test_an_own_anchor_is_no_heading(anchors: str, anchor: str, passages: ReadPassages) -> None:
    (found,) = passages(f"# A b {{ #mine }}\n\n{WORDS}", anchors=anchors)
    assert (found.headings, found.anchor) == (("A b",), anchor)
    (found,) = passages(f"# A b {{: #mine }}\n\n{WORDS}{{: #other }}", anchors=anchors)
    assert (found.headings, found.anchor, found.text) == (("A b",), anchor, WORDS)
    (found,) = passages(f"# A b {{: .x }}\n\n{WORDS}", anchors=anchors)
    assert (found.headings, found.anchor) == (("A b",), "a-b")


@pytest.mark.parametrize("own", ["{#mine}", "{ #mine }", "{: #mine }", "{#mine .x}", "{ #mine }  "])
@pytest.mark.parametrize("heading", ["A *b* `c`", "A &amp; b", "{a} b", "A<br>b<br>*c*"])
def test_a_heading_that_is_a_passage_alone_has_no_own_anchor(own: str, heading: str, passages: ReadPassages) -> None:
    for text in (f"# {heading} {own}\n\n## D\n\n{WORDS}", f"{heading} {own}\n===\n\n## D\n\n{WORDS}"):
        first, last = passages(text)
        shown = heading.translate(str.maketrans("", "", "*`")).replace("amp;", "").replace("<br>", "\n")
        assert (first.text, first.headings) == (shown, (shown.replace("\n", " "),))
        assert text[first.start : first.end].startswith(("# ", heading))
        assert (last.headings, last.text) == ((*first.headings, "D"), WORDS)


@pytest.mark.parametrize("anchors", ["github", "mkdocs", "sphinx"])
def test_an_anchor_in_code_is_text_of_its_heading(anchors: str, passages: ReadPassages) -> None:
    (found,) = passages("# Use `{#mine}`", anchors=anchors)
    assert (found.headings, found.text, found.anchor) == (("Use {#mine}",), "Use {#mine}", "use-mine")


def test_a_long_heading_that_is_passages_alone_has_no_own_anchor(passages: ReadPassages) -> None:
    found = passages(f"# {WORDS} {{ #mine }}", tokens=5)
    assert " ".join(each.text for each in found) == WORDS
    assert all(len(each.text.split()) <= 5 for each in found)


def test_paragraphs_share_a_passage_and_code_stays_whole(passages: ReadPassages) -> None:
    code = f"```\n{WORDS}\n\n{WORDS}\n```"
    found = passages(f"# A\n\n{WORDS}\n\n{WORDS}\n\n{code}\n\n{WORDS}", tokens=37)
    assert [each.source for each in found] == [f"{WORDS}\n\n{WORDS}", code, WORDS]


def test_a_long_paragraph_is_divided_at_sentences(passages: ReadPassages) -> None:
    sentences = [f"{WORDS} {number}." for number in range(6)]
    found = passages("# A\n" + " ".join(sentences), tokens=30)
    expected = [" ".join(sentences[place : place + 2]) for place in (0, 2, 4)]
    assert [each.text for each in found] == expected
    for text in (" ".join(sentences) + "\n\n```\n```", f"<div>\n{' '.join(sentences)}\n</div>"):
        assert [each.text for each in passages(text, tokens=30)] == expected
    found = passages(" ".join(sentences) + "\n\nb", tokens=30)
    assert [each.text for each in found] == [*expected[:2], f"{expected[2]}\n\nb"]


def test_a_long_table_is_divided_at_rows_with_its_header(passages: ReadPassages) -> None:
    header = "| name | use |\n| --- | --- |\n"
    rows = [f"| n{row} | one two three four five |" for row in range(9)]
    found = passages(f"# A\n\n{header}" + "\n".join(rows), tokens=40)
    assert [each.table for each in found] == ["", *["name | use"] * (len(found) - 1)]
    assert len(found) > 2
    assert "\n".join(each.source for each in found) == header + "\n".join(rows)


@pytest.mark.parametrize(
    ("front", "title", "fields"),
    [
        ("---\ntitle: A page\ntags: [a, 1]\ndate: 2024-05-31\ndraft: false\n---\n", "A page",
         {"tags": ["a", "1"], "date": "2024-05-31", "draft": False}),
        ("---\r\nnested: {a: 1}\r\nnothing:\r\nrate: .nan\r\n---\r\n", "Head", {}),
        ("+++\ntitle = 'A page'\nweight = 3\n+++\n", "A page", {"weight": 3}),
        ('{\n "title": "A page",\n "tags": ["a"]\n}\n', "A page", {"tags": ["a"]}),
        ("---\n\nno mapping\n\n---\n", "Head", {}),
        ("---\n# nothing\n---\n", "Head", {}),
    ],
)  # fmt: skip
def test_front_matter_becomes_fields(front: str, title: str, fields: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(f"{front}# Head\n\n{WORDS}\n".encode())
    document = read_markdown(tmp_path / "page.md", "github")
    assert (document.title, document.fields) == (title, fields)


def plain(markdown: str, anchors: str = "github") -> str:
    """Return the plain text of Markdown."""
    (part,) = read_markdown_text(markdown, Path("page.md"), anchors).parts
    assert part.markup is not None
    return part.markup.plain(0, len(markdown))


LEAVES = ["a", "b.", "c-d", "é", "x_y", "`e ** f`", "``g ` h``", "\\*i\\*", "2 * 3", "j*k*l", "(m)", "__init__"]
LINKS = ["[n *o*](u)", '![**p** q](u(v) "w")', "[`r`](<s t>)"]
PHRASES = st.recursive(
    st.sampled_from(LEAVES + LINKS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(" ".join),
        st.builds(str.format, st.sampled_from(["**{}**", "*{}*", "_{}_"]), inner),
    ),
    max_leaves=8,
)


@given(PHRASES)
@example("**`bold`**, [a **b**](u_v(w) 'x') ![c](d) and `e ** f` in src/**/*.js")
@example("2 * 3 * 4, ***a** b*, snake_case, __init__, _x_y, \\*d\\* and ``e ` f``")
def test_plain_text_is_what_another_parser_shows(text: str) -> None:
    def shown(tokens: list[Token] | None) -> str:
        return "".join(shown(token.children) if token.children else token.content for token in tokens or [])

    text = f"x {text} x"
    assert plain(text) == shown(MarkdownIt("commonmark").parseInline(text))


PLAIN = {
    "a quotation": ("> # Q\n> text *x", "Q\n\ntext *x"),
    "code": ("a `b`\n\n```py\ndef f(*a):\n    `x`\n```\n*y*", "a b\n\ndef f(*a):\n    `x`\n\ny"),
    "links": ("[t][r], ![alt *a*](u.png) <https://a.b>\n\n[r]: https://c.d", "t, alt a https://a.b"),
    "wiki links": ("[[Page]], [[Page|alias]] and ![[note]]", "Page, alias and note"),
    "a table": ("| **a** | b |\n| --- | :-: |\n| `c\\|d` | e |", "a | b\nc|d | e"),
    "lists": ("a\n\n- b\n  - c\n\n1. d\n2. e", "a\n\n- b\n  - c\n\n1. d\n2. e"),
    "tasks": ("- [ ] a\n- [x] b", "- a\n- b"),
    "line breaks": ("a\nb  \nc\\\nd", "a b\nc\nd"),
    "entities and escapes": ("&amp; \\*a\\* &uuml;", "& *a* ü"),
    "struck text and footnotes": ("~~a~~[^1]\n\n[^1]: b", "a\n\nb"),
    "definitions": ("Term\n: what it is", "Term\nwhat it is"),
    "a comment in a line": ("a <!-- b --> c", "a c"),
    "a comment over a blank line": ("a <!-- b\n\nc --> d", "a d"),
    "comments in code": ("`<!-- a -->` `%%b%%`", "<!-- a --> %%b%%"),
    "comments of Obsidian": ("a %%b%% c\n\n%%\nd\n%%\n\n5%% and 6%%", "a c\n\n5%% and 6%%"),
    "a comment of Obsidian at the begin": ("%%a%% b", "b"),
    "marks of Obsidian": ("==a b== and a == b == c", "a b and a == b == c"),
    "callouts": ("> [!note]- Title\n> text\n\n> [!WARNING]\n> text", "Title text\n\ntext"),
    "directives": (
        ":::tip Title\n\na\n\n:::\n\n::::{note} b\n:::\n\n:::info[*c*]\n\nd\n:::",
        "Title\n\na\n\nb\n\nc\n\nd",
    ),
    "shortcodes": ('{{< tabs "x" >}}\na\n{{< /tabs >}}\n\n[b]({{< ref "c" >}}) {{% d %}}e{{% /d %}}', "a\n\nb e"),
    "tags of Jekyll": ("{% include a.html %}\n\nb{: .c }", "b"),
    "tags of HTML": ("<b>a</b><br>b <kbd>c</kbd> &lt;d", "a\nb c <d"),
    "a block of HTML": (
        '<div align="center"\n  id="x">\n<p>a</p><p>b &amp; c</p><img src="d">\n</div>\n\ne',
        "a\nb & c\n\ne",
    ),
    "blanks between tags of a block": ("<div>\n<b>a</b> <i>b</i>\n</div>", "a b"),
    "a table of HTML": ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a | b\nc"),
    "empty cells": ("| a | b | c |\n| - | - | - |\n| 1 | | |\n| x | 2 | 3 |", "a | b | c\n1\nx | 2 | 3"),
    "braces that are no attributes": ("{:d} and {:>10}", "{:d} and {:>10}"),
    "a tag with a mark in its attribute": ('a <span title="x > y">z</span> b', "a z b"),
    "a heading of HTML": ("<h5>Head</h5>\n\npara", "Head\n\npara"),
    "a heading of two lines": ("A  \nB\n===\n\nc", "A\nB\n\nc"),
    "a text after code": ("```\na  b\n```\n\nc  d", "a  b\n\nc d"),
    "code without text": ("a\n\n```\n```", "a"),
    "a tag that is not closed": ("<div\na", "<div\na"),
    "scripts": ("<script>\nlet a = 1;\n</script>\n\nb", "b"),
}  # fmt: skip


@pytest.mark.parametrize("case", PLAIN)
def test_plain_text_has_no_markup(case: str) -> None:
    markdown, expected = PLAIN[case]
    assert plain(markdown) == expected


MKDOCS = """\
!!! note "Title"

    a *b*

    ??? tip
        c

=== "Tab"

    ```
    d
    ```

e
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n\n/// tip\n\nb\n\n///\n\nc", "a\n\nb\n\nc"),
        ("/// note | Title *x*\n\nb\n///\nc", "Title x\n\nb\n\nc"),
        ("/// note | Title\nb\n///", "Title\n\nb"),
        ("///note|Title\r\n\r\nb\r\n\r\n///\r\nc", "Title\n\nb\n\nc"),
        ("/// details | T\n    open: True\n    type: warning\n\nb\n///", "T\n\nb"),
        ("/// html | div.card#one\n\nb\n///", "b"),
        ("/// tip |\n\nb\n///", "b"),
        ("//// tab | A\n\n/// tip | B\n\nc\n\n///\n\n////\n\n//// tab | D\n\ne\n\n////", "A\n\nB\n\nc\n\nD\n\ne"),
        ("- a\n\n    /// tip\n\n    b\n\n    ///", "- a\n\nb"),
        ("/// tip\n\n```\n/// code\n///\n```\n///", "/// code\n///"),
        ("`/// a`\n\n    /// tip\n    ///", "/// a\n\n/// tip\n///"),  # code
        ("/// tip\n\nb", "/// tip\n\nb"),  # not closed
        ("b\n\n///\n\nc", "b\n\n///\n\nc"),  # not begun
        ("/// tip\n\nb\n\n////", "/// tip\n\nb\n\n////"),  # a last line with more slashes
        ("/// a\n\n//// b\n\n/// c\n\n////\n\n///", "/// c"),  # c ends with b
        ("/// a\n\nb\n\n///\n\n///", "b\n\n///"),
        ("/// a\n\n//// b\n\n///\n\n////", "//// b\n\n////"),
        ("/// two words\n\nb\n\n///", "/// two words\n\nb\n\n///"),
        ("// tip\n\nb\n\n//", "// tip\n\nb\n\n//"),
    ],
)
@pytest.mark.parametrize("anchors", ["github", "mkdocs", "docusaurus"])
def test_blocks_of_pymdown_are_text(text: str, expected: str, anchors: str) -> None:
    assert plain(text, anchors) == expected


def test_admonitions_and_tabs_of_mkdocs_are_text() -> None:
    assert plain(MKDOCS, "mkdocs") == "Title\n\na b\n\nc\n\nTab\n\nd\n\ne"
    (part,) = read_markdown_text(MKDOCS, Path("page.md"), "mkdocs").parts
    first = part.blocks[0]
    assert part.markup is not None
    assert part.markup.read_by_model(first.start, first.end) == 'Title"'


NESTED = """\
!!! note "A"
    b
        c

    ??? tip
        d
      e
   f
===! "T"
    ??? x "Y"
        z
        !!! w
            v

            u
g
"""
UNINDENTED = "A\n\nb\n    c\n\n\nd\n  e\n   f\nT\n\nY\n\nz\n\nv\n\nu\ng\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NESTED, UNINDENTED),
        ('    !!! note "A"\n    b', '    !!! note "A"\n    b'),  # code
        ('!!! note "A"\n        !!! tip "B"\n            c', 'A\n\n    !!! tip "B"\n        c'),
        ("!!! note A B\n    c", "\nc"),
    ],
)
def test_the_content_of_admonitions_is_unindented(text: str, expected: str) -> None:
    code = Code([(0, len(text))] if text.startswith(" ") else [])
    assert EditedText(text, find_edits(text, code, "mkdocs")).text == expected
    windows = text.replace("\n", "\r\n")
    edited = EditedText(windows, find_edits(windows, code, "mkdocs")).text
    assert edited.replace("\r\n", "\n") == expected


COMMENTS = {  # what is left
    "a<!--b-->c<!--d--><!--e": "ac<!--e",
    "<!--a--><!---->b <!--> c -->": "b  c -->",
    "%%a%%b %%c%% d %%e": "%%a%%b  d %%e",
    "%%a%%%%b%% %% {%%c%%} %%%%": "%%a%%%%b%% %% {%%c%%} %%%%",
    "%%a%% b": " b",
    "a %%b%%": "a ",
    "%% a %% b %% c %% d": " b  d",
}


@pytest.mark.parametrize("text", COMMENTS)
def test_a_comment_ends_where_its_end_is(text: str) -> None:
    comments = find_comments(text, Code([]))
    assert EditedText(text, (Edit(*comment) for comment in comments)).text == COMMENTS[text]


def test_no_comment_and_no_mark_begins_in_code() -> None:
    assert [place in Code([(1, 3), (4, 5)]) for place in range(6)] == [False, True, True, False, True, False]
    text = "<!-- <!--a--> %%b %%c%% {{< d >}} ==e== {{< f >}} ==g=="
    code = Code([(0, 4), (14, 16), (24, 39)])
    edits = [*(Edit(*comment) for comment in find_comments(text, code)), *find_edits(text, code, "github")]
    assert EditedText(text, edits).text == "<!--  %%b  {{< d >}} ==e==  g"
    lines = "> [!note] a\n:::tip b\n> [!note]+ c\n>> [!tip] d\n:::tip[*e*]{.f}\n:::\n  ::::{note} g {.h}\n"
    edits = list(find_edits(lines, Code([(0, 14)]), "github"))
    assert EditedText(lines, edits).text == "> [!note] a\n:::tip b\n> c\n>> d\n*e*\n\ng \n"


def test_of_edits_that_overlap_the_first_is_made() -> None:
    edited = EditedText("abcdef", [Edit(4, 5, "EE"), Edit(0, 3, "x"), Edit(2, 5), Edit(0, 3, "y")])
    assert edited.text == "xdEEf"
    assert [edited.origin(place) for place in range(5)] == [0, 3, 4, 5, 5]
    assert [edited.origin_of_end(place) for place in (0, 2, 5)] == [0, 4, 6]
    assert [edited.place(origin) for origin in range(7)] == [0, 1, 1, 1, 2, 4, 5]
    assert [EditedText("abcd", [Edit(1, 3)]).place(origin) for origin in range(5)] == [0, 1, 1, 1, 2]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', ({"a": 1}, 8, "")),
        ('{"a": 1}\nb', ({"a": 1}, 8, "")),
        ('{"a": 1}\r\nb', ({"a": 1}, 8, "")),
        ('{"a": 1} b', ({}, 0, "")),
        ("{a", ({}, 0, "")),
        ("---\na: 1.5\nb: 2026-01-02 03:04:05\nc: .inf\nd: [1.5, [2], .nan, true]\n' ': 1\n---\nb",
         ({"a": 1.5, "b": "2026-01-02T03:04:05", "d": ["1.5", "True"]}, 79, "")),
        ("---\na: ''\n---\nb", ({}, 14, "")),
        ("---\n# a\n---\nb", ({}, 12, "")),
        ("---\n---\nb", ({}, 0, "")),
        ("---\na\n---\nb", ({}, 0, "")),
        ("---\n- a\n---\nb", ({}, 0, "")),
        ("---\na {\n---\nb", ({}, 0, "")),
        ("a", ({}, 0, "")),
    ],
)  # fmt: skip
def test_front_matter_ends_before_the_text(text: str, found: tuple[dict[str, object], int, str]) -> None:
    assert read_front_matter(text) == found


def test_broken_front_matter_is_no_text() -> None:
    fields, begin, problem = read_front_matter("+++\na = \n+++\nb")
    assert (fields, begin, problem.partition(": ")[0]) == ({}, 13, "front matter left out, which is not TOML")


def test_the_model_reads_the_marks_but_no_comments_and_tags(passages: ReadPassages) -> None:
    text = "# A\n\n**a** <!-- b --> <kbd>c</kbd> %%d%% [e](f)\n\n> [!note]\n> g"
    (found,) = passages(text)
    assert (found.source, found.text) == ("**a**  c  [e](f)\n\n> [!note]\n> g", "a c e\n\ng")
    assert text[found.start : found.end] == text.partition("\n\n")[2]
    (found,) = passages("é\n\n<div>\n<p>a</p> b\n</div>")
    assert (found.source, found.text) == ("é\n\n\na b", "é\n\na\nb")


SEPARATED: dict[str, str] = {  # what the model reads
    "one<br>two": "one two",
    "one<br/><br />two": "one two",
    "one <br>two<br> three": "one two three",
    "<p>one</p><p>two</p>": "one two",
    "<div><h2>one</h2>two<div>three</div>four</div>": "one two three four",
    "<table><tr><th>one</th><th>two</th></tr><tr><td>three</td><td>four</td></tr></table>": "one two three four",
    "<ul><li>one</li><li>two</li></ul>": "one two",
    "<dl><dt>one</dt><dd>two</dd></dl>": "one two",
    "<section>one</section><section>two</section>": "one two",
    "<blockquote>one</blockquote>two": "one two",
    "<details><summary>one</summary>two</details>": "one two",
    "one<hr>two": "one two",
    "one<b><br></b>two": "one two",
    "one<i>two</i>three": "onetwothree",
    "<b>one</b><em>two</em><code>three</code><kbd>four</kbd><span class='x'>five</span>": "onetwothreefourfive",
    "x<sup>2</sup> and y<sub>1</sub>": "x2 and y1",
    "<a href='x'>one</a>, two": "one, two",
}


@pytest.mark.parametrize("suffix", [".md", ".mdx", ".ipynb"])
@pytest.mark.parametrize("text", SEPARATED)
def test_tags_between_words_separate_them_for_the_model_as_in_the_plain_text(
    text: str, suffix: str, passages: ReadPassages
) -> None:
    content = text
    if suffix == ".ipynb":
        cell = {"cell_type": "markdown", "source": text, "metadata": {}}
        content = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    (found,) = passages(f"{content}\n", 400, suffix)
    assert " ".join((found.source or found.text).split()) == SEPARATED[text]
    assert found.text.replace("|", " ").split() == SEPARATED[text].split()


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("| a | b |\n|---|---|\n| one<br>two | three |", "| a | b |\n|---|---|\n| one two | three |"),
        ("- one<br>two\n- three", "- one two\n- three"),
        ("> one<br>two", "> one two"),
        ("one<!-- x -->two", "onetwo"),
        ("one<!-- x --><br><!-- y -->two", "one two"),
        ("one<br>\ntwo", "one\ntwo"),
        ("one<BR>two", "one two"),
        ("one<img src='x'>two", "one two"),
        ("`one<br>two`", "`one<br>two`"),
        ("<p>\none\n</p>\n<p>\ntwo\n</p>", "one\n\n\ntwo"),
        ("<br>one<br>", "one"),
    ],
)
def test_one_blank_takes_the_place_of_tags_without_white_space_beside_them(
    text: str, source: str, passages: ReadPassages
) -> None:
    (found,) = passages(text, 400)
    assert (found.source or found.text) == source
    assert text[found.start : found.end] == text


# the plain text, and the blocks as the file has them: a heading with its level, text and anchor, a block with its parts
# after the header of a table
BLOCKS: dict[str, tuple[str, list[str | list[str]]]] = {
    "é <div>\n<p>a</p>\n\nb <br> c<i>d</i> e\n\n<details><summary>S</summary>\n\nin it\n\n</details> after": (
        "é \n\na\n\nb \ncd e\n\nS\n\nin it\n\nafter",
        ["é <div>", "<p>a</p>", "b <br> c<i>d</i> e", "<details><summary>S</summary>", "in it", "</details> after"],
    ),
    "- a\n  - b\n\n    c\n- d\n\n3. e\n4. f\n   1. g\n\n* * *\n- [ ] h\n- [x] i": (
        "- a\n  - b\n\nc\n- d\n\n3. e\n4. f\n  1. g\n\n- h\n- i",
        [["", "- a\n  - b\n\n    c", "- d"], ["", "3. e", "4. f\n   1. g"], ["", "- [ ] h", "- [x] i"]],
    ),
    "| a | b |\n|---|---|\n| 1 | 2 |\n| | 3 |\n\n| c |\n|---|\n": (
        "a | b\n1 | 2\n3\n\nc",
        [["a | b", "| a | b |\n|---|---|", "| 1 | 2 |", "| | 3 |"], "| c |\n|---|"],
    ),
    "```py\ndef f():\n    x\n\ndef g():\n    y\n```\n\n    code\n\n    more\n\n- ```\n  in  list\n  ```\n\n``` \n```": (
        "def f():\n    x\n\ndef g():\n    y\n\ncode\n\nmore\n\n- in  list",
        [
            ["", "```py\ndef f():\n    x", "def g():\n    y\n```"],
            ["", "code\n\n    more"],
            ["", "- ```\n  in  list\n  ```"],
        ],
    ),
    "# A <b>x</b> {#own}\n\n> # Quoted\n> text\n\n## B ##\n\nC\n---\n\n# \n\nd": (
        "A x\n\nQuoted\n\ntext\n\nB\n\nC\n\nd",
        ["1 A x #", "> # Quoted\n> text", "2 B #b", "2 C #c", "1  #", "d"],
    ),
    "## A {#own}\n\n## A\n\n## A {: #z .c }\n\n#### D `e` *f* [g](h) ![i](j)\n\n##### {#k}": (
        "A\n\nA\n\nA\n\nD e f g i",
        ["2 A #own", "2 A #a", "2 A #z", "4 D e f g i #d-e-f-g-i", "5  #k"],
    ),
    "<p>x</p>\n<table><tr><td>a<td>b</table>\n\nText[^1].\n\n[^1]: Note.\n\nTerm\n: def\n: def2\n\nTerm2\n: x": (
        "x\na | b\n\nText.\n\nNote.\nTerm\ndef\ndef2\nTerm2\nx",
        [
            "<p>x</p>\n<table><tr><td>a<td>b</table>",
            "Text[^1].",
            "[^1]: Note.",
            "Term\n: def\n: def2\n\nTerm2\n: x",
        ],
    ),
    "a <!-- x --> b\n<span>c</span>\\\nd  \ne [[wiki|shown]] [[page]] ~~s~~ $m$": (
        "a b c\nd\ne shown page s $m$",
        ["a <!-- x --> b\n<span>c</span>\\\nd  \ne [[wiki|shown]] [[page]] ~~s~~ $m$"],
    ),
    "a | b\n--|--\n1 | 2\n": ("a | b\n1 | 2", [["a | b", "a | b\n--|--", "1 | 2"]]),
    "<!-- a -->\n\n<div></div>\n\n***\n\n![](x)": ("", []),
}


@pytest.mark.parametrize("markdown", BLOCKS)
def test_a_page_has_blocks_and_headings(markdown: str) -> None:
    (part,) = read_markdown_text(markdown, Path("page.md"), "docusaurus").parts
    found: list[str | list[str]] = []
    for each in part.blocks:
        if isinstance(each, Heading):
            assert plain(markdown[each.start : each.end]).startswith(each.text)
            found.append(f"{each.level} {each.text} #{each.anchor}")
        elif each.parts:
            assert (each.start, each.end) == (each.parts[0].start, each.parts[-1].end)
            found.append([each.header, *(markdown[one.start : one.end] for one in each.parts)])
        else:
            found.append(markdown[each.start : each.end])
    assert (plain(markdown, "docusaurus"), found) == BLOCKS[markdown]


FUNCTIONS = [
    "def one(a):\n    b = a\n\n    return b",
    "def two(c):\n    return c",
    "class Three:\n    x = 1\n\n    y = 2",
]


def test_long_code_is_divided_between_functions(passages: ReadPassages) -> None:
    code = "\n\n\n".join(FUNCTIONS)
    found = passages(f"# A\n\n```python\n{code}\n```", tokens=16)
    assert [each.text for each in found] == FUNCTIONS
    (whole,) = passages(f"# A\n\n```python\n{code}\n```", tokens=400)
    assert whole.text == code


UNCLOSED = ["<!-- ", "%% ", "{{< ", "> [!", "::: ", "[[a|", "<b "]


@pytest.mark.parametrize("start", [*(10_000 * each for each in UNCLOSED), "<!-- a -->" * 40, "# a" + " " * 100_000])
def test_no_pattern_takes_longer_than_its_text_is_long(start: str) -> None:  # minutes otherwise
    assert "word" in plain(f"word {start} word")
