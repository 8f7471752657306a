"""Pages and groups of a ranking against sorting every row; and how many searches they take."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.engine.hits import Find, Hit, Mask
from semsearch.engine.pages import find_different, find_groups, find_page
from tests.bundle_files import column_of

MOST_ROWS = 40


class Ranking:
    """A ranking of rows by their scores, best first, that counts its searches. A row with the score 0 is not found."""

    def __init__(self, scores: Sequence[int]) -> None:
        self.order = sorted((row for row, score in enumerate(scores) if score), key=lambda row: (-scores[row], row))
        self.scores = scores
        self.searches = 0

    def find(self, count: int, mask: Mask | None) -> list[Hit]:
        self.searches += 1
        rows = [row for row in self.order if mask is None or mask[row]]
        return [Hit(row, float(self.scores[row])) for row in rows[:count]]


def missing_some(find: Find) -> Find:
    """Return a search that misses every third row, unless it searches for many more."""

    def find_some(count: int, mask: Mask | None) -> list[Hit]:
        hits = find(MOST_ROWS, mask)
        kept = [hit for hit in hits if hit.row % 3 or count > 4]
        return kept[:count] if len(kept) >= count else hits[:count]

    return find_some


scores = st.lists(st.integers(0, 9), max_size=MOST_ROWS)


@given(scores=scores, count=st.integers(1, 12))
def test_pages_of_an_approximate_ranking_have_each_row_once(scores: list[int], count: int) -> None:
    ranking = Ranking(scores)
    find = missing_some(ranking.find)
    rows = [hit.row for offset in range(0, len(scores) + count, count) for hit in find_page(find, offset, count)]
    assert sorted(rows) == sorted(ranking.order)
    assert rows[:count] == [hit.row for hit in find(count, None)]


# (path, section, text) of each row; rows of a document and a section have their texts in the order of the rows
Rows = list[tuple[str | None, int, str]]


def different(ranking: Ranking, rows: Rows, offset: int, count: int, mask: Mask | None = None) -> list[int]:
    """Return the rows of the hits of different passages."""
    column = column_of([path for path, _, _ in rows], "string")
    numbers = [section for _, section, _ in rows]
    sections = np.array([numbers.index(number) for number in numbers], np.uint32)  # the first row of each
    return [hit.row for hit in find_different(ranking.find, column, sections, mask, offset, count)]


@st.composite
def copied_documents(draw: st.DrawFn) -> Rows:
    """Draw documents, each of some sections in any order, whose passages have a text of their own in each section."""
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))  # passages of each section
    rows: Rows = []
    for path in draw(st.lists(st.sampled_from(["a", "bb", "cc", "ddd"]), unique=True)):
        for section in draw(st.lists(st.integers(0, len(lengths) - 1), unique=True)):
            rows += [(path, section, f"{section} {number}") for number in range(lengths[section])]
    # the rows of sections can be anywhere, but keep their order
    return [*draw(st.sampled_from([rows, sorted(rows, key=lambda row: row[2][-1])])), (None, 9, "9 0")]


@given(data=st.data(), rows=copied_documents())
def test_different_passages_are_those_of_comparing_their_texts(data: st.DataObject, rows: Rows) -> None:
    texts = sorted({text for _, _, text in rows})
    same = dict(
        zip(texts, data.draw(st.lists(st.integers(0, 9), min_size=len(texts), max_size=len(texts))), strict=True)
    )
    own = data.draw(st.lists(st.sampled_from([None, None, 4]), min_size=len(rows), max_size=len(rows)))  # as by a boost
    scores = [same[text] if other is None else other for (_, _, text), other in zip(rows, own, strict=True)]
    mask = data.draw(st.none() | st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    ranking = Ranking([score if mask is None or mask[row] else 0 for row, score in enumerate(scores)])
    expected: dict[str, list[int]] = {}
    for row in ranking.order:
        expected.setdefault(rows[row][2], []).append(row)
    shortest = [
        min((row for row in copies if scores[row] == scores[copies[0]]), key=lambda row: len(rows[row][0] or ""))
        for copies in expected.values()
    ]
    count = data.draw(st.integers(1, 5))
    masked = None if mask is None else np.array(mask, np.bool_)
    pages = [different(Ranking(scores), rows, offset, count, masked) for offset in range(0, len(rows) + 1, count)]
    assert pages == [shortest[offset : offset + count] for offset in range(0, len(rows) + 1, count)]


@pytest.mark.parametrize(("score", "first"), [(5, 1), (4, 0)])
def test_of_copies_the_best_is_a_hit_or_of_equal_scores_that_with_the_shortest_path(score: int, first: int) -> None:
    rows: Rows = [("longer", 0, "a"), ("b", 0, "a"), ("c", 1, "b")]
    assert different(Ranking([5, score, 3]), rows, 0, 2) == [first, 2]


def test_passages_of_a_section_are_different_and_sections_without_copies_are_too() -> None:
    rows: Rows = [("a", 0, "one"), ("a", 0, "two"), ("b", 0, "one"), ("b", 0, "two"), ("b", 1, "three")]
    assert different(Ranking([9, 8, 9, 8, 1]), rows, 0, 5) == [0, 1, 4]
    assert different(Ranking([9, 8]), rows[:2], 0, 5) == [0, 1]
    assert different(Ranking([]), [], 0, 5) == []


def test_a_passage_with_very_many_copies_takes_few_searches() -> None:
    rows: Rows = [*((f"{number}", 0, "a") for number in range(10_000)), *(("b", number, "b") for number in range(1, 4))]
    ranking = Ranking(range(len(rows), 0, -1))
    assert different(ranking, rows, 0, 4) == [0, 10_000, 10_001, 10_002]
    assert ranking.searches < 4
    ranking = Ranking([3, 2, 1])
    assert different(ranking, rows[10_000:], 0, 3) == [0, 1, 2]
    assert ranking.searches == 1  # as many as without copies


@given(data=st.data(), scores=scores)
def test_groups_are_those_of_sorting_every_row(data: st.DataObject, scores: list[int]) -> None:
    rows = len(scores)
    values = data.draw(st.lists(st.sampled_from([None, "", "a", "b", "ż"]), min_size=rows, max_size=rows))
    mask = data.draw(
        st.none() | st.lists(st.booleans(), min_size=rows, max_size=rows).map(lambda mask: np.array(mask, np.bool_))
    )
    offset, count, size = (data.draw(st.integers(low, 8)) for low in (0, 1, 1))
    ranking = Ranking([score if mask is None or mask[row] else 0 for row, score in enumerate(scores)])
    is_divided = data.draw(st.booleans())
    section = st.integers(0, max(rows // 3, 0)) if is_divided else st.nothing()
    sections = data.draw(st.lists(section, min_size=rows, max_size=rows)) if is_divided else list(range(rows))
    names = [row if value is None else value for row, value in enumerate(values)]
    owners: dict[int, object] = {}  # the first group of the ranking that has a section
    expected: dict[object, list[int]] = {}
    shown = set[int]()
    for first in ranking.order:
        row = first
        if sections[row] not in owners:
            copies = [other for other in ranking.order if sections[other] == sections[row]]
            if {names[row]} != {names[other] for other in range(rows) if sections[other] == sections[row]}:
                equal = [other for other in copies if scores[other] == scores[row]]
                row = min(equal, key=lambda other: len(values[other] or ""))
            own = {sections[other] for other, name in enumerate(names) if name == names[row]}
            owners |= dict.fromkeys(own - owners.keys(), names[row])
            expected[names[row]] = []
        if owners[sections[row]] == names[row] and sections[row] not in shown:
            expected[names[row]].append(row)
            shown.add(sections[row])
    column = column_of(values, "string")
    groups = find_groups(Ranking(scores).find, column, np.array(sections, np.uint32), mask, offset, count, size)
    assert [[hit.row for hit in group.hits] for group in groups] == [
        found[:size] for found in list(expected.values())[offset : offset + count]
    ]
    for group in groups:
        assert {values[hit.row] for hit in group.hits} == {group.value}


@given(scores=st.lists(st.integers(0, 9), min_size=MOST_ROWS, max_size=MOST_ROWS), count=st.integers(1, 5))
def test_pages_of_groups_of_an_approximate_ranking_have_each_group_once(scores: list[int], count: int) -> None:
    values = [str(row % 7) for row in range(MOST_ROWS)]
    column, find = column_of(values, "string"), missing_some(Ranking(scores).find)
    rows = np.arange(MOST_ROWS)
    pages = [find_groups(find, column, rows, None, offset, count, 2) for offset in range(0, 7 + count, count)]
    found = [group.value for page in pages for group in page]
    assert sorted(map(str, found)) == sorted({values[row] for row, score in enumerate(scores) if score})


def groups_of(ranking: Ranking, values: Sequence[str | None], sections: Sequence[int], *page: int) -> list[Any]:
    """Return the value of each group, and the rows of its hits."""
    groups = find_groups(ranking.find, column_of(values, "string"), np.array(sections), None, *page)
    return [(group.value, [hit.row for hit in group.hits]) for group in groups]


def test_a_group_behind_many_rows_of_another_one_has_its_hits() -> None:
    ranking = Ranking(range(104, 0, -1))
    values = ["a"] * 100 + ["b"] * 3 + [None]
    assert groups_of(ranking, values, range(104), 0, 3, 3) == [("a", [0, 1, 2]), ("b", [100, 101, 102]), (None, [103])]
    assert ranking.searches == 4  # two for the groups, and two for their other hits


@pytest.mark.parametrize(("score", "first"), [(5, ("b", [1])), (4, ("longer", [0]))])
def test_of_groups_with_the_same_section_and_score_the_one_with_the_shortest_value_has_it(
    score: int, first: tuple[str, list[int]]
) -> None:
    ranking = Ranking([5, score, 3])
    assert groups_of(ranking, ["longer", "b", "c"], [0, 0, 1], 0, 3, 2) == [first, ("c", [2])]


def test_a_group_with_most_rows_takes_few_searches() -> None:
    # the best 10,000 rows are of one document, the others of 3,000; each search that finds one document would be slow
    values = ["big"] * 10_000 + [f"small {row}" for row in range(3_000)]
    ranking = Ranking(range(len(values), 0, -1))
    column = column_of(values, "string")
    groups = find_groups(ranking.find, column, np.arange(len(values)), None, 2_900, 1, 3)
    assert [group.value for group in groups] == ["small 2899"]
    groups = find_groups(ranking.find, column, np.arange(len(values)), None, 0, 100, 20)
    assert [len(group.hits) for group in groups] == [20] + [1] * 99
    assert ranking.searches < 30


class Counted(np.ndarray[tuple[int], np.dtype[np.int64]]):
    """An array that counts how many of its values are compared or selected by a mask."""

    values_read = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        Counted.values_read += self.size
        return getattr(ufunc, method)(*(np.asarray(one) for one in inputs), **options)

    def __getitem__(self, key: Any) -> Any:
        Counted.values_read += np.size(key)
        return np.asarray(self)[key]


def test_the_work_for_groups_behind_a_large_offset_is_not_that_of_each_group_times_all_rows() -> None:
    # the last row of each group has the text of the first row of the next one
    rows = np.arange(4_000)
    column = column_of([str(row // 2) for row in rows.tolist()], "string")
    ranking = Ranking(range(len(rows), 0, -1))
    Counted.values_read = 0
    groups = find_groups(ranking.find, column, ((rows + 1) // 2).view(Counted), None, 900, 10, 1)
    assert [group.value for group in groups] == [str(number) for number in range(900, 910)]
    assert ranking.searches < 20
    assert Counted.values_read < 50 * len(rows)
