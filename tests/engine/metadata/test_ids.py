"""Rows by their ids: found as Python finds and compares them, without a step of Python for each row or byte."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.engine.metadata.columns import COMPARED, IdColumn, sort_strings
from semsearch.engine.tensors import Strings, TensorsError

PREFIX = "docs/guide/"  # longer than the bytes that are compared at a time
texts = st.text("ab\x00ü🦆", max_size=10) | st.text("ab", max_size=3).map(PREFIX.__add__)


def strings_of(ids: Sequence[bytes]) -> Strings:
    offsets = np.cumsum([0, *map(len, ids)]).astype(np.uint64)
    return Strings(np.frombuffer(b"".join(ids), np.uint8), offsets)


@given(ids=st.lists(texts, max_size=30), more=st.lists(texts, max_size=5), mask=st.integers(0))
def test_the_first_row_with_an_id_is_found_among_the_allowed_rows(ids: list[str], more: list[str], mask: int) -> None:
    column = IdColumn(strings_of([id.encode() for id in ids]))
    allowed = np.array([mask >> row & 1 for row in range(len(ids))], np.bool_)
    for id in [*ids, *more]:
        rows = [row for row, other in enumerate(ids) if other == id]
        assert column.find(id) == next(iter(rows), None)
        assert column.find(id, allowed) == next((row for row in rows if allowed[row]), None)


@given(ids=st.lists(texts, max_size=30), data=st.data())
def test_ids_compare_as_bytes_do(ids: list[str], data: st.DataObject) -> None:
    value = data.draw(st.sampled_from([*ids, "a"]) | texts)
    encoded, wanted = [id.encode() for id in ids], value.encode()
    column = IdColumn(strings_of(encoded)).sorted
    for operator, comparison in COMPARED.items():
        expected = [bool(comparison.values(id, wanted)) for id in encoded]  # type: ignore[arg-type] # as numbers do
        assert column.compare(operator, wanted).tolist() == expected
    assert column.starts_with(wanted).tolist() == [id.startswith(wanted) for id in encoded]
    assert column.equals_any([wanted, *encoded[:2]]).tolist() == [id in (wanted, *encoded[:2]) for id in encoded]
    assert column.exists().all()


@given(strings=st.lists(st.binary(max_size=20), max_size=40))
def test_strings_are_sorted_as_bytes_are(strings: list[bytes]) -> None:
    first, codes = sort_strings(strings_of(strings))
    assert [strings[place] for place in first] == sorted(set(strings))
    assert [strings[place] for place in first[codes]] == strings


def lines_of(work: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def ids_of(rows: int, tail: str = "") -> list[bytes]:
    return [f"{row:05}{tail}".encode() for row in range(rows)]


def test_finding_an_id_takes_no_step_for_each_row_or_byte() -> None:
    few, many = (IdColumn(strings_of(ids_of(rows, "x" * 20_000))) for rows in (10, 1_000))
    for id in ("00005" + "x" * 20_000, "y" * 20_005, "y" * 5_000_000):
        assert many.find(id) == few.find(id)
        assert lines_of(lambda id=id: many.find(id)) <= 500  # type: ignore[misc]


@pytest.mark.parametrize("start", [b"00005", b"y" * 1_000_000])
def test_comparing_ids_takes_no_step_for_each_row_or_byte(start: bytes) -> None:
    column = IdColumn(strings_of(ids_of(20_000)))
    assert lines_of(lambda: column.sorted) < 500
    for work in (lambda: column.sorted.compare("$gt", start), lambda: column.sorted.starts_with(start)):
        assert lines_of(work) < 500


def test_damaged_offsets_of_ids_are_refused() -> None:
    content = np.frombuffer(b"abcdef", np.uint8)
    for offsets in ([0, 4, 2, 6], [1, 2, 4, 6], [0, 2, 4, 5], [0, 2, 4, 7]):
        with pytest.raises(TensorsError, match=r"strings: .* offset"):
            IdColumn(Strings(content, np.array(offsets, np.uint64)))
