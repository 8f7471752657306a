"""What is told of an index whose documents have changed."""

from types import SimpleNamespace
from typing import Any

import pytest

from semsearch.app.freshness import Since, describe_behind


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (Since(), ""),
        (Since(0), "made today; files changed since: 0"),
        (Since(error="no space"), "made today; error of the last update: no space"),
    ],
)
def test_an_index_is_described_if_something_has_happened_since_it_was_made(since: Since, expected: str) -> None:
    bundle: Any = SimpleNamespace(made="today")
    assert describe_behind(lambda: bundle, lambda: since) == expected
