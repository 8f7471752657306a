"""The type of each metadata column, and its tensors; tests/engine/metadata compares their values."""

import json
import re
import reprlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch import Search, index
from semsearch.indexing.columns import choose_types, column_tensors, columns_of_numbers, describe_mixed, store_numbers
from semsearch.indexing.corpus import Corpus, CorpusError
from semsearch.indexing.corpus.passages import stored_columns
from semsearch.indexing.facts import read_facts
from tests.bundle_files import write_passages
from tests.indexing.memory import peak_of

SOURCE = Path("stories.jsonl")


def corpus_of(*metadata: dict[str, Any]) -> Corpus:
    count, lines = len(metadata), [json.dumps(one) for one in metadata]
    return Corpus(["x"] * count, [f"id-{row}" for row in range(count)], lines, facts=read_facts(lines))


def type_of(*values: object, asked: str | None = None) -> str:
    """Return the type of a column with these values; None stands for a row without one."""
    rows = [{} if value is None else {"column": value} for value in values]
    return choose_types(corpus_of(*rows), {} if asked is None else {"column": asked}, SOURCE)["column"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "b"], "string"),
        (["a", None], "string"),
        (["20240531"], "string"),
        ([5, None, 2.5], "number"),
        ([2**64 - 1, 0], "number"),
        ([2**64, 2.0**70, -1e300], "number"),
        ([True, False], "boolean"),
        ([["a"], [], ["b", "c"]], "list"),
        (["2024-05-31", None, "2024-05-31T12:00:00Z"], "date"),
        (["2024-05-31", "2024-05-31", "soon", "2024-05-31"], "string"),
        (["2024-02-30"], "string"),
        ([1, "a"], "none"),
        ([1, True], "none"),
        ([{"a": 1}], "none"),
        ([[0.5] * 100], "numbers"),
        ([[0.5] * 101], "none"),  # an embedding
    ],
    ids=reprlib.repr,
)
def test_a_column_has_the_type_that_all_its_values_have(values: list[object], kind: str) -> None:
    assert type_of(*values) == kind


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["2019", None, "-2.5e3"], "number"),
        (["true", "False"], "boolean"),
        (['["a", "b"]', "[]"], "list"),
        (["20240531", "2024-05-31"], "date"),
        (["2024-05-31"], "string"),
        ([2**64 + 1, 0.5, "a"], "string"),
        ([1, "a", {}], "none"),
        ([[0.5] * 101], "numbers"),
        ([[], "[]"], "numbers"),
    ],
    ids=reprlib.repr,
)
def test_a_type_that_was_asked_for_is_taken_if_all_values_fit(values: list[object], asked: str) -> None:
    assert type_of(*values, asked=asked) == asked


@pytest.mark.parametrize(
    ("value", "asked", "message"),
    [
        ("007", "number", "found '007' in the column 'column', expected a number; "),
        ("NaN", "number", "found 'NaN' in the column 'column', expected a number; "),
        (True, "number", "found True in the column 'column', expected a number; "),
        ("yes", "boolean", "found 'yes' in the column 'column', expected true or false; "),
        ("a,b", "list", "found 'a,b' in the column 'column', expected a list of strings; "),
        ("[" * 100_000, "list", "found '[[[[[[[[[[[[..."),
        ("31.5.2024", "date", "found '31.5.2024' in the column 'column', expected an ISO 8601 date or time, such as"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_that_does_not_fit_is_refused_with_its_row_and_id(value: object, asked: str, message: str) -> None:
    with pytest.raises(CorpusError) as caught:
        type_of(None, value, asked=asked)
    assert str(caught.value).startswith(f"stories.jsonl, text 1 (from 0, id 'id-1'): {message}")
    assert str(caught.value).endswith("; correct it, or choose another type with --column column=TYPE")


def test_the_first_value_that_does_not_fit_is_named_in_the_order_of_its_row() -> None:
    corpus = corpus_of({"a": 1, "b": 2}, {"c": 3, "b": "x", "a": "y"}, {"c": "z"})
    with pytest.raises(CorpusError, match=r"text 1 \(from 0, id 'id-1'\): found 'x' in the column 'b'"):
        choose_types(corpus, dict.fromkeys("abc", "number"), SOURCE)


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        (["x", 1], "a has strings in 1 of 2 rows, and row 1 (id id-1) has 1"),
        ([1, "x"], "a has numbers in 1 of 2 rows, and row 1 (id id-1) has 'x'"),
        (["x", "y", "z", 2, -1], "a has strings in 3 of 5 rows, and row 3 (id id-3) has 2"),
        (["x", "y", "z", -1, 2], "a has strings in 3 of 5 rows, and row 3 (id id-3) has -1"),
        ([-1, 2, 2**63, "x", "y"], "a has numbers in 3 of 5 rows, and row 3 (id id-3) has 'x'"),
        ([[0.5], ["x"], [0.5], None], "a has lists of numbers in 2 of 3 rows, and row 1 (id id-1) has ['x']"),
        ([True, {"b": 1}, True], "a has booleans in 2 of 3 rows, and row 1 (id id-1) has {'b': 1}"),
    ],
    ids=str,
)
def test_a_warning_names_the_first_value_of_the_kind_that_is_second(values: list[object], warning: str) -> None:
    corpus = corpus_of(*({} if value is None else {"a": value} for value in values))
    effect = "so filters, sort and facets cannot use it; correct that row"
    assert describe_mixed(corpus, {"a": "none"}) == {"a": f"{warning}, {effect}"}


@pytest.mark.parametrize(
    ("values", "found"),
    [([1, 2**64 + 1], 2**64 + 1), ([2**53 + 1, 0.5], 2**53 + 1), ([2**63 + 1, -1], 2**63 + 1), ([10**400], 10**400)],
    ids=range(4),
)
def test_numbers_that_filters_could_not_tell_apart_are_refused(values: list[object], found: int) -> None:
    shown = reprlib.repr(found)
    strings = list(map(str, values))  # as in CSV
    for column, asked in ((values, None), (values, "number"), (strings, "number")):
        with pytest.raises(
            CorpusError, match=re.escape(f"stories.jsonl: found {shown} in the column 'column', expected")
        ):
            type_of(None, *column, asked=asked)
    assert type_of(*strings) == "string"
    for kind in ("string", "none"):
        assert type_of(*values, asked=kind) == kind


def test_a_column_whose_name_filters_take_for_an_operator_is_refused() -> None:
    for name in ("$and", "$or", "$set"):
        corpus = corpus_of({"a": 1}, {name: "x"})
        with pytest.raises(CorpusError) as caught:
            choose_types(corpus, {}, SOURCE)
        assert str(caught.value) == (
            f"stories.jsonl: found the column '{name}', expected no $ at its beginning; rename it, or leave it out of "
            f"filters with --column '{name}=none'"
        )
        assert choose_types(corpus, {name: "none"}, SOURCE) == {name: "none", "a": "number"}
    assert choose_types(corpus_of({"$x": 1}, {"$x": "mixed"}), {}, SOURCE) == {"$x": "none"}


def test_an_unknown_column_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(CorpusError, match=r"found the columns 'author', 'year', .*; did you mean --column 'year'\?"):
        choose_types(corpus_of({"year": 1, "author": "a"}), {"yeer": "number"}, SOURCE)
    assert choose_types(corpus_of({"year": 1}), {"yeer": "none"}, SOURCE) == {"year": "number"}


@pytest.mark.parametrize(
    ("values", "are_numbers"),
    [
        (["5", "1.10", " 7"], True),
        (["5", "007"], False),
        (["5", "1e400"], False),
        ([str(2**64 - 1), "0"], True),
        ([str(2**64 - 1), "-1"], False),
        ([str(2**53 + 1), "0.5"], False),
        (["5", "true"], False),
    ],
    ids=str,
)
def test_strings_are_numbers_if_one_dtype_holds_all_of_them(values: list[str], are_numbers: bool) -> None:
    corpus = corpus_of({}, *({"a": value, "b": "x"} for value in values))
    assert columns_of_numbers(corpus, {"a": "string", "b": "string"}, ("string",)) == ["a"] * are_numbers
    assert columns_of_numbers(corpus, {"a": "none"}, ("string",)) == []


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)


@given(st.lists(st.dictionaries(names, st.integers(0, 9), max_size=4), min_size=1, max_size=5))
def test_columns_of_any_names_have_tensors_of_their_own(metadata: list[dict[str, Any]]) -> None:
    types = {name: "number" for row in metadata for name in row}
    tensors = column_tensors(corpus_of(*metadata), types)
    for name in types:
        values, codes = tensors[f"{name}.values"], tensors.get(f"{name}.codes", np.arange(len(metadata)))
        assert [int(values[codes[row]]) for row in range(len(metadata)) if name in metadata[row]] == [
            row[name] for row in metadata if name in row
        ]


@pytest.mark.parametrize(
    ("kind", "values", "most"),
    [("string", ["red", "green"], 40), ("list", [["red", "green"], ["red"]], 60), ("number", [1, 2.5, 3], 80)],
)
def test_a_value_takes_few_bytes_of_memory(kind: str, values: list[object], most: int) -> None:
    rows = 20_000
    corpus = corpus_of(*({"a": values[row % len(values)]} for row in range(rows)))
    column_tensors(corpus_of({"a": values[0]}), {"a": kind})  # what NumPy imports late counts no more
    assert peak_of(lambda: column_tensors(corpus, {"a": kind})) < most * rows


def test_the_summary_and_the_error_of_a_filter_name_the_value_that_took_the_type_of_a_column(out: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": f"a goose {row}", "price": row, "day": f"2024-05-{row + 10}", "note": "x"} for row in range(9)
    ]
    rows += [{"text": "a ferry", "price": "n/a", "day": ""}, {"text": "a judge"}]
    made = index(rows, out=out)
    assert made.warnings == (
        "day has dates in 9 of 10 rows, and row 9 (id 9) has '', so it is compared as text; correct that row",
        "price has numbers in 9 of 10 rows, and row 9 (id 9) has 'n/a', so filters, sort and facets cannot use it; "
        "correct that row",
    )
    with pytest.raises(ValueError, match="the values of 'price' are of several types, so it cannot be compared"):
        Search(out).search("goose", filter={"price": {"$lt": 3}})


def test_strings_of_numbers_are_stored_as_numbers_if_json_writes_all_of_a_column_the_same(tmp_path: Path) -> None:
    rows = [{"stars": "5", "price": "1.10", "who": "a", "day": "20240531"}, {"price": "2"}, {"stars": "-0.5"}]
    corpus, passages = corpus_of(*rows), tmp_path / "passages"
    write_passages(passages, corpus.texts, corpus.ids, corpus.metadata)
    kinds = {"stars": "number", "price": "number", "who": "string", "day": "number"}
    # merged into an index in which days are strings
    store_numbers(replace(corpus, columns=kinds), passages, before={"day": "string", "stars": "number"})
    _, _, metadata = stored_columns(passages)
    assert json.loads(metadata[0]) == {"stars": 5, "price": "1.10", "who": "a", "day": "20240531"}


def test_numbers_of_a_csv_are_numbers_in_hits_if_they_are_written_as_they_stood(out: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,stars,price,code\na goose,5,1.10,007\na ferry,4.5,12.5,008\na judge,,3,009\n")
    index(tmp_path / "a.csv", out=out)
    found = Search(out).search(filter={"price": {"$lt": 13}})
    assert [hit.metadata for hit in found] == [
        {"stars": 5, "price": "1.10", "code": "007"},
        {"stars": 4.5, "price": "12.5", "code": "008"},
        {"price": "3", "code": "009"},
    ]
