"""PDF, page by page: lines joined to paragraphs, without hyphens at their ends and without running headers.

Headings are those of the PDF's outline (its bookmarks), where the page has a line with the same words. Nothing else
in a PDF says reliably what a heading is.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading, NoTextError, UnreadableError
from semsearch.indexing.documents.plain_text import paragraphs

EDGE = 2  # lines at the top and at the bottom of a page that can be running headers and footers
LEAST_PAGES, LEAST_SHARE = 3, 1 / 3  # a line on at least this many pages and this share of them is a running one
FULL_LINE = 0.75  # share of a typical line's length; the sentence of a shorter line ends there
PAGES_OPENED = 100  # pages after which the file is opened again: 2,000 pages of papers take 90 MB and not 380
LINES_OF_HEADING = 3  # maximum lines of a heading
NO_TITLE = re.compile(r"untitled|microsoft |.*\.(dvi|docx?|tex|pdf|ps|indd)$", re.IGNORECASE)  # programs state these
DIVIDED = re.compile(r"(?<=\w)[-\u2010]$")
PAGE_NUMBER = re.compile(r"(?<!\d)\d{1,5}(?!\d)")
HYPHEN = re.compile("[\u00ad\x02\ufffe]\\s*")  # PDFium writes the second or third if the hyphen divides a word

Outline = dict[int, list[tuple[int, str]]]  # level and words of the headings on each page


def read_pdf(path: Path) -> Document:
    """Return a PDF as a document, with a part for each page.

    The title is the one that the PDF states, else the file's name.
    Raises UnreadableError for a broken or encrypted PDF, and for one without text, which was probably scanned.
    """
    import pypdfium2

    outline: Outline = {}
    try:
        pages = list(_pages_of(path))
        with pypdfium2.PdfDocument(path) as pdf:
            for bookmark in pdf.get_toc():
                if (target := bookmark.get_dest()) is not None and (page := target.get_index()) is not None:
                    outline.setdefault(page, []).append((bookmark.level + 1, " ".join(bookmark.get_title().split())))
            title = " ".join(pdf.get_metadata_value("Title").split())
    except pypdfium2.PdfiumError as error:
        raise UnreadableError("encrypted" if "password" in str(error).lower() else f"broken: {error}") from error
    if not any(pages):
        raise NoTextError("scanned: no page has text")
    if not title or NO_TITLE.match(title):
        title = path.stem
    kept = list(_without_running_lines(pages))
    return Document(title, _parts(kept, outline), running_lines=sum(map(len, pages)) - sum(map(len, kept)))


def _parts(pages: list[list[str]], outline: Outline) -> Iterator[DocumentPart]:
    offset = 0
    for number, lines in enumerate(pages):
        text, blocks = _blocks(lines, outline.get(number, []))
        yield DocumentPart(text, blocks, offset, number + 1)
        offset += len(text)


def _pages_of(path: Path) -> Iterator[list[str]]:
    """Yield the lines of each page. PDFium keeps what it has read of a file until the file is closed."""
    import pypdfium2

    first, count = 0, 1
    while first < count:
        with pypdfium2.PdfDocument(path) as pdf:
            count = len(pdf)
            for number in range(first, min(first + PAGES_OPENED, count)):
                page = pdf[number]
                text = page.get_textpage()
                yield [line.strip() for line in HYPHEN.sub("", text.get_text_bounded()).splitlines() if line.strip()]
                text.close()
                page.close()
        first += PAGES_OPENED


def _without_running_lines(pages: list[list[str]]) -> Iterator[list[str]]:
    """Yield the lines of each page without running headers and footers. A page of nothing else keeps them."""
    edges: Counter[str] = Counter()
    for number, lines in enumerate(pages, 1):
        edges.update({key for line in {*lines[:EDGE], *lines[-EDGE:]} for key in _keys(line, number)})
    least = max(LEAST_PAGES, LEAST_SHARE * len(pages))
    running = {key for key, count in edges.items() if count >= least}
    for number, lines in enumerate(pages, 1):
        inner = range(EDGE, len(lines) - EDGE)
        kept = [line for place, line in enumerate(lines) if place in inner or running.isdisjoint(_keys(line, number))]
        yield kept or lines


def _keys(line: str, page: int) -> Iterator[str]:
    """Yield what running lines have in common: all of the line, or all but a number that counts with the page.

    A number beside words that is above the page's own, from 1, is no page number but one of an invoice, say.
    """
    yield line.lower()
    has_words = any(map(str.isalpha, line))
    for number in PAGE_NUMBER.finditer(line):
        before = page - int(number[0])
        if before >= 0 or not has_words:
            yield f"{line[: number.start()]}\0{before}\0{line[number.end() :]}".lower()


def _blocks(lines: list[str], headings: list[tuple[int, str]]) -> tuple[str, list[Heading | Block]]:
    typical = 0  # not the longest: some span two columns
    if lines:
        typical = sorted(map(len, lines))[len(lines) // 2]
    text, begin, place = "", 0, 0
    blocks: list[Heading | Block] = []
    while place < len(lines):
        line, taken, found = _heading(lines[place : place + LINES_OF_HEADING], headings)
        place += taken
        if found is not None:
            blocks += paragraphs(text, begin)
            headings = headings[headings.index(found) + 1 :]
            text = text.rstrip() + "\n\n" if text else ""
            blocks.append(Heading(len(text), len(text) + len(line), *found, ""))
            text += f"{line}\n\n"
            begin = len(text)
            continue
        if line[0].islower():
            text = DIVIDED.sub("", text)
        if DIVIDED.search(line):
            end = ""
        elif len(line) >= FULL_LINE * typical:
            end = " "
        elif line.endswith((".", "!", "?", ":")):
            end = "\n\n"
        else:
            end = "\n"
        text += line + end
    return text.rstrip(), [*blocks, *paragraphs(text, begin)]


def _heading(lines: list[str], headings: list[tuple[int, str]]) -> tuple[str, int, tuple[int, str] | None]:
    """Return the heading that begins these lines, as a line, how many it takes, and its entry; else the first line."""
    for heading in headings:
        for taken in range(1, len(lines) + 1):
            if _is_same(line := " ".join(lines[:taken]), heading[1]):
                return line, taken, heading
    return lines[0], 1, None


def _is_same(line: str, words: str) -> bool:
    line, words = ("".join(each.lower().split()).lstrip("0123456789.") for each in (line, words))
    return bool(words) and line == words
