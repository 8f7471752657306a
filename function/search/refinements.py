"""What a query can ask for besides the best texts for a text: pages, groups, facets, sorting, highlights and ids.

Imported by the first query that asks for one of them.
"""

from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from function.engine.keyword.analyzer import VERSION, find_stemmer
from function.engine.keyword.highlights import TermsOfWords, highlight
from function.engine.loading import Loaded, LoadedBundle
from function.engine.metadata.columns import Column, Mask
from function.engine.metadata.facets import count_values, sort_rows
from function.engine.ranking import Find, find_groups, find_page
from function.engine.semantic.index import Hit
from function.search.query import Found, Query, Ranking, SearchError, UnknownIdError, show_hit

MOST_SORTED = 1_000  # hits that are sorted by columns in the modes that find every text
QUOTES = str.maketrans(dict.fromkeys('"“”„'))  # a stored text requires no words


class RefinedQuery:
    """A query over a bundle, whose columns and id are checked first: each method may take long."""

    def __init__(self, bundle: LoadedBundle, query: Query, allowed: Mask | None) -> None:
        """Find the row of `id` and the columns; allowed is what the filter keeps.

        `text` is the query's text or that of the row, None if all texts are listed. Raises SearchError.
        """
        self._bundle = bundle
        self._query = query
        self.allowed = allowed
        self.row: int | None = None
        self.text = query.text
        self._group_by = None if query.group_by is None else self._column("group_by", query.group_by, {"string"})
        self._facets = {name: self._column("facets", name) for name in query.facets}
        kinds = {"string", "number", "boolean", "date"}
        self._sort = [(self._column("sort", name, kinds), way == "desc") for name, way in (query.sort or {}).items()]
        if query.id is not None:
            self._find_row(query.id)
        self._check()

    def _find_row(self, id: str) -> None:
        if self.text is not None:
            raise SearchError("id: found with a text, expected one of them; leave one out")
        rows = self._bundle.ids.rows_of(id)
        if not len(rows):
            raise UnknownIdError(f"id: found {id[:60]!r}, expected the id of a text; search for one")
        self.row = int(rows[0])
        self.text = self._bundle.passages.text(self.row).translate(QUOTES)
        self.allowed = np.ones(len(self._bundle.index), np.bool_) if self.allowed is None else self.allowed.copy()
        self.allowed[self.row] = False

    def _check(self) -> None:
        """Raise SearchError for fields that do not go together."""
        query = self._query
        if self.text is None:
            if query.filter is None and query.sort is None and not query.facets:
                raise SearchError("text: missing; expected a text, an id, or a filter, sort or facets to list texts")
            for name, value in (
                ("group_by", query.group_by),
                ("min_score", query.min_score),
                ("fusion_weight", query.fusion_weight),
            ):
                if value is not None:
                    raise SearchError(f"{name}: found {value!r} without a text; add a text, or leave it out")
        if query.group_by is not None and query.sort is not None:
            raise SearchError("sort: found with group_by, expected one of them; leave one out")

    def _column(self, field: str, name: str, kinds: set[str] | None = None) -> Column:
        """Return a column whose type is one of `kinds`, any for None. Raises SearchError if there is none."""
        columns = self._bundle.columns
        known = {each: kind for each, kind in columns.kinds.items() if kinds is None or kind in kinds}
        column = columns[name] if name in known else None
        if not isinstance(column, Column):  # each id is of one row
            listed = ", ".join(each for each in known if each != "id") or "none"
            wanted = f"a column of type {', '.join(sorted(kinds))}" if kinds else "a column"
            raise SearchError(f"{field}: expected {wanted}, found {name[:60]!r}; there are: {listed}")
        return column

    def list_texts(self) -> Found:
        """Return the texts that pass the filter, sorted, without a score."""
        query = self._query
        rows = np.arange(len(self._bundle.index)) if self.allowed is None else np.flatnonzero(self.allowed)
        page = sort_rows(rows, self._sort)[query.offset : query.offset + query.num_results]
        results = [self._show(Hit(int(row), 0.0)) | {"score": None} for row in page]
        return Found(results, False, self._count(self.allowed), len(rows))

    def search(self, ranking: Ranking) -> Found:
        """Return the hits of a ranking."""
        query, find = self._query, ranking.find
        least = query.min_score
        if least is not None:
            find = _at_least(find, least)
        if self._group_by is not None:
            groups = find_groups(
                find, self._group_by, ranking.matching(), query.offset, query.num_results, query.group_size
            )
            hits = [hit for group in groups for hit in group.hits]
            shown = iter(self._show_all(hits, ranking))
            results = []
            for group in groups:
                best, *others = [next(shown) for _ in group.hits]
                results.append(best | {"group": group.value, "other_passages": others})
        elif self._sort:
            hits = find(len(self._bundle.index) if query.mode == "keyword" else MOST_SORTED, None)
            by_row = {hit.row: hit for hit in hits}
            rows = sort_rows(np.array(list(by_row), np.intp), self._sort)
            page = rows[query.offset : query.offset + query.num_results]
            results = self._show_all([by_row[int(row)] for row in page], ranking)
        else:
            results = self._show_all(find_page(find, query.offset, query.num_results), ranking)
        if not self._facets:
            return Found(results, ranking.is_truncated, corrected=ranking.corrected)
        counted = ranking.matching()
        total = len(self._bundle.index) if counted is None else int(np.count_nonzero(counted))
        return Found(results, ranking.is_truncated, self._count(counted), total, ranking.corrected)

    def _count(self, allowed: Mask | None) -> dict[str, list[dict[str, Any]]] | None:
        if not self._facets:
            return None
        return {
            name: [{"value": value, "count": count} for value, count in count_values(column, allowed)]
            for name, column in self._facets.items()
        }

    def _show(self, hit: Hit) -> dict[str, Any]:
        return show_hit(self._bundle.passages, hit, self._query.include)

    def _show_all(self, hits: Sequence[Hit], ranking: Ranking) -> list[dict[str, Any]]:
        """Return hits as a reply shows them, with their highlights if the query wants them."""
        results = [self._show(hit) for hit in hits]
        if not self._query.highlights or not hits:
            return results
        assert self.text is not None
        passages = self._bundle.passages
        texts = [result.get("text") or passages.text(hit.row) for hit, result in zip(hits, results, strict=True)]
        terms = frozenset[str]().union(*(ranking.corrected or {}).values())
        return add_highlights(self._bundle, results, texts, self.text, self._query.mode, terms)


def refine_hits(bundle: Loaded, hits: list[dict[str, Any]], query: Query) -> list[dict[str, Any]]:
    """Return a page of the hits of another service, grouped and with highlights as the query wants them.

    Only these hits are known, so groups are complete only as far as they reach.
    """
    assert query.text is not None
    if query.min_score is not None:
        hits = [hit for hit in hits if hit["score"] >= query.min_score]
    if query.highlights:
        hits = add_highlights(bundle, hits, [hit["text"] for hit in hits], query.text, query.mode)
    if (name := query.group_by) is not None:
        info = bundle.manifest.index
        if info is None or info.columns.get(name) != "string":
            raise SearchError(f"group_by: expected a column of type string, found {name[:60]!r}")
        groups: dict[object, dict[str, Any]] = {}
        for hit in hits:
            value = hit["metadata"].get(name)
            first = groups.setdefault(value or hit["id"], hit | {"group": value, "other_passages": []})
            if first["index"] != hit["index"] and len(first["other_passages"]) < query.group_size - 1:
                first["other_passages"].append(hit)
        hits = list(groups.values())
    return hits[query.offset : query.offset + query.num_results]


def add_highlights(
    bundle: Loaded,
    results: Sequence[dict[str, Any]],
    texts: Sequence[str],
    query: str,
    mode: str,
    corrected: Set[str] = frozenset(),
) -> list[dict[str, Any]]:
    """Return results with `highlights` and `snippet`; texts are theirs.

    corrected: the terms that replace misspelled words of the query.
    """
    info = bundle.manifest.index and bundle.manifest.index.keywords
    terms = TermsOfWords(
        query, find_stemmer(info.stemming) if info else None, info.analyzer if info else VERSION, corrected
    )
    found = highlight(texts, terms, marks_words=mode != "semantic")
    return [
        result
        | {
            "highlights": [list(each) for each in parts.ranges],
            "snippet": {"start": start, "end": end, "text": text[start:end]},
        }
        for result, text, parts in zip(results, texts, found, strict=True)
        for start, end in [parts.snippet]
    ]


def _at_least(find: Find, least: float) -> Find:
    """Return a function that finds the same hits as long as their score is at least this."""
    return lambda count, allowed: [hit for hit in find(count, allowed) if hit.score >= least]
