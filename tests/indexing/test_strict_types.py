"""With `strict`, a row whose value has another type than its column stops an index; without it, there is a warning."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from semsearch import CorpusError, Search, index
from semsearch.engine.bundle import read_manifest
from tests.command_line import error_line, run
from tests.indexing.coats import coats, found

ROWS = [
    {
        **{"id": f"c-{number}", "text": f"A coat {number}", "price": 10 + number, "brand": "North", "warm": True},
        **{"day": f"2024-05-{number + 10}", "sizes": ["s", "m"], "lengths": [1, 2.5]},
    }
    for number in range(3)
]
TYPES = {
    **{"price": "number", "brand": "string", "warm": "boolean", "day": "date", "sizes": "list"},
    "lengths": "numbers",
}


@pytest.fixture(name="typed")
def make_typed(out: Path) -> Path:
    """An index with a column of each type."""
    index(ROWS, out=out)
    assert read_manifest(out).corpus.columns == dict(sorted(TYPES.items()))
    return out


def row(**values: Any) -> list[dict[str, Any]]:
    return [{"id": "c-1", "text": "A red coat"}, {"id": "new", "text": "A new coat", **values}]


OTHERS: list[tuple[str, Any, str]] = [
    ("price", "cheap", "a number"),
    ("price", True, "a number"),
    ("price", "2024-05-31", "a number"),
    ("price", [1], "a number"),
    ("price", {"eur": 1}, "a number"),
    ("brand", 5, "a string"),
    ("brand", False, "a string"),
    ("brand", ["North"], "a string"),
    ("warm", 1, "true or false"),
    ("warm", "true", "true or false"),
    ("day", "soon", "an ISO 8601 date or time"),
    ("day", "2024-05-32", "an ISO 8601 date or time"),
    ("day", 20240531, "an ISO 8601 date or time"),
    ("sizes", "s", "a list of strings"),
    ("sizes", [1], "a list of strings"),
    ("lengths", ["s"], "a list of numbers"),
    ("lengths", 1, "a list of numbers"),
]
SAME: list[tuple[str, Any]] = [
    *(("price", None), ("price", 0.5), ("price", -3), ("price", "12"), ("price", float("nan"))),
    *(("brand", ""), ("brand", "2024-05-31"), ("brand", "7"), ("warm", False), ("day", "2024-05-31T12:00:00Z")),
    *(("sizes", []), ("sizes", ["xl"]), ("lengths", []), ("lengths", [3]), ("another", 1)),
]


@pytest.mark.parametrize("mode", ["add", "upsert"])
@pytest.mark.parametrize(("column", "value", "expected"), OTHERS, ids=str)
def test_a_value_of_another_type_than_in_the_index_is_refused(
    column: str, value: Any, expected: str, mode: Any, typed: Path
) -> None:
    rows = row(**{column: value})[mode == "add" :]
    with pytest.raises(CorpusError) as raised:
        index(rows, out=typed, mode=mode, strict=True)
    place = (
        f"rows, text {len(rows) - 1} (from 0, id 'new'): found {value!r} in the column {column!r}, expected {expected}"
    )
    assert str(raised.value).startswith(place)
    assert "new" not in found(typed)
    made = index(rows, out=typed, mode=mode)
    assert [warning for warning in made.warnings if warning.startswith(f"{column} has")]
    assert found(typed)["new"] == "A new coat"


@pytest.mark.parametrize(("column", "value"), SAME, ids=str)
def test_a_value_of_the_type_in_the_index_or_none_is_taken(column: str, value: Any, typed: Path) -> None:
    made = index(row(**{column: value}), out=typed, mode="upsert", strict=True)
    assert made.warnings == ()
    assert made.manifest.corpus.columns == dict(
        sorted((TYPES | ({"another": "number"} if column == "another" else {})).items())
    )


def test_the_type_of_the_index_counts_also_if_all_its_rows_are_replaced(out: Path) -> None:
    index(coats(2), out=out, id_column="sku")
    rows = [{"sku": f"c-{number}", "text": "A coat", "price": "free"} for number in range(2)]
    with pytest.raises(CorpusError, match="found 'free' in the column 'price', expected a number"):
        index(rows, out=out, mode="upsert", strict=True)
    assert index(rows, out=out, mode="replace", strict=True).manifest.corpus.columns == {"price": "string"}


@pytest.mark.parametrize(
    ("values", "place", "expected"),
    [
        ([1, "x", 2], "text 1 (from 0, id '1'): found 'x'", "numbers, as most rows have there"),
        (["x", "y", None, 3.5], "text 3 (from 0, id '3'): found 3.5", "strings, as most rows have there"),
        ([1, "x"], "text 1 (from 0, id '1'): found 'x'", "numbers, as most rows have there"),
        ([True, 1, True], "text 1 (from 0, id '1'): found 1", "booleans, as most rows have there"),
        (["2024-05-31", "soon", "2024-06-01"], "text 1 (from 0, id '1'): found 'soon'", "dates, as most rows have"),
        ([[1], ["x"], [2]], "text 1 (from 0, id '1'): found ['x']", "lists of numbers, as most rows have there"),
    ],
    ids=["a string", "a number", "equal numbers of both", "a number among booleans", "no date", "a list"],
)
def test_a_first_index_has_the_type_of_most_rows(values: list[Any], place: str, expected: str, out: Path) -> None:
    rows = [{"text": "A coat", "k": value} for value in values]
    with pytest.raises(CorpusError) as raised:
        index(rows, out=out, strict=True)
    assert str(raised.value).startswith(f"rows, {place} in the column 'k', expected {expected}")
    assert str(raised.value).endswith("; correct it, or leave out strict=True")
    (warning,) = index(rows, out=out).warnings
    assert warning.startswith("k has ")


@pytest.mark.parametrize(
    "values",
    [[1, 2.5, None, -3], ["x", "2024-05-31"], [None, None], [[], [1]], [{"a": 1}, {"a": "x"}]],
    ids=["numbers", "a date among strings", "nothing", "an empty list", "objects, which no column has"],
)
def test_a_first_index_takes_columns_of_one_type(values: list[Any], out: Path) -> None:
    assert index([{"text": "A coat", "k": value} for value in values], out=out, strict=True).warnings == ()


def test_a_column_that_already_has_several_types_has_none_to_be_of(out: Path) -> None:
    index([{"text": "a", "k": 1}, {"text": "b", "k": "x"}], out=out)
    index([{"text": "c", "k": value} for value in (2, "y", [True])], out=out, mode="add", strict=True)
    assert len(found(out)) == 5


def test_a_new_column_of_merged_rows_has_the_type_of_most_of_them(typed: Path) -> None:
    rows = [{"id": f"n-{number}", "text": "A coat", "k": value} for number, value in enumerate([1, "x", 2])]
    with pytest.raises(
        CorpusError, match=r"text 1 \(from 0, id 'n-1'\): found 'x' in the column 'k', expected numbers"
    ):
        index(rows, out=typed, mode="add", strict=True)


def test_a_stated_type_is_refused_also_without_strict(typed: Path) -> None:
    for strict in (False, True):
        with pytest.raises(CorpusError, match="found 'cheap' in the column 'price', expected a number"):
            index(row(price="cheap"), out=typed, mode="upsert", column={"price": "number"}, strict=strict)
    made = index(row(brand=5), out=typed, mode="upsert", column={"brand": "string"}, strict=True)  # compared as "5"
    assert made.warnings == ()
    assert [hit.id for hit in Search(typed).search(filter={"brand": "5"})] == ["new"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_frame_whose_column_has_another_type_is_refused(frame: Any, typed: Path) -> None:
    with pytest.raises(CorpusError, match=r"text 0 \(from 0, id 'new'\): found '12 EUR' in the column 'price'"):
        index(frame({"id": ["new"], "text": ["a"], "price": ["12 EUR"]}), out=typed, mode="upsert", strict=True)


def test_strings_of_a_csv_are_the_numbers_that_they_state(typed: Path, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("id,text,price,brand\nc-1,A coat,3.10,7\n")
    assert index(table, out=typed, mode="upsert", strict=True).warnings == ()
    table.write_text("id,text,price\nc-1,A coat,3.10\nc-2,A coat,free\n")
    with pytest.raises(CorpusError, match=r"text 1 \(from 0, id 'c-2'\): found 'free' in the column 'price'"):
        index(table, out=typed, mode="upsert", strict=True)


def test_front_matter_of_documents_is_no_row(out: Path, tmp_path: Path) -> None:
    for name, weight in (("a", "1"), ("b", "high"), ("c", "2")):
        (tmp_path / f"{name}.md").write_text(f"---\nweight: {weight}\n---\nA coat {name}.\n")
    assert index(tmp_path, out=out, strict=True).manifest.corpus.rows == 3


def test_the_command_refuses_them_too(out: Path, tmp_path: Path) -> None:
    table = tmp_path / "rows.jsonl"
    table.write_text("\n".join(json.dumps({"text": "A coat", "k": value}) for value in (1, "x", 2)))
    line = error_line(run("index", table, "--out", out, "--strict"))
    assert "text 1 (from 0, id '1'): found 'x' in the column 'k', expected numbers" in line
    done = run("index", table, "--out", out)
    assert done.code == 0
    assert "k has numbers in 2 of 3 rows" in done.out + done.err
