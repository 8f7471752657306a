"""The steps of a search: which of them can take long, so that a server does them in a thread, and its phases."""

from pathlib import Path
from typing import Any

import pytest

from semsearch.engine.loading import load_bundle
from semsearch.search.query import Query
from semsearch.search.search import LONG_QUERY
from tests.search.searching import steps_of

GOOSE = "an angry goose"
ROWS = 200  # those of the bundle
HALF = "goose".ljust(LONG_QUERY // 2, "x")
BOOST = {"chapter": {"log": True, "weight": 0.1}}


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({"text": GOOSE, "mode": "semantic"}, [ROWS, "embed", ROWS, "search"]),
        ({"text": GOOSE, "mode": "keyword"}, [ROWS, ROWS, "keyword"]),
        ({"text": GOOSE}, [ROWS, "keyword", "embed", ROWS, "search"]),
        ({"text": GOOSE, "filter": {"chapter": 5}}, [None, "filter", "keyword", "embed", ROWS, "search"]),
        ({"text": HALF * 2}, [ROWS, "keyword", "embed", ROWS, "search"]),
        ({"text": HALF * 2 + "x"}, [None, "keyword", "embed", ROWS, "search"]),
        ({"text": HALF, "without": ["x", HALF[1:]]}, [ROWS, "keyword", "embed", ROWS, "search"]),
        ({"text": HALF, "without": ["xx", HALF[1:]]}, [None, "keyword", "embed", ROWS, "search"]),
        ({"text": GOOSE, "boost": BOOST}, [ROWS, "keyword", "embed", None, "search"]),
        ({"text": GOOSE, "boost": {}}, [ROWS, "keyword", "embed", ROWS, "search"]),
        ({"text": GOOSE, "highlights": True}, [None, "keyword", "embed", None, "search"]),
        ({"id": "story-001"}, [None, 1, None, "search"]),
        ({"filter": {"chapter": 5}}, [None, "filter", None, "search"]),
        (
            {"text": GOOSE, "rerank": 5},
            [ROWS, "keyword", "embed", ROWS, None, "search", None, None, "rerank", ROWS, "search"],
        ),
        (
            {"text": GOOSE, "rerank": 5, "mode": "keyword"},
            [ROWS, ROWS, None, "search", None, None, "rerank", ROWS, "search"],
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_search_has_these_steps(rerank_bundle: Path, fields: dict[str, Any], steps: list[int | str | None]) -> None:
    assert steps_of(load_bundle(rerank_bundle), Query(**fields)) == steps
