"""PDF, page by page: lines joined to paragraphs, without hyphens at their ends and without running headers.

Headings are those of the PDF's outline (its bookmarks), where the page has a line with the same words. A PDF has no other
sign of a heading that can be trusted.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from export.documents.document import Block, Document, Heading, Part, UnreadableError, trimmed
from export.documents.plain import paragraphs

EDGE = 2  # lines at the top and at the bottom of a page that can be running headers and footers
LEAST_PAGES, LEAST_SHARE = 3, 0.05  # of the pages that a line must be on to be a running one
FULL_LINE = 0.75  # of the page's longest line; after a shorter one the next does not continue its sentence
LINE_HYPHEN = re.compile(r"(?<=\w)(?:[-\u00ad\u2010]|\x02|\ufffe)$")
SOFT_HYPHENS = re.compile("[\u00ad\x02\ufffe]")


def read_pdf(path: Path) -> Document:
    """Return a PDF as a document, whose pages are read when they are used, twice in all.

    The title is the one that the PDF states, else the file's name.
    Raises UnreadableError for a broken or encrypted PDF, and for one without text, which was probably scanned.
    """
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(path)
        running, has_text = _running_lines(pdf)
        headings = _outline(pdf)
    except pypdfium2.PdfiumError as error:
        reason = "encrypted" if "password" in str(error).lower() else f"broken: {error}"
        raise UnreadableError(reason) from error
    if not has_text:
        raise UnreadableError("scanned: no page has text")
    title = " ".join(pdf.get_metadata_value("Title").split())
    return Document(title or path.stem, _pages(pdf, running, headings))


def _pages(pdf: Any, running: set[str], headings: dict[int, list[tuple[int, str]]]) -> Iterator[Part]:
    offset = 0
    with pdf:
        for number in range(len(pdf)):
            lines = _lines(pdf, number)
            kept = [line for place, line in enumerate(lines) if not _is_edge(place, lines) or _key(line) not in running]
            text, blocks = _blocks(kept, headings.get(number, []))
            if text:
                yield Part(text, blocks, offset, number + 1)
                offset += len(text)


def _lines(pdf: Any, number: int) -> list[str]:
    page = pdf[number]
    text = page.get_textpage()
    try:
        lines = text.get_text_bounded().splitlines()
        return [" ".join(line.split(" ")).strip() for line in lines if line.strip()]
    finally:
        text.close()
        page.close()


def _running_lines(pdf: Any) -> tuple[set[str], bool]:
    """Return the lines that repeat at the edges of pages, as `_key` writes them, and whether there is any text."""
    counts: Counter[str] = Counter()
    has_text = False
    for number in range(len(pdf)):
        lines = _lines(pdf, number)
        has_text = has_text or bool(lines)
        counts.update({_key(line) for place, line in enumerate(lines) if _is_edge(place, lines)})
    least = max(LEAST_PAGES, LEAST_SHARE * len(pdf))
    return {line for line, count in counts.items() if count >= least}, has_text


def _is_edge(place: int, lines: list[str]) -> bool:
    return place < EDGE or place >= len(lines) - EDGE


def _key(line: str) -> str:
    """Return a line with # for each number: page numbers differ."""
    return re.sub(r"\d+", "#", line.lower())


def _outline(pdf: Any) -> dict[int, list[tuple[int, str]]]:
    """Return the level and the words of the headings on each page."""
    headings: dict[int, list[tuple[int, str]]] = {}
    for bookmark in pdf.get_toc():
        target = bookmark.get_dest()
        page = None if target is None else target.get_index()
        if page is not None:
            headings.setdefault(page, []).append((bookmark.level + 1, " ".join(bookmark.get_title().split())))
    return headings


def _blocks(lines: list[str], headings: list[tuple[int, str]]) -> tuple[str, list[Heading | Block]]:
    """Return the text of a page and its blocks."""
    longest = max(map(len, lines), default=0)
    text, blocks, begin = "", list[Heading | Block](), 0
    waiting = list(headings)
    for line in lines:
        found = next((place for place, (_, words) in enumerate(waiting) if _is_same(line, words)), None)
        if found is not None:
            blocks += _paragraphs(text, begin)
            level, words = waiting[found]
            del waiting[: found + 1]
            text = text.rstrip() + "\n\n" if text else ""
            blocks.append(Heading(len(text), len(text) + len(line), level, words, ""))
            text += line + "\n\n"
            begin = len(text)
            continue
        is_word_divided = LINE_HYPHEN.search(text) and line[0].islower()
        text = LINE_HYPHEN.sub("", text) if is_word_divided else text
        text += SOFT_HYPHENS.sub("", line[:-1]) + line[-1]
        text += "" if LINE_HYPHEN.search(line) else _gap(line, longest)
    text = SOFT_HYPHENS.sub("-", text).rstrip()
    return text, [*blocks, *_paragraphs(text, begin)]


def _gap(line: str, longest: int) -> str:
    if len(line) >= FULL_LINE * longest:
        return " "
    return "\n\n" if line.endswith((".", "!", "?", ":")) else "\n"


def _is_same(line: str, words: str) -> bool:
    """Return whether a line is a heading of the outline, with or without its number."""
    line, words = ("".join(each.lower().split()) for each in (line, words))
    return bool(words) and (line == words or line.lstrip("0123456789.") == words.lstrip("0123456789."))


def _paragraphs(text: str, begin: int) -> Iterator[Block]:
    for block in paragraphs(text[begin:]):
        if moved := trimmed(text, begin + block.start, begin + block.end):
            yield moved
