"""PDF and DOCX files, written by hand."""

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from zipfile import ZipFile

import pytest

from semsearch.indexing.documents.document import Block, Heading, UnreadableError
from semsearch.indexing.documents.docx import read_docx
from semsearch.indexing.documents.passages import Splitter, divide
from semsearch.indexing.documents.pdf import read_pdf
from tests.indexing.documents.files import HYPHEN, WORD, paragraph, write_docx, write_pdf

LINE = "This line is long enough to be a full line of its paragraph"
ANIMALS = ("ape", "bear", "cat", "duck")


def test_pages_become_passages_without_running_lines(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    pages = [
        ["The Handbook", f"{LINE} {ANIMALS[page]} infor-", f"mation {ANIMALS[page]}.", f"{page + 1} of 4"]
        for page in range(4)
    ]
    document = read_pdf(write_pdf(tmp_path / "a.pdf", pages, title="A handbook"))
    found = list(divide(document, make_splitter(40)))
    assert document.title == "A handbook"
    assert [(each.page, each.text) for each in found] == [
        (page + 1, f"{LINE} {animal} information {animal}.") for page, animal in enumerate(ANIMALS)
    ]
    assert [each.start for each in found] == [0, *accumulate(len(each.text) for each in found[:-1])]


def kept_lines(path: Path, pages: list[list[str]]) -> list[list[str]]:
    """Return the lines of each page that are left of a PDF with these lines."""
    document = read_pdf(write_pdf(path / "a.pdf", pages))
    left = [[line for line in lines if line in part.text] for lines, part in zip(pages, document.parts, strict=True)]
    assert document.running_lines == sum(map(len, pages)) - sum(map(len, left))
    return left


def test_lines_that_differ_in_their_numbers_stay(tmp_path: Path) -> None:
    invoices = [["ACME", f"Invoice {1001 + n}", f"Customer {37 * n + 5}", f"Total {19 * n}.00 EUR"] for n in range(5)]
    pages = [["Summary of the year"], *invoices]
    assert kept_lines(tmp_path, pages) == [pages[0], *(lines[1:] for lines in invoices)]


def test_a_page_is_never_left_without_text(tmp_path: Path) -> None:
    pages = [[f"Question {n}"] for n in range(1, 7)]
    assert kept_lines(tmp_path, pages) == pages
    pages = [
        ["ACME", *([f"{LINE} {animal}"] if animal == "cat" else []), f"- {n} -"] for n, animal in enumerate(ANIMALS)
    ]
    assert kept_lines(tmp_path, pages) == [*pages[:2], pages[2][1:2], pages[3]]


@pytest.mark.parametrize(("repeated", "count"), [(3, 9), (2, 5), (3, 10)])
def test_a_line_repeats_on_three_pages_and_a_third_of_them(repeated: int, count: int, tmp_path: Path) -> None:
    own = [f"{LINE} {'x' * n}." for n in range(count)]
    pages = [["ACME", own[n]] if n < repeated else [own[n]] for n in range(count)]
    expected = [[line] for line in own] if (repeated, count) == (3, 9) else pages
    assert kept_lines(tmp_path, pages) == expected


def test_a_line_within_pages_makes_none_at_their_edges_a_running_one(tmp_path: Path) -> None:
    own = [f"{LINE} {animal}" for animal in ANIMALS]
    pages = [["ACME", own[0]], *([f"a{n}", f"b{n}", "ACME", f"c{n}", f"d{n}"] for n in (2, 3))]
    assert kept_lines(tmp_path, pages) == pages


def test_a_number_that_counts_with_the_page_is_that_of_the_page(tmp_path: Path) -> None:
    pages = [["12 of May", f"{LINE} {'x' * n}.", f"Part 7, page {n - 1}"] for n in range(2, 8)]
    assert kept_lines(tmp_path, [[LINE], *pages]) == [[LINE], *(lines[1:2] for lines in pages)]
    article = [[f"{1200 + n}", f"{LINE} {'x' * n}."] for n in range(5)]
    assert kept_lines(tmp_path, article) == [lines[1:] for lines in article]


def test_the_outline_of_a_pdf_has_the_headings_of_pages(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    pages = [["1 Start", f"{LINE} a."], [f"{LINE} b.", "End", f"{LINE} c."]]
    path = write_pdf(tmp_path / "a.pdf", pages, [("Start", 0), ("End", 1)])
    found = [(each.headings, each.page, each.text) for each in divide(read_pdf(path), make_splitter(40))]
    assert found == [(("Start",), 1, f"{LINE} a."), (("Start",), 2, f"{LINE} b."), (("End",), 2, f"{LINE} c.")]


def test_lines_are_joined_unless_a_short_one_ends_a_sentence_or_stands_alone(tmp_path: Path) -> None:
    full, nearly, short, ended = "a" * 40, "b" * 30, "c" * 29, "d" * 28 + ":"
    pages = [
        [full, nearly, short, ended, full, full, full],
        [f"{full} divi{HYPHEN}", "ded", f"well{HYPHEN}", "Known", f"5{HYPHEN}", "6", f"an {HYPHEN}", "x", "X."],
    ]
    document = read_pdf(write_pdf(tmp_path / "a.pdf", pages))
    assert [part.text for part in document.parts] == [
        f"{full} {nearly} {short}\n{ended}\n\n{full} {full} {full}",
        f"{full} divided well\u2010Known 5\u20106\nan \u2010 x\nX.",
    ]


def test_a_heading_of_the_outline_can_have_several_lines_and_is_found_once(tmp_path: Path) -> None:
    lines = ["Begin", f"{LINE}.", "1. A heading", "of two lines", LINE, "Begin", "Twice", "Twice", LINE, "End", "short"]
    outline = [("Begin", 0), ("A heading of two lines", 0), ("Twice", 0), ("End", 0)]
    (part,) = read_pdf(write_pdf(tmp_path / "a.pdf", [lines], outline)).parts
    assert part.text == (
        f"Begin\n\n{LINE}.\n\n1. A heading of two lines\n\n{LINE} Begin\n\nTwice\n\nTwice {LINE}\n\nEnd\n\nshort"
    )
    found = [(type(each), part.text[each.start : each.end]) for each in part.blocks]
    assert found == [
        (Heading, "Begin"),
        (Block, f"{LINE}."),
        (Heading, "1. A heading of two lines"),
        (Block, f"{LINE} Begin"),
        (Heading, "Twice"),
        (Block, f"Twice {LINE}"),
        (Heading, "End"),
        (Block, "short"),
    ]
    assert part.blocks[0] == Heading(0, 5, 1, "Begin", "")


def test_a_pdf_that_is_opened_several_times_has_all_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semsearch.indexing.documents.pdf.PAGES_OPENED", 2)
    document = read_pdf(write_pdf(tmp_path / "a.pdf", [[f"{LINE} {page}"] for page in "abcde"]))
    assert [(part.page, part.text[-1]) for part in document.parts] == [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]


def test_a_title_that_a_program_made_is_none(tmp_path: Path) -> None:
    assert read_pdf(write_pdf(tmp_path / "a.pdf", [[LINE]], title="Microsoft Word - Report.doc")).title == "a"


def test_a_docx_has_sections_and_the_title_of_the_first(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    mark = '<w:bookmarkStart w:id="0" w:name="setup"/>'
    heading = paragraph("Setup", "Heading2").replace("<w:r>", f"{mark}<w:r>")
    body = paragraph("Guide", "Heading1") + paragraph(LINE) + heading + paragraph(LINE)
    document = read_docx(write_docx(tmp_path / "a.docx", body))
    found = [(each.headings, each.anchor, each.text) for each in divide(document, make_splitter(40))]
    assert document.title == "Guide"
    assert found == [(("Guide",), "", LINE), (("Guide", "Setup"), "", LINE)]


def test_an_encrypted_docx_names_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"\xd0\xcf\x11\xe0 and so on")
    with pytest.raises(UnreadableError, match=r"^encrypted, or a \.doc"):
        read_docx(tmp_path / "a.docx")


MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
OUTLINED = '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Outlined</w:t></w:r></w:p>'
HIDDEN = "<w:p><w:r><w:t>seen</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t> secret</w:t></w:r></w:p>"
SHOWN = '<w:p><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>shown</w:t></w:r></w:p>'
ONE, OTHER = (f"<m:oMath><m:r><m:t/><m:t>{text}</m:t></m:r></m:oMath>" for text in ("a=b", "c=d"))
EQUATION = (
    f'<w:p xmlns:m="{MATH}"><m:oMathPara>{ONE}{OTHER}</m:oMathPara></w:p>'
    f'<w:p xmlns:m="{MATH}"><w:r><w:t xml:space="preserve">so </w:t></w:r>{ONE}</w:p>'
)
NOTED = '<w:p><w:r><w:t>noted</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r></w:p>'
NOTE = "<w:p><w:r><w:t>the no</w:t></w:r><w:r><w:t>te</w:t><w:tab/><w:t>is</w:t></w:r></w:p>" + paragraph("long")
FOOTNOTES = f'<w:footnotes xmlns:w="{WORD}"><w:footnote w:id="2">{NOTE}</w:footnote></w:footnotes>'
CORE = '<p xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Stated</dc:title></p>'


def test_a_docx_has_the_text_that_word_displays(tmp_path: Path, make_splitter: Callable[..., Splitter]) -> None:
    first, last = paragraph("First", "Heading1"), paragraph("Last", "Heading1")
    path = write_docx(
        tmp_path / "a.docx", first + HIDDEN + SHOWN + EQUATION + OUTLINED + NOTED + last + paragraph("end")
    )
    with ZipFile(path, "a") as archive:
        archive.writestr("word/footnotes.xml", FOOTNOTES)
        archive.writestr("docProps/core.xml", CORE)
    document = read_docx(path)
    assert document.title == "Stated"
    assert [(each.headings, each.text) for each in divide(document, make_splitter(400))] == [
        (("First",), "seen\n\nshown\n\na=b c=d\n\nso a=b"),
        (("First", "Outlined"), "noted\n\nthe note is long"),
        (("Last",), "end"),
    ]


def test_a_paragraph_with_a_style_that_has_no_outline_level_is_no_heading(
    tmp_path: Path, make_splitter: Callable[..., Splitter]
) -> None:
    centred = '<w:p><w:pPr><w:jc w:val="center"/></w:pPr><w:r><w:t>centred</w:t></w:r></w:p>'
    document = read_docx(write_docx(tmp_path / "a.docx", centred + paragraph("quoted", "Quote")))
    assert [(each.headings, each.text) for each in divide(document, make_splitter(400))] == [((), "centred\n\nquoted")]


def test_a_heading_of_a_docx_is_a_paragraph_or_a_style_with_an_outline_level(tmp_path: Path) -> None:
    def outlined(text: str, level: str, style: str = "") -> str:
        named = f'<w:pStyle w:val="{style}"/>' if style else ""
        return f'<w:p><w:pPr>{named}<w:outlineLvl w:val="{level}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'

    body = (
        outlined("one", "0")
        + outlined("quoted", "2", "Quote")
        + outlined("third", "4", "Heading3")
        + outlined("six", "5")
        + outlined("none", "6")
        + outlined("other", "x")
        + paragraph("of a style", "Chapter")
        + paragraph("Dutch", "Kop2")
        + outlined("also Dutch", "4", "Kop2")
    )
    path = write_docx(tmp_path / "a.docx", body, '<w:pPr><w:outlineLvl w:val="3"/></w:pPr>')
    (part,) = read_docx(path).parts
    assert [(each.text, each.level) for each in part.blocks if isinstance(each, Heading)] == [
        *(("one", 1), ("quoted", 3), ("third", 3), ("six", 6), ("of a style", 4), ("Dutch", 2), ("also Dutch", 2))
    ]
    assert part.text == "one\n\nquoted\n\nthird\n\nsix\n\nnone\n\nother\n\nof a style\n\nDutch\n\nalso Dutch"


def test_a_docx_without_its_main_part_is_broken(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("docProps/core.xml", CORE)
    with pytest.raises(UnreadableError, match=r"^broken: it has no word/document\.xml$"):
        read_docx(tmp_path / "a.docx")


def test_a_docx_has_the_title_with_the_style(tmp_path: Path) -> None:
    path = write_docx(tmp_path / "a.docx", paragraph("A title", "Title") + paragraph("First", "Heading1"))
    assert read_docx(path).title == "A title"
