"""Query.is_plain: a query with any field that is not listed as plain is searched as a refined one."""

from dataclasses import fields, make_dataclass, replace
from typing import Any

import pytest

from semsearch.search.query import PLAIN_FIELDS, Query, refining_fields

PLAIN = Query(text="goose", num_results=3)


def test_a_query_of_plain_fields_is_plain() -> None:
    assert PLAIN.is_plain
    assert not replace(PLAIN, text=None).is_plain


@pytest.mark.parametrize("name", sorted({field.name for field in fields(Query)} - set(PLAIN_FIELDS)))
def test_a_query_with_another_field_is_not_plain(name: str) -> None:
    changed: dict[str, Any] = {name: object()}
    assert not replace(PLAIN, **changed).is_plain


def test_a_field_that_is_added_is_compared_too() -> None:
    wider = make_dataclass("Wider", [("invented", tuple[str, ...], ())], bases=(Query,), frozen=True)
    assert refining_fields(wider) == refining_fields(Query) | {"invented": ()}
