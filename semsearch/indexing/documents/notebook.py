"""Jupyter notebooks: the Markdown of their cells, with code as code, and the text of outputs.

Places count characters of this Markdown. Left out: outputs that are no plain text, such as pictures and tables in HTML.
Source: https://nbformat.readthedocs.io/en/latest/format_description.html
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.indexing.documents.document import Document, UnreadableError, decode, valid_unicode
from semsearch.indexing.documents.lines import CellLines
from semsearch.indexing.documents.markdown import read_markdown_text

LONGEST_OUTPUT = 2_000  # characters of the outputs of a cell; logs and printed tables have many more
LONGEST_FENCE = "`" * 8  # no code has as many ticks


def read_notebook(path: Path, anchors: str) -> Document:
    """Return a notebook as a document. Raises UnreadableError if it is none."""
    try:
        notebook = json.loads(decode(path.read_bytes()))
        sheets = notebook.get("worksheets") or [notebook]  # version 3 has worksheets
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        pieces = [piece for number, cell in enumerate(cells, 1) for piece in _pieces(cell, number)]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise UnreadableError(f"not a notebook: {error!r}") from error
    text = valid_unicode("\n\n".join(piece.text for piece in pieces))
    places = [place for piece in pieces for place in piece.places()]
    return read_markdown_text(text, path, anchors, CellLines(text, places))


class _Piece(NamedTuple):
    """Markdown of a cell, whose first line is this line of the cell. An output is at the last line of its cell."""

    text: str
    cell: int
    first: int
    last: int  # the last line of the cell's source

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield the cell and the line in it of each line of the text, and of the empty one after it."""
        for number in range(self.text.count("\n") + 2):
            yield self.cell, min(max(self.first + number, 1), self.last)


def _pieces(cell: Mapping[str, Any], number: int) -> Iterator[_Piece]:
    """Yield the Markdown of a cell with its number."""
    kind, source = cell.get("cell_type"), _joined(cell.get("source") or cell.get("input") or "")
    last = source.rstrip().count("\n") + 1
    if kind in ("markdown", "heading"):  # version 3 has headings
        text = "#" * int(cell.get("level", 1)) + f" {source}" if kind == "heading" else source
        yield _Piece(text, number, first=1, last=last)
    elif kind == "code" and source.strip():
        yield _Piece(_fenced(source), number, first=0, last=last)  # the fence is in no line
        outputs = "\n".join(filter(None, map(_text_of_output, cell.get("outputs") or ())))
        if outputs.strip():
            yield _Piece(_fenced(outputs[:LONGEST_OUTPUT]), number, first=last, last=last)


def _text_of_output(output: Mapping[str, Any]) -> str:
    """Return the plain text of an output; what an error prints is none."""
    if output.get("output_type") == "stream" and output.get("name", output.get("stream")) == "stdout":
        return _joined(output.get("text", ""))
    if "text/html" in output.get("data", {}):  # its text is a drawing of a table
        return ""
    if output.get("output_type") == "pyout":  # notebooks of version 3 have it
        return _joined(output.get("text", ""))
    return _joined(output.get("data", {}).get("text/plain", ""))


def _fenced(code: str) -> str:
    return f"{LONGEST_FENCE}\n{code.rstrip()}\n{LONGEST_FENCE}"


def _joined(lines: str | list[str]) -> str:
    """Return a text, which can be divided into lines."""
    if isinstance(lines, str):
        return lines
    return "".join(lines)
