"""What a query can ask for besides the best texts for a text: pages, groups, facets, sorting, highlights and ids.

Imported by the first query that asks for one of them.
"""

from collections.abc import Mapping, Sequence, Set
from time import time
from typing import TYPE_CHECKING, cast

import numpy as np

from semsearch.engine.hits import DECIMALS, MOST_HITS, Hit, Mask
from semsearch.engine.keyword.highlights import TermsOfWords, beginning, highlight
from semsearch.engine.loading import AnyBundle, LoadedBundle
from semsearch.engine.metadata.columns import EXPECTED_VALUES, Column
from semsearch.engine.metadata.facets import count_values, sort_rows
from semsearch.engine.pages import Group, find_different, find_groups, find_page
from semsearch.engine.tensors import AnyArray, Array
from semsearch.search.query import LONGEST_FOUND, Query, SearchError, UnknownIdError
from semsearch.search.ranking import Ranking
from semsearch.search.results import PATH, Found, show_hit

if TYPE_CHECKING:
    from semsearch.engine.metadata.boosts import Boost
    from semsearch.search.reply_types import Facets, GroupResult, SectionPlace

PLACE = (PATH, "url", "version", "language")  # metadata that say where a copy of a section is
MOST_COPIES = 20  # copies of a section that a result names
MOST_SORTED = 1_000  # hits that are sorted by columns in the modes that find every text
QUOTES = str.maketrans(dict.fromkeys('"“”„'))  # a stored text requires no words
STRINGS, ORDERED, ANY = (
    ("string",),
    ("string", "number", "boolean", "date"),
    tuple(EXPECTED_VALUES),
)


class RefinedQuery:
    """A query over a bundle. Making it checks the columns and the id. Each method can take long."""

    def __init__(self, bundle: LoadedBundle, query: Query, allowed: Mask | None) -> None:
        """Find the row of `id` and check the columns; allowed is what the filter keeps.

        `text` is the query's text or that of the row, None if all texts are listed. Raises SearchError.
        """
        _check_fields(query)
        self._bundle, self._query = bundle, query
        self.allowed: Mask | None = allowed
        self.row: int | None = None
        self.text = query.text
        groups = () if query.group_by is None else (query.group_by,)
        for field, names, wanted in (
            ("group_by", groups, STRINGS),
            ("facets", query.facets, ANY),
            ("sort", query.sort or (), ORDERED),
        ):
            for name in names:
                check_column(field, name, bundle.manifest.corpus.columns, wanted)
        if query.id is None:
            return
        self.row = bundle.find(query.id)
        if self.row is None:
            expected, first = "expected the id of a text", f"{query.id}:1"
            if bundle.find(first) is not None:  # the id is that of a section
                expected += f", such as {first!r} of this section"
            raise UnknownIdError(f"id: found {query.id[:LONGEST_FOUND]!r}, {expected}; search for one")
        self.text = bundle.passages.text(self.row).translate(QUOTES)
        if allowed is None:
            self.allowed = np.ones(len(bundle.passages), np.bool_)
        else:
            self.allowed = allowed.copy()
        self.allowed[self.row] = False

    def _column(self, name: str) -> Column:
        return self._bundle.columns[name]

    def _sorted(self, rows: Array[np.intp]) -> Array[np.intp]:
        query = self._query
        by = [(self._column(name), way == "desc") for name, way in (query.sort or {}).items()]
        return sort_rows(rows, by)[query.offset : query.offset + query.num_results]

    def list_texts(self, boosts: "Sequence[Boost]") -> Found:
        """Return the texts that pass the filter, without a score: sorted, or those with the largest boosts first."""
        rows = np.arange(self._rows) if self.allowed is None else np.flatnonzero(self.allowed)
        if boosts and not self._query.sort:
            from semsearch.engine.metadata.boosts import boost_rows  # only a query with a boost needs it

            added = np.round(boost_rows(boosts, self._bundle.columns, rows, time()), DECIMALS)
            rows = rows[np.argsort(-added, kind="stable")]
        results = self._show([Hit(int(row), 0.0) for row in self._sorted(rows)])
        for result in results:
            result["score"] = None
        return Found(results, False, self._count(self.allowed), len(rows))

    def search(self, ranking: Ranking) -> Found:
        """Return the hits of a ranking."""
        query = self._query
        matching = None
        if query.facets or query.group_by is not None:
            matching = ranking.matching()
        if query.group_by is not None:
            groups = self._groups(ranking, query.group_by, matching)
            hits = [hit for group in groups for hit in group.hits]
            shown = self._show(hits, ranking)
            if self._sections is not None:
                self._add_copies(self._sections, shown, hits)
            remaining = iter(shown)
            results = []
            for group in groups:
                best, *others = [next(remaining) for _ in group.hits]
                best["group"] = group.value
                best["other_passages"] = others
                results.append(best)
        elif query.sort:
            results = self._show(self._sorted_hits(ranking), ranking)
        elif self._sections is not None:
            hits = find_different(
                ranking.find,
                self._column(PATH),
                self._sections,
                ranking.matching(),
                offset=query.offset,
                count=query.num_results,
            )
            results = self._show(hits, ranking)
            self._add_copies(self._sections, results, hits)
        else:
            results = self._show(find_page(ranking.find, query.offset, query.num_results), ranking)
        if not query.facets:
            return Found(results, ranking.is_truncated, corrected=ranking.corrected)
        if query.facets_of == "results":
            matching = np.zeros(self._rows, np.bool_)
            matching[[hit.row for hit in ranking.find(MOST_HITS, None)]] = True
        total = self._rows if matching is None else int(np.count_nonzero(matching))
        return Found(results, ranking.is_truncated, self._count(matching), total, ranking.corrected)

    def _sorted_hits(self, ranking: Ranking) -> list[Hit]:
        """Return the hits of a page in the order of columns; the mode keyword sorts all of its texts."""
        if self._query.mode == "keyword":  # these can be all texts of the corpus: only the page becomes hits
            page = self._sorted(ranking.best(self._rows).rows)
            mask = np.zeros(self._rows, np.bool_)
            mask[page] = True
            by_row = {hit.row: hit for hit in ranking.find(self._rows, mask)}
        else:
            by_row = {hit.row: hit for hit in ranking.find(MOST_SORTED, None)}
            page = self._sorted(np.array(list(by_row), np.intp))
        return [by_row[row] for row in page.tolist()]

    @property
    def _rows(self) -> int:
        return self._bundle.manifest.corpus.rows

    def _groups(self, ranking: Ranking, name: str, matching: Mask | None) -> list[Group]:
        query = self._query
        page = query.offset, query.num_results, query.group_size
        sections = self._sections
        if sections is None:
            sections = np.arange(self._rows)
        return find_groups(ranking.find, self._column(name), sections, matching, *page)

    @property
    def _sections(self) -> AnyArray | None:
        """The number of each row's section, (rows,), if the query returns equal sections once; otherwise None."""
        query = self._query
        if query.group_by != PATH and not (query.folds_copies and query.group_by is None):
            return None
        return self._bundle.columns.sections

    def _add_copies(self, sections: AnyArray, results: "Sequence[GroupResult]", hits: Sequence[Hit]) -> None:
        """Add `also_in` to results whose section other documents have too: where it is in each of them."""
        bundle, paths = self._bundle, self._column(PATH).codes
        assert paths is not None  # strings always have a dictionary
        numbers = sections[[hit.row for hit in hits]]
        rows = np.flatnonzero(bundle.among_allowed(np.isin(sections, numbers)))
        places: dict[int, dict[int, int]] = {}  # the first row of each section in each document
        for row, number, path in zip(rows.tolist(), sections[rows].tolist(), paths[rows].tolist(), strict=True):
            places.setdefault(number, {}).setdefault(path, row)
        for result, hit, number in zip(results, hits, numbers.tolist(), strict=True):
            own = int(paths[hit.row])
            others = [row for path, row in places[number].items() if path != own]
            if others:
                copies = [bundle.passages.metadata(row) for row in others[:MOST_COPIES]]
                places_of_copies = [{name: each[name] for name in PLACE if name in each} for each in copies]
                result["also_in"] = cast("list[SectionPlace]", places_of_copies)

    def _count(self, allowed: Mask | None) -> "Facets | None":
        if not self._query.facets:
            return None
        counted = {name: count_values(self._column(name), allowed) for name in self._query.facets}
        return cast("Facets", counted)

    def _show(self, hits: Sequence[Hit], ranking: Ranking | None = None) -> "list[GroupResult]":
        """Return hits as a reply shows them, with their highlights if the query wants them."""
        query = self._query
        results = [show_hit(self._bundle.passages, hit, query.include) for hit in hits]
        if query.highlights:
            texts = [self._bundle.passages.text(hit.row) for hit in hits]
            corrections = (ranking.corrected or {}).values() if ranking else ()
            others = frozenset(term for each in corrections for terms in each.values() for term in terms)
            others |= ranking.added if ranking else frozenset()
            add_highlights(self._bundle, results, texts, self.text, query.mode or "semantic", others)
        return results


def check_column(field: str, name: str, kinds: Mapping[str, str], wanted: Sequence[str]) -> None:
    """Raise SearchError unless a column of `kinds` has this name and one of the wanted types."""
    if kinds.get(name) not in wanted:
        known = ", ".join(each for each, kind in kinds.items() if kind in wanted)
        advice = "leave it out, because there is none"
        if known:
            advice = f"name one of {known}"
        expected = f"a column of type {', '.join(wanted)}"
        raise SearchError(f"{field}: found {name[:LONGEST_FOUND]!r}, expected {expected}; {advice}")


def _check_fields(query: Query) -> None:
    if query.id is not None and query.text is not None:
        raise SearchError(f"id: found {query.id[:LONGEST_FOUND]!r} with a text, expected one of them; leave one out")
    if query.id is None and query.text is None and query.vector is None:
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


def add_highlights(
    bundle: AnyBundle,
    results: "Sequence[GroupResult]",
    texts: Sequence[str],
    query: str | None,
    mode: str,
    others: Set[str] = frozenset(),
) -> None:
    """Add `highlights` and `snippet` to results; texts are theirs.

    Without a query, a snippet is the beginning of the text, and there are no highlights. The highlights of a
    snippet count in the snippet; all other ranges count in the text. others are the terms that replace misspelled words
    of the query or complete its last word.
    """
    corpus = bundle.manifest.corpus
    if query:
        terms = TermsOfWords(query, corpus.keywords.stemmers if corpus.keywords else [None], others)
        found = highlight(texts, terms, marks_words=mode != "semantic")
    else:
        found = [beginning(text) for text in texts]
    for result, text, parts in zip(results, texts, found, strict=True):
        start, end = parts.snippet
        ranges = [one for one in parts.ranges if one[0] < one[1]]
        inside = [(max(first, start) - start, min(last, end) - start) for first, last in ranges]
        result["highlights"] = ranges
        result["snippet"] = {
            "start": start,
            "end": end,
            "text": text[start:end],
            "highlights": [one for one in inside if one[0] < one[1]],
        }
