"""What a search returns: hits, passages and documents as replies show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.engine.hits import Hit
from semsearch.engine.loading import LoadedBundle
from semsearch.engine.passages import PassageReader
from semsearch.engine.tensors import Array
from semsearch.search.query import SearchError

if TYPE_CHECKING:
    from semsearch.engine.keyword.matches import Correction

PATH, PASSAGE_NUMBER = "path", "passage"  # columns that an index of documents has


@dataclass(frozen=True, slots=True)
class Found:
    """The results as /similar returns them, best first, and whether the text was longer than the search reads.

    With facets, `facets` has the values of each column with their counts, and `total` is the number of texts counted.
    `corrected` has the words that replace each misspelled word of the text. `queries` is what embedded the text of a
    bundle with a query table: BY_TABLE or BY_MODEL.
    """

    results: list[dict[str, Any]]
    is_truncated: bool
    facets: dict[str, list[dict[str, Any]]] | None = None
    total: int | None = None
    corrected: "Mapping[str, Correction] | None" = None
    queries: str | None = None

    def reply(self) -> dict[str, Any]:
        """Return the reply of /similar."""
        content: dict[str, Any] = {"results": self.results, "truncated": self.is_truncated}
        if self.facets is not None:
            content["facets"] = self.facets
        if self.total is not None:
            content["total"] = self.total
        if self.corrected:
            content["corrected"] = {word: list(words) for word, words in self.corrected.items()}
        if self.queries is not None:
            content["queries"] = self.queries
        return content


def show_hit(passages: PassageReader, hit: Hit, include: Sequence[str]) -> dict[str, Any]:
    """Return a hit as a reply shows it."""
    row = hit.row
    result: dict[str, Any] = {"index": row, "id": passages.id(row), "score": hit.score}
    if hit.scores is not None:
        result["scores"] = hit.scores
    if "text" in include:
        result["text"] = passages.text(row)
    if "source" in include:
        result["source"] = passages.source(row)
    if "metadata" in include:
        result["metadata"] = passages.metadata(row)
    return result


def heading_path(metadata: Mapping[str, Any]) -> list[str]:
    """Return the title and the headings of a passage, from the highest to its own; none for a text without any."""
    title, headings = metadata.get("title"), metadata.get("headings")
    path = [str(heading) for heading in headings] if isinstance(headings, list) else []
    if title and title not in path[:1]:
        path.insert(0, str(title))
    return path


def show_passage(bundle: LoadedBundle, row: int) -> dict[str, Any]:
    """Return a passage as replies show it."""
    passage = bundle.passages[row]
    return {"index": bundle.number(row), "id": passage.id, "text": passage.text, "metadata": passage.metadata}


def show_around(bundle: LoadedBundle, row: int, before: int, after: int) -> dict[str, Any]:
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
