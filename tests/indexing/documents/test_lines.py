"""The lines of a passage: the file is opened, and has its words there."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.passages import NO_LINES, Lines
from semsearch.indexing.documents.lines import FileLines, MarkedLines
from semsearch.indexing.documents.markup import Edit, EditedText
from semsearch.indexing.documents.passages import DocumentPassage, Splitter, divide
from semsearch.indexing.documents.reading import READERS, format_as_read
from tests.indexing.documents.files import ReadPassages, paragraph, write_docx, write_pdf

WORD = re.compile(r"\w+")
FRONT_MATTER = "---\ntitle: T\nlines: 99\n---\n"
MARKDOWN = """\
# One heading

Alpha beta
gamma *delta
epsilon* zeta.

Setext heading
--------------

* item eta
  theta

  * nested iota
    kappa

    ```python
    def lambda_(mu):
    \treturn nu
    ```

1. first xi
2. second omicron

| left | right |
| ---- | ----- |
| pi   | rho   |
| sigma | tau  |

<div align="center">
<b>upsilon</b>

phi

</div>

<!-- hidden
words -->

> quoted chi
> psi

## Heading alone

## Last heading

\tcode omega
\tend

term
: its definition

[^1]: A footnote at the end.
"""
RST = """\
:orphan:

.. _label-of-alpha:

Alpha beta
==========

Gamma ``delta
epsilon`` and `zeta <https://example.com/a-long-address>`_
eta.

.. include:: other.rst

.. note:: Theta iota
   kappa.

* lambda
  mu

* nu

=========
Overlined
=========

.. code-block:: python
   :linenos:

   def xi():
       return {
           'omicron': 1,
       }

Pi::

   rho

     sigma

.. function:: tau(a,
              b)

   Upsilon phi.

   :param a: the chi

+-------+------+
| psi   | one  |
| two   |      |
+-------+------+
| three | four |
+-------+------+

.. csv-table::
   :header: five, six

   "seven", "eight"
   "nine", "ten \\*"

.. versionchanged:: 3.5
   Eleven *twelve*
   thirteen.
"""
PLAIN = "Alpha\tbeta\ngamma.\n\n\nDelta\x0c\nepsilon\r zeta\n \n\u2028eta theta\n"


def check(path: Path, found: Sequence[DocumentPassage], generated: Sequence[str] = ()) -> None:
    """Compare passages with the lines of their file: the first line has the first word, and the last the last one.

    generated are words that no line has.
    """
    content = path.read_bytes().decode("utf-8-sig").split("\n")
    for each in found:
        lines = content[each.lines.first - 1 : each.lines.last]
        words = [word for word in WORD.findall(each.text) if word not in generated]
        assert lines, each
        ends = (0, each.text.removeprefix("- ").split()[0], words[:1]), (-1, each.text.split()[-1], words[-1:])
        for place, shown, word in ends:
            if shown not in generated:
                assert (word[0] if WORD.search(shown) else shown) in lines[place], each
        assert [word for word in words if word not in "\n".join(lines)] == [], each


@pytest.mark.parametrize("tokens", [3, 9, 400])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("begin", ["", FRONT_MATTER, "\ufeff" + FRONT_MATTER, "\ufeff"], ids=repr)
@pytest.mark.parametrize(
    ("suffix", "content", "anchors"),
    [
        (".md", MARKDOWN, "github"),
        (".md", MARKDOWN, "mkdocs"),
        (".md", MARKDOWN, "docusaurus"),
        (
            ".mdx",
            MARKDOWN.replace("<!-- hidden\nwords -->", "{/* hidden\nwords */}\n\nexport const a = 1"),
            "docusaurus",
        ),
        (".rst", RST, "github"),
        (".txt", PLAIN, "github"),
    ],
    ids=["Markdown", "MkDocs", "Docusaurus", "MDX", "rst", "text"],
)
def test_a_passage_is_at_its_lines_in_the_file(
    suffix: str,
    content: str,
    anchors: str,
    begin: str,
    line_end: str,
    tokens: int,
    passages: ReadPassages,
    tmp_path: Path,
) -> None:
    if suffix in (".rst", ".txt"):
        begin = begin.removesuffix(FRONT_MATTER)
    text = (begin + content).replace("\n", line_end)
    found = passages(text, tokens, suffix, anchors)
    assert found
    generated = ["Note", "|"] + (["1", "2"] if suffix != ".rst" else [])  # numbers of lists
    check(tmp_path / f"page{suffix}", found, generated)


def test_lines_of_a_passage_are_as_many_as_its_text_has(passages: ReadPassages) -> None:
    found = passages("a\n\n# H\n\nb *c\nd*\n\n```\ne\n\nf\n```\n\ng <!-- x -->\n", 400)
    assert [(each.text, each.lines) for each in found] == [
        ("a", Lines(1, 1)),
        ("b c d\n\ne\n\nf\n\ng", Lines(5, 14)),
    ]


def test_blank_lines_between_tags_and_words_are_not_those_of_a_passage(passages: ReadPassages) -> None:
    (found,) = passages("<p>\nword\n<b>\n\tmore\n</b>\n</p>\n", 400)
    assert (found.text.split(), found.lines) == (["word", "more"], Lines(2, 4))


def test_lines_of_rst_after_an_address_of_several_lines(passages: ReadPassages) -> None:
    found = passages("a `link\n<https://example.com/long\n/and/longer>`_ b\nc d e f.\n", 4, ".rst")
    assert [(each.text, each.lines) for each in found] == [("a link b c", Lines(1, 4)), ("d e f.", Lines(4, 4))]


def test_a_described_name_of_rst_is_at_its_line_although_the_text_before_has_it_too(passages: ReadPassages) -> None:
    found = passages("The name is tau(a).\n\n.. function:: tau(a)\n", 400, ".rst")
    assert [(each.text, each.lines) for each in found] == [
        ("The name is tau(a).", Lines(1, 1)),
        ("tau(a)", Lines(3, 3)),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [1]),
        ("a\n", [1, 1]),
        ("\na", [1, 2]),
        ("a\nb", [1, 1, 2]),
        ("a\r\nb", [1, 1, 1, 2]),
        ("a\rb", [1, 1, 1]),
        ("\n\n\n", [1, 2, 3]),
        ("\x0c\v\u2028\x85\x1c", [1, 1, 1, 1, 1]),
    ],
)
def test_a_line_ends_with_a_line_feed_alone(text: str, expected: list[int]) -> None:
    assert [FileLines(text).of(place, place + 1) for place in range(len(text))] == [Lines(n, n) for n in expected]
    assert FileLines(text).of(0, len(text)) == Lines(1, expected[-1])


def test_marked_lines_are_those_from_the_mark_before_a_place() -> None:
    lines = MarkedLines([3, 5, 9], [7, 8, 6])
    assert [lines.of(start, end) for start, end in ((0, 3), (0, 4), (3, 5), (4, 6), (5, 9), (6, 10), (3, 99))] == [
        None,
        Lines(7, 7),
        Lines(7, 7),
        Lines(7, 8),
        Lines(8, 8),
        Lines(6, 8),
        Lines(6, 8),
    ]
    assert MarkedLines([], []).of(0, 1) is None


def test_a_passage_with_the_text_of_a_partial_has_no_lines(
    tmp_path: Path, make_splitter: Callable[..., Splitter]
) -> None:
    (tmp_path / "_part.mdx").write_text("## Part\n\ninner\n\n## Other\n\nmore\n\nlines\n")
    page = tmp_path / "a.mdx"
    page.write_text(
        "import P from './_part.mdx'\n\none\n\n## Use\n\ntwo\n\n<P />\n\nthree\n\n## End\n\nfour\n<b>\nfive</b>\n"
    )
    found = divide(READERS[format_as_read(page, {})](page, "docusaurus"), make_splitter(400))
    assert [(each.text, each.lines) for each in found] == [
        ("one", Lines(3, 3)),
        ("two", Lines(7, 7)),
        ("inner", NO_LINES),
        ("more\n\nlines\n\nthree", NO_LINES),
        ("four\n\nfive", Lines(15, 17)),
    ]


def test_the_label_of_a_tag_is_in_all_lines_of_the_tag(passages: ReadPassages) -> None:
    found = passages("a\n\n<Card\n\ttitle='The label'\n/>\n\n# H\n\nb\n", 400, ".mdx", "docusaurus")
    assert [(each.text.split(), each.lines) for each in found] == [
        (["a", "The", "label"], Lines(1, 5)),
        (["b"], Lines(9, 9)),
    ]


CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "source": ["# Title\n", "\n", "Some *text*\n", "of two."]},
    {"cell_type": "raw", "source": "raw"},
    {
        "cell_type": "code",
        "source": "\na = 1\nprint(a)\n\n",
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["out\n", "put\n"]}],
    },
    {"cell_type": "code", "source": "", "outputs": []},
    {"cell_type": "markdown", "source": "## Result\r\n\r\nDone."},
    {"cell_type": "markdown", "source": "Then."},
]


def test_a_notebook_states_cells_and_the_lines_in_them(passages: ReadPassages) -> None:
    content = json.dumps({"cells": CELLS, "metadata": {}, "nbformat": 4})
    assert [(each.text, each.lines) for each in passages(content, 400, ".ipynb")] == [
        ("Some text of two.\n\n\na = 1\nprint(a)\n\nout\nput", Lines(3, 3, 1, 3)),
        ("Done.\n\nThen.", Lines(3, 1, 5, 6)),
    ]
    assert [(each.text, each.lines) for each in passages(content, 7, ".ipynb")] == [
        ("Some text of two.", Lines(3, 4, 1, 1)),
        ("a = 1\nprint(a)", Lines(2, 3, 3, 3)),
        ("out\nput", Lines(3, 3, 3, 3)),
        ("Done.\n\nThen.", Lines(3, 1, 5, 6)),
    ]


def test_other_formats_have_no_lines(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    (tmp_path / "a.html").write_text("<h1>A</h1>\n<p>words</p>")
    write_docx(tmp_path / "a.docx", paragraph("words"))
    write_pdf(tmp_path / "a.pdf", [["words"]])
    for path in sorted(tmp_path.iterdir()):
        found = list(divide(READERS[format_as_read(path, {})](path, "github"), make_splitter(400)))
        assert [each.lines for each in found] == [NO_LINES]


def test_a_file_of_rst_with_the_characters_of_marks_has_no_lines_and_keeps_its_text(passages: ReadPassages) -> None:
    found = passages("a \ue0027\ue003b\n\nc\n", 400, ".rst")
    assert [(each.text, each.lines) for each in found] == [("a \ue0027\ue003b\n\nc", NO_LINES)]


@pytest.mark.parametrize("text", ["a\x0cb\n\nc\x1cd\n\ne", "a\x85b\n\nc\n\ne", "\ta\n\n\tc\n\ne\n"])
def test_lines_of_rst_count_line_feeds_although_docutils_counts_others(text: str, passages: ReadPassages) -> None:
    found = passages(text, 400, ".rst")
    assert [each.lines for each in found] == [Lines(1, 5)]


EDITED = EditedText("0123456789", [Edit(2, 4, "abc"), Edit(6, 6, "+"), Edit(8, 9)])  # 01abc45+679


@pytest.mark.parametrize(
    ("start", "end", "origins", "has_edits"),
    [
        (0, 2, (0, 2), False),
        (1, 3, (1, 4), True),
        (2, 3, (2, 4), True),
        (4, 6, (2, 5), True),
        (5, 7, (4, 6), False),
        (6, 8, (5, 6), True),
        (8, 10, (6, 8), False),
        (9, 11, (7, 10), True),
        (10, 11, (9, 10), False),
    ],
)
def test_a_range_of_an_edited_text_is_in_the_original(
    start: int, end: int, origins: tuple[int, int], has_edits: bool
) -> None:
    assert EDITED.text == "01abc45+679"
    assert EDITED.origins(start, end) == origins
    assert EDITED.has_edits(start, end) == has_edits
