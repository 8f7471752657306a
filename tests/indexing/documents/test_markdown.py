"""Markdown: sections, titles, anchors, and what stays together."""

from collections.abc import Callable
from pathlib import Path

import pytest

from semsearch.indexing.documents.markdown import read_markdown
from semsearch.indexing.documents.passages import DocumentPassage, Splitter, divide

WORDS = "one two three four five six seven eight nine ten eleven twelve"  # not small


@pytest.fixture
def passages(make_splitter: Callable[..., Splitter], tmp_path: Path) -> Callable[..., list[DocumentPassage]]:
    def read(text: str, tokens: int = 40, anchors: str = "github") -> list[DocumentPassage]:
        (tmp_path / "page.md").write_bytes(text.encode())
        return list(divide(read_markdown(tmp_path / "page.md", anchors), make_splitter(tokens)))

    return read


CASES = {
    "text before the first heading": (
        f"{WORDS}\n\n# A\n\n{WORDS}",
        [((), "", WORDS), (("A",), "a", WORDS)],
    ),
    "nested headings": (
        f"# A\n{WORDS}\n## B *c* `d`\n{WORDS}\n### E\n{WORDS}\n## F\n{WORDS}",
        [
            (("A",), "a", WORDS),
            (("A", "B c d"), "b-c-d", WORDS),
            (("A", "B c d", "E"), "e", WORDS),
            (("A", "F"), "f", WORDS),
        ],
    ),
    "a skipped level": (f"### A\n{WORDS}\n# B\n{WORDS}", [(("A",), "a", WORDS), (("B",), "b", WORDS)]),
    "underlined headings": (f"A\n===\n{WORDS}\n\nB\n---\n{WORDS}", [(("A",), "a", WORDS), (("A", "B"), "b", WORDS)]),
    "a repeated heading": (f"# A\n{WORDS}\n# A\n{WORDS}", [(("A",), "a", WORDS), (("A",), "a-1", WORDS)]),
    "a heading in code is none": (f"# A\n```\n# B {WORDS}\n```", [(("A",), "a", f"```\n# B {WORDS}\n```")]),
    "a heading in a quotation is none": (f"# A\n> # B\n> {WORDS}", [(("A",), "a", f"> # B\n> {WORDS}")]),
    "Windows line ends": (f"# A\r\n\r\n{WORDS}\r\n{WORDS}\r\n", [(("A",), "a", f"{WORDS}\r\n{WORDS}")]),
    "a section without text": (
        f"# A\n\n## B\n\n{WORDS}\n\n## C\n",
        [(("A", "B"), "b", WORDS), (("A", "C"), "c", "## C")],
    ),
    "comments alone": (f"# A\n\n<!-- b -->\n\n{WORDS}\n\n---\n", [(("A",), "a", WORDS)]),
    "small sections are together": (
        f"# A\n{WORDS}\n## B\nb.\n## C\nc.\n## D\n{WORDS}",
        [(("A",), "a", WORDS), (("A",), "b", "## B\nb.\n## C\nc."), (("A", "D"), "d", WORDS)],
    ),
    "a small section alone": (
        f"# A\n{WORDS}\n## B\nb.\n# C\n{WORDS}",
        [(("A",), "a", WORDS), (("A", "B"), "b", "b."), (("C",), "c", WORDS)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_sections_become_passages(case: str, passages: Callable[..., list[DocumentPassage]]) -> None:
    text, expected = CASES[case]
    assert [(each.headings, each.anchor, each.text) for each in passages(text)] == expected


@pytest.mark.parametrize(("anchors", "anchor"), [("github", "a-b--mine-"), ("mkdocs", "mine"), ("sphinx", "a-b-mine")])
def test_an_anchor_of_the_authors_own_is_no_part_of_the_heading(
    anchors: str, anchor: str, passages: Callable[..., list[DocumentPassage]]
) -> None:
    (found,) = passages(f"# A b {{ #mine }}\n\n{WORDS}", anchors=anchors)
    assert (found.headings, found.anchor) == (("A b",), anchor)


def test_paragraphs_share_a_passage_and_code_stays_whole(passages: Callable[..., list[DocumentPassage]]) -> None:
    code = f"```\n{WORDS}\n\n{WORDS}\n```"
    found = passages(f"# A\n\n{WORDS}\n\n{WORDS}\n\n{code}\n\n{WORDS}", tokens=37)
    assert [each.text for each in found] == [f"{WORDS}\n\n{WORDS}", code, WORDS]


def test_a_long_paragraph_is_divided_at_sentences(passages: Callable[..., list[DocumentPassage]]) -> None:
    sentences = [f"{WORDS} {number}." for number in range(6)]
    found = passages("# A\n" + " ".join(sentences), tokens=30)
    assert [each.text for each in found] == [" ".join(sentences[place : place + 2]) for place in (0, 2, 4)]


def test_a_long_table_is_divided_at_rows_and_its_header_goes_along(
    passages: Callable[..., list[DocumentPassage]],
) -> None:
    header = "| name | use |\n| --- | --- |\n"
    rows = [f"| n{row} | one two three four five |" for row in range(9)]
    found = passages(f"# A\n\n{header}" + "\n".join(rows), tokens=40)
    assert [each.table for each in found] == ["", *["| name | use |"] * (len(found) - 1)]
    assert len(found) > 2
    assert "\n".join(each.text for each in found) == header + "\n".join(rows)


@pytest.mark.parametrize(
    ("front", "title", "fields"),
    [
        ("---\ntitle: A page\ntags: [a, 1]\ndate: 2024-05-31\ndraft: false\n---\n", "A page",
         {"tags": ["a", "1"], "date": "2024-05-31", "draft": False}),
        ("---\r\nnested: {a: 1}\r\nnothing:\r\nrate: .nan\r\n---\r\n", "Head", {}),
        ("+++\ntitle = 'A page'\nweight = 3\n+++\n", "A page", {"weight": 3}),
        ("", "Head", {}),
        ("---\n\nno mapping\n\n---\n", "Head", {}),
    ],
)  # fmt: skip
def test_front_matter_becomes_fields(front: str, title: str, fields: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_bytes(f"{front}# Head\n\n{WORDS}\n".encode())
    document = read_markdown(tmp_path / "page.md", "github")
    assert (document.title, document.fields) == (title, fields)
