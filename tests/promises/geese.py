"""Eight texts, each less like "goose" than the one before, by its meaning and by its words. c1 and c2 are equal.

So all modes return the same order, which a test can write down. In the index they are in another order.
"""

from typing import Any

import pytest

from semsearch import Search
from tests.promises.conftest import SearchOf, corpus_of, ids_of
from tests.rerankers import add_reranker
from tests.world import write_bundle

GEESE: list[dict[str, Any]] = [
    {"id": "d", "text": "goose ferry radio spoon", "river": "south", "price": 1, "new": True, "seen": "2024-05-01"},
    {"id": "c1", "text": "goose ferry radio", "river": "north", "price": 2, "seen": "9999-01-01"},
    {"id": "g", "text": "goose ferry radio spoon apples door letter", "price": 0, "new": True, "seen": "0001-01-01"},
    {"id": "a", "text": "goose", "river": "north", "price": 3, "new": False},
    {"id": "f", "text": "goose ferry radio spoon apples door", "river": "north"},
    {"id": "c2", "text": "goose ferry radio"},
    {"id": "b", "text": "goose ferry", "river": "south", "price": 1},
    {"id": "e", "text": "goose ferry radio spoon apples", "river": "east", "price": 2},
]
GEESE = [row | {"kind": "bird"} for row in GEESE]
MODES = ("semantic", "keyword", "hybrid")
# the arguments of a search in each column of the table of promises, and what it returns
ARGUMENTS: dict[str, dict[str, Any]] = {mode: {"text": "goose", "mode": mode} for mode in MODES}
ARGUMENTS |= {"id": {"id": "a"}, "listing": {}}
QUERIES = (*MODES, "id")  # those that have scores
ORDERS = dict.fromkeys(MODES, "a b c1 c2 d e f g") | {"id": "b c1 c2 d e f g", "listing": "d c1 g a f c2 b e"}


@pytest.fixture(scope="session")
def geese(search_of: SearchOf) -> Search:
    """The index of GEESE."""
    return search_of(GEESE)


@pytest.fixture(scope="session")
def reranked(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """The index of GEESE with a reranker, whose score alone counts: from g, the best one, over f a e c1 c2 d to b."""
    return Search(
        add_reranker(write_bundle(tmp_path_factory.mktemp("reranked") / "bundle", corpus_of(GEESE)), weight=1.0)
    )


def ask(search: Search, mode: str, **fields: Any) -> str:
    """Return the ids that a search finds in one of the columns, in their order; at most 100 unless fields say more."""
    arguments: dict[str, Any] = {"top_k": 100} | ARGUMENTS[mode] | fields
    return " ".join(ids_of(search.search(**arguments)))


def groups(search: Search, mode: str, **fields: Any) -> list[str]:
    """Return the value of each group, and the ids of its texts."""
    arguments: dict[str, Any] = {"group_by": "river", "top_k": 100} | ARGUMENTS[mode] | fields
    hits = search.search(**arguments)
    return [f"{hit.group}: {' '.join(ids_of([hit, *hit.other_passages]))}" for hit in hits]
