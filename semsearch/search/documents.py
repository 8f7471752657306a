"""Passages and documents as replies show them: by an id or a path, without a search."""

from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.engine.loading import LoadedBundle
from semsearch.engine.tensors import Array
from semsearch.search.query import SearchError
from semsearch.search.results import PAGE_COLUMN, PASSAGE_NUMBER, PATH, state_lines

if TYPE_CHECKING:
    from semsearch.search.reply_types import FoundPassageReply


def show_passage(bundle: LoadedBundle, row: int) -> "FoundPassageReply":
    """Return a passage as replies show it."""
    passage = bundle.passages[row]
    shown: FoundPassageReply = {
        "index": bundle.number(row),
        "id": passage.id,
        "text": passage.text,
        "metadata": passage.metadata,
    }
    state_lines(shown, bundle.passages.lines(row))
    return shown


def show_around(bundle: LoadedBundle, row: int, before: int, after: int) -> "FoundPassageReply":
    """Return a passage as replies show it, with lists of up to `before` and `after` passages around it in its document.

    If both numbers are 0, the lists are left out. Raises SearchError if the text is in no document.
    """
    shown = show_passage(bundle, row)
    if before or after:
        earlier, later = rows_around(bundle, row, before, after)
        shown["before"] = [show_passage(bundle, each) for each in earlier]
        shown["after"] = [show_passage(bundle, each) for each in later]
    return shown


def rows_around(bundle: LoadedBundle, row: int, before: int, after: int) -> tuple[list[int], list[int]]:
    """Return up to `before` rows before a row, and up to `after` rows after it, in the order of its document.

    Rows without a number of a passage have no place in a document. Raises SearchError if `row` is one of them.
    """
    path = bundle.passages.metadata(row).get(PATH)
    rows = np.empty(0, np.intp)
    if isinstance(path, str) and bundle.columns.kinds.get(PASSAGE_NUMBER) == "number":
        rows = document_rows(bundle, path)
        rows = rows[bundle.columns[PASSAGE_NUMBER].exists()[rows]]
    places = np.flatnonzero(rows == row)
    if not len(places):
        name, count = ("before", before) if before else ("after", after)
        expected = "expected 0 for a text that is in no document, such as a row of a table"
        raise SearchError(f"{name}: found {count}, {expected}; leave it out")
    place = int(places[0])
    return rows[max(0, place - before) : place].tolist(), rows[place + 1 : place + 1 + after].tolist()


def document_rows(bundle: LoadedBundle, path: str) -> Array[np.intp]:
    """Return the rows of a document in the order of its text, (n,); none if the corpus does not have the document."""
    kinds = bundle.columns.kinds
    if kinds.get(PATH) != "string":
        return np.empty(0, np.intp)
    from semsearch.engine.metadata.facets import sort_rows  # a plain search does not need this

    has_path = bundle.columns[PATH].equals_any([path.encode("utf-8", "surrogatepass")])
    rows = np.flatnonzero(bundle.among_allowed(has_path))
    if kinds.get(PASSAGE_NUMBER) != "number":
        return rows
    return sort_rows(rows, [(bundle.columns[PASSAGE_NUMBER], False)])


def section_rows(bundle: LoadedBundle, id: str) -> list[int]:
    """Return the rows of a section and of those below it, in the order of its document; none if it is not there.

    What follows it belongs to it as long as the headings go on from its own. Headings can be equal, so a section of the
    same headings with another id ends it. A page of a PDF has none below it.
    """
    first = bundle.find(f"{id}:1")
    path = id.partition("#")[0] if first is None else str(bundle.passages.metadata(first)[PATH])
    rows: list[int] = document_rows(bundle, path).tolist()
    found: list[int] = []
    headings: list[Any] = []
    is_inside = False
    for row in rows:
        is_own = section_of(bundle.passages.id(row)) == id
        if is_own or is_inside:
            metadata = bundle.passages.metadata(row)
            own = metadata.get("headings") or []
            if not found:
                headings = own
            is_below = own[: len(headings)] == headings and len(own) > len(headings) > 0 and PAGE_COLUMN not in metadata
            is_inside = is_own or is_below
        if is_inside:
            found.append(row)
    return found


def section_of(id: str) -> str:
    """Return the id of the section of a passage: its path and anchor."""
    return id.rpartition(":")[0]
