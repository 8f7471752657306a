"""Requests of all kinds in turn: by meaning, by words and by both, among all texts, half of them and a hundredth."""

from collections.abc import Sequence
from itertools import product
from typing import Any

LOTS = 100  # a bundle for these requests has a column `lot` with the numbers below this
KINDS = [*product(("semantic", "keyword", "hybrid"), (LOTS, LOTS // 2, 1))]  # mode, and how many lots a filter keeps


def mixed_request(number: int, queries: Sequence[str]) -> dict[str, Any]:
    """Return the body of the request to /similar with this number; KINDS take turns."""
    mode, lots = KINDS[number % len(KINDS)]
    body: dict[str, Any] = {"text": queries[number % len(queries)], "mode": mode}
    return body if lots == LOTS else body | {"filter": {"lot": {"$lt": lots}}}
