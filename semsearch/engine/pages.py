"""What a search does with its ranking beyond the first hits: further pages, groups such as documents, and copies.

A ranking is known by a function that finds its first hits, so that no search has to order every row. Each further
search is twice as deep as the one before, so that even a corpus of one huge document takes few of them. Imported by the
first query that needs it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semsearch.engine.hits import Find, Hit, Mask, Rows
from semsearch.engine.metadata.columns import Column
from semsearch.engine.tensors import AnyArray

HITS_PER_GROUP = 4  # hits that the first search finds for each group
NO_GROUP = np.iinfo(np.int64).max  # place of a group that is not found yet


@dataclass(frozen=True, slots=True)
class Group:
    """The best hits of the rows that share a value, best first. value is None for a row without one."""

    value: str | None
    hits: list[Hit]


def find_page(find: Find, offset: int, count: int) -> list[Hit]:
    """Return `count` hits after the first `offset`, or fewer if the ranking ends.

    Pages of the same count continue each other: a deeper search only adds hits behind those of the searches before it,
    even if it finds better ones that an approximate search has missed.
    """
    found: dict[int, Hit] = {}
    depth = count
    while True:
        hits = find(depth, None)
        for hit in hits:
            found.setdefault(hit.row, hit)
        if len(found) >= offset + count or len(hits) < depth:
            return list(found.values())[offset : offset + count]
        depth *= 2


def find_different(
    find: Find, column: Column, sections: AnyArray, allowed: Mask | None, offset: int, count: int
) -> list[Hit]:
    """Return `count` hits of different passages after the first `offset`, or fewer if there are fewer.

    The column has the path of each row's document. sections and allowed are as in `find_groups`. Passages at the same
    place of equal sections in several documents are copies of each other. The hit is the copy with the best score or,
    of copies with equal scores, the one with the shortest path. Pages of the same count continue each other.
    """
    documents = _number_groups(column)
    passages = np.arange(column.count)  # a number for each row, which copies of a passage share once a search finds one
    found: dict[int, Hit] = {}  # by the number of the passage
    mask, depth = allowed, count
    while True:
        hits = find(depth, mask)
        _number_passages(passages, _rows_of_sections(hits, sections, documents), sections, documents)
        for hit in hits:
            found.setdefault(int(passages[hit.row]), hit)
        if len(found) >= offset + count or len(hits) < depth:
            break
        mask = _rows_besides(list(found), passages, allowed)
        depth *= 2
    page = list(found.values())[offset : offset + count]
    copies = _copies(find, _rows_of_sections(page, passages, documents), passages, documents, allowed)
    return [_shortest(hit, copies.get(int(passages[hit.row]), ()), column, documents) for hit in page]


def _rows_besides(found: Sequence[int], passages: AnyArray, allowed: Mask | None) -> Mask:
    """Return the allowed rows of the passages that are not found yet, (rows,); found has the numbers of the others."""
    is_left = np.ones(len(passages), np.bool_)  # by the number of the passage
    is_left[found] = False
    if allowed is None:
        return is_left[passages]
    return is_left[passages] & allowed


def _number_passages(passages: AnyArray, rows: Rows, sections: AnyArray, documents: AnyArray) -> None:
    """Write into `passages` (rows,) the numbers of some rows, which copies of a passage share.

    rows (n,) are all rows of some sections, in the order of their documents. documents is (rows,), their numbers.
    """
    order = rows[np.argsort(sections[rows], kind="stable")]  # by section, then by document, then by row
    own_sections, own_documents = sections[order], documents[order]
    begins_section = np.ones(len(order), np.bool_)
    begins_section[1:] = own_sections[1:] != own_sections[:-1]
    begins_document = np.ones(len(order), np.bool_)
    begins_document[1:] = begins_section[1:] | (own_documents[1:] != own_documents[:-1])
    places = np.arange(len(order))
    first_of_section = np.maximum.accumulate(np.where(begins_section, places, 0))
    first_of_document = np.maximum.accumulate(np.where(begins_document, places, 0))
    passages[order] = order[first_of_section + places - first_of_document]


def find_groups(
    find: Find, column: Column, sections: AnyArray, allowed: Mask | None, offset: int, count: int, size: int
) -> list[Group]:
    """Return `count` groups after the first `offset`, in the order of their best hits, or fewer if there are fewer.

    The rows of a group share a string of the column; a row without a value is a group by itself. Each group has its
    best `size` hits, each of another section. sections is (rows,), a number for each row: rows of one section share
    it, and so do sections with equal texts. A section that several groups have belongs to the first of them; of groups
    with equal scores to the one with the shortest string, such as the path of a page in the main language.
    allowed is (rows,) bool, the rows that the ranking has, None for all. Pages of the same count continue each other.
    """
    numbers = _number_groups(column)
    places = np.full(len(column.values) + column.count, NO_GROUP)  # place of each group among the groups found so far
    owners = np.full(column.count, NO_GROUP)  # place of the group that each section belongs to
    best: dict[int, Hit] = {}  # by the number of the group
    mask, depth = allowed, HITS_PER_GROUP * count
    while True:
        hits = find(depth, mask)
        rows = _rows_of_sections(hits, sections, numbers)
        groups = numbers[rows]
        copies = _copies(find, rows, sections, numbers, allowed)
        for found in hits:
            if len(best) >= offset + count:
                break
            section = int(sections[found.row])
            if owners[section] == NO_GROUP:
                hit = _shortest(found, copies.get(section, ()), column, numbers)
                number = int(numbers[hit.row])
                begin, end = np.searchsorted(groups, [number, number + 1])
                own = sections[rows[begin:end]]
                owners[own[owners[own] == NO_GROUP]] = places[number] = len(best)
                best[number] = hit
        np.minimum.at(owners, sections, places[numbers])  # also the sections of these groups that no hit is of
        if len(best) >= offset + count or len(hits) < depth:
            break
        remaining = owners[sections] == NO_GROUP
        mask = remaining if mask is None else mask & remaining
        depth *= 2
    chosen = dict(list(best.items())[offset : offset + count])
    owned = owners[sections] == places[numbers]
    if allowed is not None:
        owned &= allowed
    others = _other_hits(find, numbers, column, sections, chosen, owned, size - 1)
    return [Group(_string(column, number), [hit, *others[number]]) for number, hit in chosen.items()]


def _number_groups(column: Column) -> AnyArray:
    """Return the number of each row's group, (rows,) int64: the string's, or a negative one of its own without one."""
    assert column.codes is not None  # strings always have a dictionary
    numbers: AnyArray = column.codes.astype(np.int64)
    if column.present is None:
        return numbers
    return np.where(column.exists(), numbers, -1 - np.arange(column.count))


def _shortest(found: Hit, copies: Sequence[Hit], column: Column, numbers: AnyArray) -> Hit:
    """Return the copy of a hit that has its score and the shortest string; the hit itself if it has no copies."""
    equal = [copy for copy in copies if copy.score == found.score]
    return min(equal, key=lambda copy: len(_string(column, int(numbers[copy.row])) or ""), default=found)


def _rows_of_sections(hits: Sequence[Hit], sections: AnyArray, numbers: AnyArray) -> Rows:
    """Return the rows of all sections that the hits are of, (n,), those of each group together.

    This passes over all rows once, instead of once for each hit.
    """
    is_of_hit = np.zeros(len(sections), np.bool_)  # by the number of the section
    is_of_hit[sections[[hit.row for hit in hits]]] = True
    rows = np.flatnonzero(is_of_hit[sections])
    return rows[np.argsort(numbers[rows], kind="stable")]


def _copies(
    find: Find, rows: Rows, sections: AnyArray, numbers: AnyArray, allowed: Mask | None
) -> dict[int, list[Hit]]:
    """Return the hits of each section that several groups of these rows (n,) have, by the number of the section."""
    one = np.empty_like(numbers)  # group of one row of each section
    one[sections[rows]] = numbers[rows]
    is_copied = np.zeros(len(sections), np.bool_)  # by the number of the section
    is_copied[sections[rows[one[sections[rows]] != numbers[rows]]]] = True
    mask = is_copied[sections]
    if allowed is not None:
        mask &= allowed
    copies: dict[int, list[Hit]] = {}
    for hit in find(int(np.count_nonzero(mask)), mask) if mask.any() else ():
        copies.setdefault(int(sections[hit.row]), []).append(hit)
    return copies


def _other_hits(
    find: Find,
    numbers: AnyArray,
    column: Column,
    sections: AnyArray,
    best: dict[int, Hit],
    allowed: Mask,
    size: int,
) -> dict[int, list[Hit]]:
    """Return up to `size` hits of each group besides its best one, best first, by the number of the group."""
    others: dict[int, list[Hit]] = {number: [] for number in best}
    complete = {number for number in best if number < 0 or size == 0}  # groups of which no more hits are needed
    is_seen = np.zeros(column.count, np.bool_)  # by the number of the section
    is_seen[[sections[hit.row] for hit in best.values()]] = True
    depth = HITS_PER_GROUP * (size + 1) * len(best)
    while len(complete) < len(best):
        mask = _rows_of(np.array([*best.keys() - complete]), numbers, column) & allowed & ~is_seen[sections]
        hits = find(depth, mask) if mask.any() else []
        for hit in hits:
            group = others[int(numbers[hit.row])]
            if len(group) < size and not is_seen[sections[hit.row]]:
                group.append(hit)
                is_seen[sections[hit.row]] = True
        if len(hits) < depth:
            break
        complete |= {number for number, group in others.items() if len(group) == size}
        depth *= 2
    return others


def _rows_of(groups: AnyArray, numbers: AnyArray, column: Column) -> Mask:
    """Return the rows of some groups; numbers is (rows,), the group of each row, negative for one without a value."""
    wanted = np.zeros(len(column.values) + column.count, np.bool_)  # a negative number is a place from the end
    wanted[groups] = True
    return wanted[numbers]


def _string(column: Column, number: int) -> str | None:
    if number < 0:
        return None
    return column.string(number)
