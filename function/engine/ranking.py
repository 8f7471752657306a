"""What a search does with its ranking beyond the first hits: further pages, and one group for each document.

A ranking is known by a function that finds its first hits, so that no search has to order every row. Imported by the
first query that needs it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from function.engine.metadata.columns import Column
from function.engine.semantic.index import Hit, Mask

# Returns the first hits of a ranking among the rows of a mask, or fewer if there are fewer; None means all its rows.
Find = Callable[[int, Mask | None], list[Hit]]

HITS_PER_GROUP = 4  # hits that are searched for each group that is wanted, before the groups found so far are left out


@dataclass(frozen=True, slots=True)
class Group:
    """The rows that share a value of a column: their best hits, best first. value is None for a row without a value."""

    value: str | None
    hits: list[Hit]


def find_page(find: Find, offset: int, count: int) -> list[Hit]:
    """Return `count` hits after the first `offset`, or fewer if the ranking ends.

    Pages of the same count continue each other: a deeper search only adds hits behind those of the searches before it,
    even where it finds better ones that an approximate search has missed.
    """
    hits = depth_hits = find(count, None)
    depth = count
    while len(hits) < offset + count and len(depth_hits) == depth:
        depth *= 2
        depth_hits = find(depth, None)
        known = {hit.row for hit in hits}
        hits = hits + [hit for hit in depth_hits if hit.row not in known]
    return hits[offset : offset + count]


def find_groups(
    find: Find, column: Column, allowed: Mask | None, offset: int, count: int, passages: int
) -> list[Group]:
    """Return `count` groups after the first `offset`, in the order of their best hits, or fewer if there are fewer.

    column is one of strings; a row without a value is a group by itself. allowed is (rows,) bool, the rows that the
    ranking has, None for all. Each group has its best `passages` hits. With reciprocal rank fusion, the scores of hits
    are those of searches among fewer and fewer rows.
    """
    assert column.codes is not None  # strings always have a dictionary
    codes, exists = column.codes, column.exists()
    found: dict[int, Hit] = {}  # the best hit of each group, by its code, or -1 - row
    remaining = np.ones(len(codes), np.bool_) if allowed is None else allowed.copy()
    mask = allowed
    while len(found) < offset + count:
        hits = find(HITS_PER_GROUP * count, mask)
        if not hits:
            break
        before = set(found)
        for hit in hits:
            found.setdefault(int(codes[hit.row]) if exists[hit.row] else -1 - hit.row, hit)
        remaining &= ~_rows_of(set(found) - before, column, exists)
        mask = remaining
    chosen = dict(list(found.items())[offset : offset + count])
    members = _members(find, chosen, column, exists, allowed, passages) if passages > 1 else {}
    groups = []
    for code, best in chosen.items():
        others = [hit for hit in members.get(code, ()) if hit.row != best.row]
        value = None if code < 0 else bytes(column.values[code]).decode("utf-8", "surrogatepass")
        groups.append(Group(value, [best, *others][:passages]))
    return groups


def _rows_of(groups: set[int], column: Column, exists: Mask) -> Mask:
    """Return the rows of some groups."""
    assert column.codes is not None
    mask = np.isin(column.codes, [code for code in groups if code >= 0]) & exists
    mask[[-1 - code for code in groups if code < 0]] = True
    return mask


def _members(
    find: Find, chosen: dict[int, Hit], column: Column, exists: Mask, allowed: Mask | None, passages: int
) -> dict[int, list[Hit]]:
    """Return at least the best `passages` hits of each group, best first, by the group's code."""
    assert column.codes is not None
    groups = {code for code in chosen if code >= 0}
    mask = _rows_of(groups, column, exists)
    if allowed is not None:
        mask &= allowed
    members: dict[int, list[Hit]] = {code: [] for code in groups}
    for hit in find(2 * passages * len(groups), mask) if groups else ():
        members[int(column.codes[hit.row])].append(hit)
    for code, hits in members.items():
        if len(hits) < passages:  # the hits of other groups may have displaced some of its own
            members[code] = find(passages, mask & (column.codes == code))
    return members
