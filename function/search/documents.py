"""A passage as replies show it, and the passages of a document. Imported by the first request for one."""

from typing import Any

import numpy as np

from function.engine.arrays import Array
from function.engine.loading import LoadedTexts
from function.engine.metadata.columns import Column
from function.engine.metadata.facets import sort_rows

PATH, NUMBER = "path", "passage"  # columns that the export of documents writes


def show_passage(bundle: LoadedTexts, row: int) -> dict[str, Any]:
    """Return a passage as replies show it."""
    passage = bundle.passages[row]
    return {"index": row, "id": passage.id, "text": passage.text, "metadata": passage.metadata}


def document_rows(bundle: LoadedTexts, path: str) -> Array[np.intp]:
    """Return the rows of a document in the order of its text, (n,); none if the corpus does not have the document."""
    kinds = bundle.columns.kinds
    if kinds.get(PATH) != "string":
        return np.empty(0, np.intp)
    has_path = bundle.columns[PATH].equals_any([path.encode("utf-8", "surrogatepass")])
    rows = np.flatnonzero(bundle.among_allowed(has_path))
    number = bundle.columns[NUMBER] if kinds.get(NUMBER) == "number" else None
    return sort_rows(rows, [(number, False)]) if isinstance(number, Column) else rows
