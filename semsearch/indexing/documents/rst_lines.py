"""Marks in a tree of docutils that carry the lines of its file through the HTML to the text that is made of it.

docutils knows the line of each block; of some, it states the line before or after. A mark is set only where a line has
its words.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from semsearch.indexing.documents.document import Block, Document, DocumentPart, Heading
from semsearch.indexing.documents.lines import MarkedLines
from semsearch.indexing.documents.markup import Edit, EditedText

if TYPE_CHECKING:
    from docutils import nodes

MARK_BEGIN, OF_WORDS, OF_CODE = "\ue002", "\ue003", "\ue004"  # characters without a meaning
LINE_MARK = re.compile(rf"{MARK_BEGIN}(\d+)([{OF_WORDS}{OF_CODE}])")
# how far the line with some words is from where docutils or the lines before say, the likeliest first: a title is above
# its underline, and an address can take some lines of a paragraph
NEAR = (0, -1, 1, 2, 3, -2, -3)
LETTERS_COMPARED = 40  # letters of a line that are looked for in the file, whose marks and backslashes are no letters
NO_LETTERS, WORD_OF_LINE = re.compile(r"[\W_]+"), re.compile(r"\w+")


def mark_lines(tree: "nodes.document", text: str) -> None:
    """Mark the lines in a tree that was made of this text."""
    from docutils import nodes

    if MARK_BEGIN in text:  # see `without_marks`
        return
    lines, numbers = _lines_of_docutils(text)
    for node in list(tree.findall(nodes.TextElement)):
        line = node.line or node.parent.line
        if line is not None and not isinstance(node, nodes.Inline | nodes.Invisible | nodes.math_block):
            _mark_block(node, line - 1, lines, numbers)


def _mark_block(node: "nodes.TextElement", place: int, lines: list[str], numbers: list[int]) -> None:
    """Mark the lines of a block that begins at this place among the lines, whose numbers in the file are `numbers`."""
    from docutils import nodes

    is_code = isinstance(node, nodes.FixedTextElement)
    marked = -1
    for leaf in list(node.findall(nodes.Text)):
        if isinstance(leaf.parent, nodes.math):
            continue
        pieces: list[str] = leaf.astext().split("\n")
        for number, piece in enumerate(pieces):
            place += number > 0
            letters = NO_LETTERS.sub("", piece)[:LETTERS_COMPARED]
            # a line without letters, such as "}", follows the line before; that of a table's cell can be any
            if not piece.strip() or not (letters or is_code or marked >= 0):
                continue
            found = _line_with(letters, lines, place)
            if found is None:
                continue
            place = found
            if place != marked:
                marked = place
                pieces[number] = _marked(piece, numbers[place], is_code=is_code)
        leaf.parent.replace(leaf, nodes.Text("\n".join(pieces)))


def _lines_of_docutils(text: str) -> tuple[list[str], list[int]]:
    """Return the letters of the lines as docutils divides a text, and their numbers as files have them."""
    lines, numbers, number = [], [], 1
    for line in re.sub("[\v\f]", " ", text).splitlines(keepends=True):
        lines.append(NO_LETTERS.sub("", line))
        numbers.append(number)
        number += line.count("\n")
    return lines, numbers


def _line_with(letters: str, lines: list[str], near: int) -> int | None:
    """Return the place of a line with these letters that is near to this one, None if there is none."""
    for step in NEAR:
        if 0 <= near + step < len(lines) and letters in lines[near + step]:
            return near + step
    return None


def _marked(piece: str, line: int, *, is_code: bool) -> str:
    """Return a piece of a line with its mark: before its first word, or in code, whose blanks count, at its end."""
    if is_code:
        return f"{piece}{MARK_BEGIN}{line}{OF_CODE}"
    first = len(piece) - len(piece.lstrip())
    return f"{piece[:first]}{MARK_BEGIN}{line}{OF_WORDS}{piece[first:]}"


def without_marks(document: Document, text: str) -> Document:
    """Return a document of this text without the marks, and with the lines that they state.

    A text that has their characters itself was not marked: nobody could tell these from the marks.
    """
    if MARK_BEGIN in text:
        return document
    lines = text.split("\n")
    return replace(
        document, title=LINE_MARK.sub("", document.title), parts=[_part(part, lines) for part in document.parts]
    )


def _part(part: DocumentPart, lines: list[str]) -> DocumentPart:
    marks = list(LINE_MARK.finditer(part.text))
    edited = EditedText(part.text, (Edit(*mark.span()) for mark in marks))
    blocks: list[Heading | Block] = []
    for block in part.blocks:
        if isinstance(block, Heading):
            start, end = edited.place(block.start), edited.place(block.end)
            blocks.append(replace(block, start=start, end=end, text=LINE_MARK.sub("", block.text)))
        else:
            blocks += _blocks([block], edited)
    found = sorted((_place(mark, edited), int(mark[1])) for mark in marks)
    for block in blocks:
        for each in getattr(block, "parts", ()) or [block]:
            _add_begin(found, each, edited.text, lines)
    places = [place for place, _ in found]
    return replace(part, text=edited.text, blocks=blocks, lines=MarkedLines(places, [line for _, line in found]))


def _add_begin(found: list[tuple[int, int]], block: Heading | Block, text: str, lines: list[str]) -> None:
    """Add the line where a block begins to the places and lines that are known, unless it is known.

    docutils does not know the lines of some tables: they are those with the first and the last word between what is
    known. A block can also begin with what no line has, such as "- " or "Note": then it is in the line of what follows.
    """
    following = bisect_left(found, (block.start, 0))
    after = found[following] if following < len(found) else (len(text), len(lines))
    if after[0] == block.start:
        return
    words = WORD_OF_LINE.findall(text, block.start, block.end)
    if after[0] < block.end or not words:
        found.insert(following, (block.start, after[1]))
        return
    before = found[following - 1][1] if following else 1
    end = max(before, after[1]) + 1
    first = next((line for line in range(before, end) if words[0] in lines[line - 1]), after[1])
    last = next((line for line in range(first, end) if words[-1] in lines[line - 1]), first)
    found[following:following] = [(block.start, first), (block.end - 1, last)]


def _blocks(blocks: Iterable[Block], edited: EditedText) -> Iterator[Block]:
    for block in blocks:
        start, end = edited.place(block.start), edited.place(block.end)
        yield Block(start, end, tuple(_blocks(block.parts, edited)), LINE_MARK.sub("", block.header))


def _place(mark: re.Match[str], edited: EditedText) -> int:
    """Return the place of the first character in the line of a mark, in the text without marks."""
    place = edited.place(mark.start())
    if mark[2] == OF_CODE:
        return edited.text.rfind("\n", 0, place) + 1
    return place
