"""The columns of an update, which are taken from the older index, equal those of all rows made at once."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.indexing.columns import (
    COLUMN_TYPES,
    NONE,
    OlderColumns,
    choose_types,
    column_tensors,
    columns_of_numbers,
    describe_mixed,
)
from semsearch.indexing.corpus import Corpus, CorpusError
from semsearch.indexing.facts import read_facts, update_facts

Row = dict[str, Any]
SOURCE = Path("stories.jsonl")
CUT = "{"  # JSON that cannot be parsed


def corpus_of(rows: Sequence[Row]) -> Corpus:
    lines = [json.dumps(row) for row in rows]
    return Corpus(["x"] * len(rows), [f"id-{row}" for row in range(len(rows))], lines, facts=read_facts(lines))


def types_of(corpus: Corpus, requested: Mapping[str, str]) -> dict[str, str]:
    return {name: kind for name, kind in choose_types(corpus, requested, SOURCE).items() if kind != NONE}


def described(tensors: Mapping[str, AnyArray]) -> dict[str, tuple[str, bytes]]:
    return {name: (str(tensor.dtype), tensor.tobytes()) for name, tensor in tensors.items()}


def update(
    before: Sequence[Row], after: Sequence[int | Row], requested: tuple[dict[str, str], dict[str, str]] = ({}, {})
) -> tuple[Corpus, OlderColumns]:
    """Return the corpus of an update, and the older columns; `after` has new rows and the numbers of older ones.

    requested are the types of the older index and those of the update.
    """
    older = corpus_of(before)
    types = types_of(older, requested[0])
    rows = np.array([each if isinstance(each, int) else -1 for each in after], np.intp)
    new = corpus_of([each for each in after if not isinstance(each, int)])
    corpus = corpus_of([before[each] if isinstance(each, int) else each for each in after])
    tensors = column_tensors(older, types)
    for tensor in tensors.values():
        tensor.flags.writeable = False  # as those of a file are
    return replace(corpus, facts=update_facts(older.facts, rows, new.facts)), OlderColumns(types, tensors, rows)


def without_older(corpus: Corpus, older: OlderColumns) -> Corpus:
    """Return the corpus with JSON that cannot be parsed in the rows that stay."""
    metadata = [CUT if row >= 0 else each for row, each in zip(older.rows, corpus.metadata, strict=True)]
    return replace(corpus, metadata=metadata)


def parts_of(before: Sequence[object], after: Sequence[int | list[Any]]) -> dict[str, list[Any]]:
    """Return the tensors of an update of one column, which are compared with those of a fresh index.

    `after` has the numbers of rows that stay, and lists with one new value. None is a row without a value.
    """

    def row_of(value: object) -> Row:
        return {} if value is None else {"a": value}

    corpus, older = update([*map(row_of, before)], [each if isinstance(each, int) else row_of(*each) for each in after])
    types = types_of(corpus, {})
    found = column_tensors(without_older(corpus, older) if types == older.types else corpus, types, older)
    assert described(found) == described(column_tensors(corpus, types))
    return {name: tensor.tolist() for name, tensor in found.items()}


def test_words_that_no_row_has_any_more_are_gone_and_new_ones_are_in_their_places() -> None:
    tensors = parts_of(["b", "d", "f", "b"], [0, 1, ["c"], ["g"], ["a"], ["d"], 3])
    assert bytes(tensors["a.values"]) == b"abcdg"
    assert tensors["a.codes"] == [1, 3, 2, 4, 0, 3, 1]


def test_rows_that_move_take_their_values_with_them() -> None:
    assert parts_of(["a", "b", "c"], [2, ["x"], 0])["a.codes"] == [1, 2, 0]
    tensors = parts_of([["a", "b"], [], ["b"]], [2, [["c", "a"]], 1, 0])
    assert (tensors["a.codes"], tensors["a.rows"]) == ([1, 2, 0, 0, 1], [0, 1, 1, 3, 3])
    assert parts_of([["a"], ["b"]], [0, [["c"]]])["a.codes"] == [0, 1]


def test_rows_without_a_value_stay_without_one() -> None:
    assert parts_of(["a", None, "b"], [1, 2])["a.present"] == [0b01000000]
    assert "a.present" not in parts_of(["a", None, "b"], [0, 2])
    assert parts_of([[], None], [0, 1])["a.present"] == [0b10000000]


@pytest.mark.parametrize(
    ("before", "after", "dtype"),
    [
        ([1, 2], [0, [0.5]], "float64"),
        ([1, 0.5], [0, [2]], "int64"),
        ([2**53 + 1, 2], [0, [2**63]], "uint64"),
        ([2**63, 2**53 + 1], [1, [-1]], "int64"),
        ([2**64, -(2**63)], [1], "int64"),
        ([2**63, 0], [0, [-1]], "float64"),
        ([[2**64 - 1], [1]], [1, [[2, 0.5]]], "float64"),
        ([[0.5], [1]], [1], "int64"),
    ],
    ids=str,
)
def test_numbers_have_the_dtype_that_a_fresh_index_chooses(before: list[Any], after: list[Any], dtype: str) -> None:
    parts_of(before, after)  # compares the tensors
    corpus, older = update([{"a": each} for each in before], [e if isinstance(e, int) else {"a": e[0]} for e in after])
    tensors = column_tensors(without_older(corpus, older), types_of(corpus, {}), older)
    assert tensors["a.values"].dtype == dtype


def test_numbers_get_a_dictionary_and_lose_it_as_its_size_says() -> None:
    assert "a.codes" not in parts_of([*range(7), 6], [*range(8)])  # both ways take 64 bytes
    assert "a.codes" in parts_of([*range(7), 6], [*range(8), [6]])
    few, many = [1, 2] * 20, [*range(40)]
    assert "a.codes" in parts_of(few, [*range(40)])
    assert "a.codes" not in parts_of(few, [0, *([each] for each in many)])
    assert "a.codes" in parts_of(many, [0, *([each] for each in few)])


def test_a_column_whose_type_changes_with_one_row_is_made_of_all_rows() -> None:
    assert parts_of([1, 2, "x"], [0, 1])["a.values"] == [1, 2]
    assert parts_of(["2024-05-31", "soon"], [0])["a.values"] == [1_717_113_600_000_000]
    assert bytes(parts_of(["2024-05-31"], [0, ["soon"]])["a.values"]) == b"2024-05-31soon"
    assert parts_of([1, 2], [0, ["x"], 1]) == {}
    assert bytes(parts_of([[]], [0, [["b"]]])["a.values"]) == b"b"
    assert parts_of([[]], [0, [[7]]])["a.values"] == [7]


def test_a_column_goes_with_its_last_row() -> None:
    corpus, older = update([{"a": 1}, {"b": "x"}], [1, {"c": True}])
    assert types_of(corpus, {}) == {"b": "string", "c": "boolean"}
    tensors = column_tensors(without_older(corpus, older), types_of(corpus, {}), older)
    assert tensors.keys() == {"b.values", "b.offsets", "b.codes", "b.present", "c.values", "c.present"}


def test_a_new_column_is_read_from_the_rows_that_have_it() -> None:
    rows: list[Row] = [{"a": 1, "b": "5"}, {"a": 2}, {"a": 3}]
    corpus, older = update(rows, [0, 1, {"c": 3}], ({"b": NONE}, {"b": "number"}))
    types = types_of(corpus, {"b": "number"})
    unread = replace(corpus, metadata=[corpus.metadata[0], CUT, corpus.metadata[2]])
    assert described(column_tensors(unread, types, older)) == described(column_tensors(corpus, types))


def test_a_row_that_is_read_for_one_column_has_its_list_of_another_once() -> None:
    rows: list[Row] = [{"a": ["x"], "b": 1}, {"a": ["y", "x"], "b": 2}]
    corpus, older = update(rows, [1, 0], ({}, {"b": "string"}))
    tensors = column_tensors(corpus, types_of(corpus, {"b": "string"}), older)
    assert (tensors["a.codes"].tolist(), tensors["a.rows"].tolist()) == ([1, 0, 0], [0, 0, 1])


def test_older_columns_are_taken_from_a_mapped_file(tmp_path: Path) -> None:
    rows: list[Row] = [{"a": "x", "b": [1, 2], "c": 0.5}, {"a": "y", "b": []}, {"a": "z", "b": [3]}]
    corpus, older = update(rows, [2, {"a": "w", "b": [0]}, 0])
    save_file(dict(older.tensors), tmp_path / "columns")
    mapped = replace(older, tensors=map_tensors(tmp_path / "columns"))
    types = types_of(corpus, {})
    assert described(column_tensors(corpus, types, mapped)) == described(column_tensors(corpus, types))


def test_a_zero_below_zero_is_stored_as_zero() -> None:
    assert str(parts_of([-0.0, 0.5], [1, [0.0]])["a.values"]) == "[0.5, 0.0]"
    assert str(parts_of([0, 0.5], [1, [-0.0]])["a.values"]) == "[0.5, 0.0]"
    assert str(parts_of([[-0.0, 0.5]], [0])["a.values"]) == "[0.0, 0.5]"


POOLS: list[list[Any]] = [
    ["a", "b", "ab", "", "żó"],
    [0, 1, 2, 0.5, 2**53 + 1, 2**63, -1, 2.0**70],
    ["5", "1.5", "20240531", "x", "true"],
    ["2024-05-31", "2024-06-30T12:00:00Z", "2024-02-30", "soon"],
    [True, False],
    [[], ["a"], ["b", "a"], [None, "c"]],
    [[], [1], [2, 0.5], [2**63, 1]],
    [1, "1", [1], {}],
]


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except CorpusError as error:
        return str(error)


@given(st.data())
def test_an_update_by_arrays_equals_all_rows_made_at_once(data: st.DataObject) -> None:
    pools = {name: data.draw(st.sampled_from(POOLS)) for name in "ab"}
    rows = st.fixed_dictionaries({}, optional={name: st.sampled_from(pool) for name, pool in pools.items()})
    before = data.draw(st.lists(rows, min_size=1, max_size=6))
    staying = data.draw(st.permutations(range(len(before))))[: data.draw(st.integers(0, len(before)))]
    after: list[int | Row] = data.draw(st.permutations([*staying, *data.draw(st.lists(rows, max_size=3))]))
    kinds = st.fixed_dictionaries({}, optional=dict.fromkeys("ab", st.sampled_from([*COLUMN_TYPES, *[NONE] * 5])))
    requested = data.draw(kinds), data.draw(kinds)
    updated = outcome(lambda: update(before, after, requested))
    if isinstance(updated, str):
        return  # there is no older index
    corpus, older = updated
    fresh = replace(corpus, facts=read_facts(corpus.metadata))
    types = outcome(lambda: types_of(fresh, requested[1]))
    assert outcome(lambda: types_of(corpus, requested[1])) == types
    if isinstance(types, str):
        return
    chosen = choose_types(fresh, requested[1], SOURCE)
    assert columns_of_numbers(corpus, chosen, ("string",)) == columns_of_numbers(fresh, chosen, ("string",))
    assert describe_mixed(corpus, chosen) == describe_mixed(fresh, chosen)
    assert described(column_tensors(corpus, types, older)) == described(column_tensors(fresh, types))
