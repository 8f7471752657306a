"""What a query can ask for besides the best texts for a text: pages, groups, facets, sorting, highlights and ids.

Imported by the first query that asks for one of them.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from function.engine.keyword.highlights import TermsOfWords, highlight, plain_text
from function.engine.loading import Loaded, LoadedTexts
from function.engine.metadata.columns import Column, Mask
from function.engine.metadata.facets import count_values, sort_rows
from function.engine.ranking import find_groups, find_page
from function.engine.semantic.index import Hit
from function.search.query import LONGEST_FOUND, Found, Query, Ranking, SearchError, UnknownIdError, show_hit

MOST_SORTED = 1_000  # hits that are sorted by columns in the modes that find every text
QUOTES = str.maketrans(dict.fromkeys('"“”„'))  # a stored text requires no words
OF_MARKDOWN = re.compile(r"\.(?:md|markdown)(?:#.*)?:\d+\Z", re.IGNORECASE | re.DOTALL)  # ids of such passages
STRINGS, ORDERED, ANY = (
    ("string",),
    ("string", "number", "boolean", "date"),
    ("string", "number", "boolean", "date", "list"),
)


class RefinedQuery:
    """A query over a bundle, whose columns and id are checked first: each method may take long."""

    def __init__(self, bundle: LoadedTexts, query: Query, allowed: Mask | None) -> None:
        """Find the row of `id` and the columns; allowed is what the filter keeps.

        `text` is the query's text or that of the row, None if all texts are listed. Raises SearchError.
        """
        _check_fields(query)
        self._bundle = bundle
        self._query = query
        self.allowed = allowed
        self.row: int | None = None
        self.text = query.text
        self._group_by = None if query.group_by is None else self._column("group_by", query.group_by, STRINGS)
        self._facets = {name: self._column("facets", name, ANY) for name in query.facets}
        self._sort = [(self._column("sort", name, ORDERED), way == "desc") for name, way in (query.sort or {}).items()]
        if query.id is None:
            return
        self.row = bundle.find(query.id)
        if self.row is None:
            raise UnknownIdError(f"id: found {query.id[:LONGEST_FOUND]!r}, expected the id of a text; search for one")
        self.text = bundle.passages.text(self.row).translate(QUOTES)
        self.allowed = np.ones(len(bundle.passages), np.bool_) if allowed is None else allowed.copy()
        self.allowed[self.row] = False

    def _column(self, field: str, name: str, wanted: Sequence[str]) -> Column:
        info = self._bundle.manifest.index
        assert info is not None  # open_bundle checked it
        check_column(field, name, info.columns, wanted)
        column = self._bundle.columns[name]
        assert isinstance(column, Column)  # only the ids, which the manifest does not list, are something else
        return column

    def list_texts(self) -> Found:
        """Return the texts that pass the filter, sorted, without a score."""
        query = self._query
        rows = np.arange(len(self._bundle.passages)) if self.allowed is None else np.flatnonzero(self.allowed)
        page = sort_rows(rows, self._sort)[query.offset : query.offset + query.num_results]
        results = [result | {"score": None} for result in self._show([Hit(int(row), 0.0) for row in page])]
        return Found(results, False, self._count(self.allowed), len(rows))

    def search(self, ranking: Ranking) -> Found:
        """Return the hits of a ranking."""
        query = self._query
        least = query.min_score if query.rerank is None else None  # function/search/rerank.py has applied it

        def find(count: int, mask: Mask | None) -> list[Hit]:
            hits = ranking.find(count, mask)
            return hits if least is None else [hit for hit in hits if hit.score >= least]

        matching = ranking.matching() if self._facets or self._group_by is not None else None
        if self._group_by is not None:
            groups = find_groups(find, self._group_by, matching, query.offset, query.num_results, query.group_size)
            shown = iter(self._show([hit for group in groups for hit in group.hits], ranking))
            results = []
            for group in groups:
                best, *others = [next(shown) for _ in group.hits]
                results.append(best | {"group": group.value, "other_passages": others})
        elif self._sort:
            by_row = {hit.row: hit for hit in find(self._most_sorted(), None)}
            rows = sort_rows(np.array(list(by_row), np.intp), self._sort)
            page = rows[query.offset : query.offset + query.num_results]
            results = self._show([by_row[int(row)] for row in page], ranking)
        else:
            results = self._show(find_page(find, query.offset, query.num_results), ranking)
        if not self._facets:
            return Found(results, ranking.is_truncated, corrected=ranking.corrected)
        total = len(self._bundle.passages) if matching is None else int(np.count_nonzero(matching))
        return Found(results, ranking.is_truncated, self._count(matching), total, ranking.corrected)

    def _most_sorted(self) -> int:
        return len(self._bundle.passages) if self._query.mode == "keyword" else MOST_SORTED

    def _count(self, allowed: Mask | None) -> dict[str, list[dict[str, Any]]] | None:
        if not self._facets:
            return None
        return {
            name: [{"value": value, "count": count} for value, count in count_values(column, allowed)]
            for name, column in self._facets.items()
        }

    def _show(self, hits: Sequence[Hit], ranking: Ranking | None = None) -> list[dict[str, Any]]:
        """Return hits as a reply shows them, with their highlights if the query wants them."""
        passages, query = self._bundle.passages, self._query
        results = [show_hit(passages, hit, query.include) for hit in hits]
        if query.highlights:
            is_read = "text" in query.include
            texts = [result["text"] if is_read else passages.text(result["index"]) for result in results]
            corrections = (ranking.corrected or {}).values() if ranking else ()
            others = frozenset(term for each in corrections for terms in each.values() for term in terms)
            others |= ranking.completed if ranking else frozenset()
            add_highlights(self._bundle, results, texts, self.text, query.mode or "semantic", others)
        return results


def check_column(field: str, name: str, kinds: Mapping[str, str], wanted: Sequence[str]) -> None:
    """Raise SearchError unless a column of `kinds` has this name and one of the wanted types."""
    if kinds.get(name) not in wanted:
        known = ", ".join(each for each, kind in kinds.items() if kind in wanted)
        advice = f"name one of {known}" if known else "leave it out, because there is none"
        expected = f"a column of type {', '.join(wanted)}"
        raise SearchError(f"{field}: found {name[:LONGEST_FOUND]!r}, expected {expected}; {advice}")


def _check_fields(query: Query) -> None:
    """Raise SearchError for fields that do not go together."""
    if query.id is not None and query.text is not None:
        raise SearchError(f"id: found {query.id[:LONGEST_FOUND]!r} with a text, expected one of them; leave one out")
    if query.id is None and query.text is None:
        if query.filter is None and query.sort is None and not query.facets:
            raise SearchError(
                "text: missing; expected a text or an id, or a filter, sort or facets to list texts; add one"
            )
        for name, value in (("group_by", query.group_by), ("min_score", query.min_score), ("rerank", query.rerank)):
            if value is not None:
                shown = repr(value)[:LONGEST_FOUND]
                raise SearchError(f"{name}: found {shown} without a text, expected a text or an id; add one of them")
    if query.group_by is not None and query.sort is not None:
        raise SearchError("sort: found with group_by, expected one of them; leave one out")
    if query.rerank is not None and query.sort is not None:
        raise SearchError("sort: found with rerank, expected one of them; leave one out")


def refine_hits(bundle: Loaded, hits: list[dict[str, Any]], query: Query) -> list[dict[str, Any]]:
    """Return a page of the hits of another service, grouped and with highlights as the query wants them.

    Only these hits are known, so groups are complete only as far as they reach.
    """
    least, name = query.min_score, query.group_by
    hits = [hit for hit in hits if least is None or hit["score"] >= least]
    if query.highlights:
        add_highlights(bundle, hits, [hit["text"] for hit in hits], query.text, "semantic")
    if name is not None:
        groups: dict[object, list[dict[str, Any]]] = {}
        for hit in hits:
            value = hit["metadata"].get(name)
            groups.setdefault(hit["index"] if value is None else value, []).append(hit)
        hits = [
            best | {"group": best["metadata"].get(name), "other_passages": others[: query.group_size - 1]}
            for best, *others in groups.values()
        ]
    return hits[query.offset : query.offset + query.num_results]


def add_highlights(
    bundle: Loaded,
    results: Sequence[dict[str, Any]],
    texts: Sequence[str],
    query: str | None,
    mode: str,
    others: Set[str] = frozenset(),
) -> None:
    """Add `highlights` and `snippet` to results; texts are theirs. Without a query, there are no highlights.

    The snippet of a Markdown document is plain text with highlights of its own; all other ranges are those of the text.
    others: the terms that replace misspelled words of the query or complete its last word.
    """
    index = bundle.manifest.index
    info = index and index.keywords
    is_documents = index is not None and index.heading_prefix
    terms = TermsOfWords(query or "", info.stemmers if info else [None], others)
    shown = [
        plain_text(text) if is_documents and OF_MARKDOWN.search(result["id"]) else (text, range(len(text)))
        for result, text in zip(results, texts, strict=True)
    ]
    found = highlight([text for text, _ in shown], terms, marks_words=mode != "semantic")
    for result, (text, places), parts in zip(results, shown, found, strict=True):
        start, end = parts.snippet
        ranges = [one for one in parts.ranges if one[0] < one[1]] if query else []
        inside = [(max(first, start) - start, min(last, end) - start) for first, last in ranges]
        result["highlights"] = [(places[first], places[last - 1] + 1) for first, last in ranges]
        result["snippet"] = {
            "start": places[start] if start else 0,
            "end": places[end - 1] + 1 if end else 0,
            "text": text[start:end],
            "highlights": [one for one in inside if one[0] < one[1]],
        }
