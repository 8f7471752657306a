"""What a search returns: hits, passages and documents as replies show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from semsearch.engine.hits import Hit
from semsearch.engine.loading import LoadedTexts
from semsearch.engine.passages import Passage, Passages
from semsearch.engine.tensors import Array

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
    is_truncated: bool = False
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


def show_hit(passages: Passages | Mapping[int, Passage], hit: Hit, include: Sequence[str]) -> dict[str, Any]:
    """Return a hit as a reply shows it."""
    passage = passages[hit.row]
    result: dict[str, Any] = {"index": hit.row, "id": passage.id, "score": hit.score}
    if hit.scores is not None:
        result["scores"] = hit.scores
    if "text" in include:
        result["text"] = passage.text
    if "source" in include:
        result["source"] = passage.text
        if isinstance(passages, Passages):
            result["source"] = passages.source(hit.row)
    if "metadata" in include:
        result["metadata"] = passage.metadata
    return result


def heading_path(metadata: Mapping[str, Any]) -> list[str]:
    """Return the title and the headings of a passage, from the highest to its own; none for a text without any."""
    title, headings = metadata.get("title"), metadata.get("headings")
    path = [str(heading) for heading in headings] if isinstance(headings, list) else []
    if title and title not in path[:1]:
        path.insert(0, str(title))
    return path


def show_passage(bundle: LoadedTexts, row: int) -> dict[str, Any]:
    """Return a passage as replies show it."""
    passage = bundle.passages[row]
    return {"index": bundle.number(row), "id": passage.id, "text": passage.text, "metadata": passage.metadata}


def document_rows(bundle: LoadedTexts, path: str) -> Array[np.intp]:
    """Return the rows of a document in the order of its text, (n,); none if the corpus does not have the document."""
    kinds = bundle.columns.kinds
    if kinds.get(PATH) != "string":
        return np.empty(0, np.intp)
    from semsearch.engine.metadata.columns import Column  # a plain search does not need these
    from semsearch.engine.metadata.facets import sort_rows

    has_path = bundle.columns[PATH].equals_any([path.encode("utf-8", "surrogatepass")])
    rows = np.flatnonzero(bundle.among_allowed(has_path))
    if kinds.get(PASSAGE_NUMBER) != "number":
        return rows
    number = bundle.columns[PASSAGE_NUMBER]
    assert isinstance(number, Column)  # only ids are something else
    return sort_rows(rows, [(number, False)])
