"""What a search returns: hits as replies show them. semsearch/search/reply_types.py describes their form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from semsearch.engine.bundle import QueryEmbedder
from semsearch.engine.hits import Hit
from semsearch.engine.passages import Lines, PassageReader

if TYPE_CHECKING:
    from semsearch.engine.keyword.matches import Correction
    from semsearch.search.reply_types import Facets, GroupResult, InFile, Scores, SimilarReply

PATH, PASSAGE_NUMBER, PAGE_COLUMN = "path", "passage", "page"  # columns that an index of documents has
FOLDER_COLUMN, FOLDER_DESCRIPTION = "folder", "folder_description"  # columns that one of several folders has


@dataclass(frozen=True, slots=True)
class Found:
    """The results as /similar returns them, best first, and whether the text was longer than the search reads.

    With facets, `facets` has the values of each column with their counts, and `total` is the number of texts counted.
    `corrected` has the words that replace each misspelled word of the text. `queries` is what embedded the text of a
    bundle with a query table: BY_TABLE or BY_MODEL.
    """

    results: "list[GroupResult]"
    is_truncated: bool
    facets: "Facets | None" = None
    total: int | None = None
    corrected: "Mapping[str, Correction] | None" = None
    queries: QueryEmbedder | None = None

    @property
    def scores(self) -> list[float]:
        """The scores of the results; none if they were listed without a query."""
        return [result["score"] for result in self.results if result["score"] is not None]

    def reply(self) -> "SimilarReply":
        """Return the reply of /similar."""
        content: SimilarReply = {"results": self.results, "truncated": self.is_truncated}
        if self.facets is not None:
            content["facets"] = self.facets
        if self.total is not None:
            content["total"] = self.total
        if self.corrected:
            content["corrected"] = {word: list(words) for word, words in self.corrected.items()}
        if self.queries is not None:
            content["queries"] = self.queries
        return content


def show_hit(passages: PassageReader, hit: Hit, include: Sequence[str]) -> "GroupResult":
    """Return a hit as a reply shows it."""
    row = hit.row
    result: GroupResult = {"index": row, "id": passages.id(row), "score": hit.score}
    if hit.scores is not None:
        result["scores"] = cast("Scores", hit.scores)  # the names are those of the rankings
    if "text" in include:
        result["text"] = passages.text(row)
    if "source" in include:
        result["source"] = passages.source(row)
    if "metadata" in include:
        result["metadata"] = passages.metadata(row)
        state_lines(result, passages.lines(row))
    return result


def state_lines(shown: "InFile", lines: Lines | None) -> None:
    """State in a text of a reply which lines of its file have it, and which cells if that is a notebook."""
    if lines is None:
        return
    shown["lines"] = [lines.first, lines.last]
    if lines.first_cell:
        shown["cells"] = [lines.first_cell, lines.last_cell]


def heading_path(metadata: Mapping[str, Any]) -> list[str]:
    """Return the title and the headings of a passage, from the highest to its own; none for a text without any."""
    title, headings = metadata.get("title"), metadata.get("headings")
    path = [str(heading) for heading in headings] if isinstance(headings, list) else []
    if title and title not in path[:1]:
        path.insert(0, str(title))
    return path
