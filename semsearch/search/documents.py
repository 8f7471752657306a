"""Passages and documents as replies show them: by an id or a path, without a search."""

from typing import TYPE_CHECKING

import numpy as np

from semsearch.engine.loading import LoadedBundle
from semsearch.engine.tensors import Array
from semsearch.search.query import SearchError
from semsearch.search.results import PASSAGE_NUMBER, PATH, state_lines

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
