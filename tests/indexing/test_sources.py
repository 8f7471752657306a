"""The same rows from every source, compared by what searches find: dicts, pandas, polars, Arrow, CSV, JSON, Parquet."""

import csv
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from semsearch import CorpusError, Search, index

KINDS = {
    **{"small": "number", "precise": "number", "whole": "number", "flag": "boolean", "word": "string"},
    **{"day": "date", "moment": "date", "zoned": "date", "tags": "list"},
}
ROWS: list[dict[str, Any]] = [
    {
        "id": f"row-{number}",
        "text": f"An angry goose {number}",
        "small": (1e-12, 3e-11, 2e-13)[number % 3],
        "precise": 52.520008123456 + number / 1e9,
        "whole": 2**53 + 1 + number,
        "flag": number % 2 == 0,
        "word": ('say "no", then', "café\tŻ", "🦆")[number % 3],
        "day": date(2024, 5, 30) + timedelta(days=number),
        "moment": datetime(2024, 5, 31, 12, 0, 0, 123456) + timedelta(microseconds=number),
        "zoned": datetime(2024, 5, 31, 12, 0, 0, 999999, tzinfo=UTC) + timedelta(hours=number),
        "tags": ["a", "b"] if number % 2 else ["c"],
    }
    for number in range(5)
]
ROWS.append({"id": "row-5", "text": "An angry goose 5"} | dict.fromkeys(KINDS))
FILTERS: list[dict[str, Any]] = [
    *({"small": {"$gt": 0}}, {"small": 1e-12}, {"precise": 52.520008123456}, {"precise": {"$gt": 52.5200081244}}),
    *({"whole": 2**53 + 2}, {"whole": {"$lte": 2**53 + 3}}, {"flag": True}, {"word": "🦆"}, {"word": "café\tŻ"}),
    *({"day": "2024-06-01"}, {"day": {"$lt": "2024-06-01"}}, {"moment": "2024-05-31T12:00:00.123457"}),
    *({"moment": {"$gt": "2024-05-31T12:00:00.123457"}}, {"zoned": "2024-05-31T13:00:00.999999Z"}, {"tags": "a"}),
    *({name: {"$exists": False}} for name in KINDS),
]


def as_pandas(folder: Path) -> Any:
    dtypes = {"whole": "Int64", "flag": "boolean"}  # otherwise pandas makes floats of whole numbers beside a blank
    return pd.DataFrame({name: pd.Series([row[name] for row in ROWS], dtype=dtypes.get(name)) for name in ROWS[0]})


def as_csv(folder: Path) -> Path:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ROWS[0])
        writer.writeheader()
        for row in ROWS:
            dates = {name: value.isoformat() for name, value in row.items() if isinstance(value, date)}
            writer.writerow(row | dates | {"tags": row["tags"] and json.dumps(row["tags"])})
    return folder / "rows.csv"


def as_json(folder: Path) -> Path:
    (folder / "rows.json").write_text(json.dumps(ROWS, default=lambda value: value.isoformat()), encoding="utf-8")
    return folder / "rows.json"


def as_parquet(folder: Path) -> Path:
    pl.DataFrame(ROWS).write_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "dicts": lambda folder: ROWS,
    "pandas": as_pandas,
    "polars": lambda folder: pl.DataFrame(ROWS),
    "polars, lazily": lambda folder: pl.LazyFrame(ROWS),
    "Arrow": lambda folder: pa.Table.from_pylist(ROWS),
    "CSV": as_csv,
    "JSON": as_json,
    "Parquet": as_parquet,
}


class Kind(StrEnum):
    COAT = "coat"


class Size(IntEnum):
    LARGE = 3


@pytest.fixture
def indexed(out: Path) -> Callable[..., Search]:
    """Return what makes an index of rows, with the tests' model, and opens it."""

    def make(data: Any, **options: Any) -> Search:
        index(data, out=out, **options)
        return Search(out)

    return make


def test_a_comma_in_a_number_is_a_decimal_one_only_if_that_is_stated(
    indexed: Callable[..., Search], tmp_path: Path
) -> None:
    (tmp_path / "prices.csv").write_text('text,price\na goose,"1,50"\na swan,"2,25"\n', encoding="utf-8")
    assert [hit.metadata["price"] for hit in indexed(tmp_path / "prices.csv").search()] == ["1,50", "2,25"]
    stated = indexed(tmp_path / "prices.csv", decimal_comma=True)
    assert [hit.id for hit in stated.search(filter={"price": {"$gt": 1.5}})] == ["1"]
    assert [hit.metadata["price"] for hit in stated.search()] == ["1.50", "2.25"]
    assert stated.columns["price"].lowest == 1.5


@pytest.mark.parametrize("source", SOURCES)
def test_filters_find_the_same_rows_of_any_source(source: str, indexed: Callable[..., Search], tmp_path: Path) -> None:
    search = indexed(SOURCES[source](tmp_path), column=KINDS)
    for condition in FILTERS:
        found = [hit.id for hit in search.search(filter=condition, top_k=100)]
        assert found == [row["id"] for row in ROWS if passes(row, condition)], condition
    for name in ("small", "precise", "whole", "moment", "zoned"):
        found = [hit.id for hit in search.search(filter={}, sort={name: "desc"}, top_k=5)]
        assert found == [row["id"] for row in sorted(ROWS[:5], key=lambda row: row[name], reverse=True)], name


def passes(row: dict[str, Any], condition: dict[str, Any]) -> bool:
    """Return whether a row passes a filter with one column and one operator."""
    ((name, wanted),) = condition.items()
    value = row[name]
    if not isinstance(wanted, dict):
        wanted = {"$eq": wanted}
    ((operator, operand),) = wanted.items()
    if operator == "$exists":
        return (value is not None) is operand
    if value is None:
        return False
    if isinstance(value, date):
        operand = type(value).fromisoformat(operand)
    if isinstance(value, list):
        return operand in value
    compare = {"$eq": value.__eq__, "$gt": getattr(value, "__gt__", None), "$lt": getattr(value, "__lt__", None)}
    compare["$lte"] = getattr(value, "__le__", None)
    return bool(compare[operator](operand))


def test_scalars_and_decimals_are_values_and_missing_ones_are_missing(indexed: Callable[..., Search]) -> None:
    rows = [
        {"text": "a", "n": np.int64(100), "f": np.float32(9.5), "ok": np.bool_(True), "cost": Decimal("140.00")},
        {"text": "b", "n": np.int64(9), "f": np.float32(20), "ok": np.bool_(False), "cost": Decimal("9.50")},
        {"text": "c", "n": pd.NA, "f": float("nan"), "ok": None, "cost": Decimal("NaN"), "at": pd.NaT},
        {"text": "d", "n": 20, "at": np.datetime64("2024-05-31T12:00:00.123456"), "tags": np.array(["x"])},
        {"text": "e", "day": np.datetime64("2024-05-31"), "kind": Kind.COAT, "size": Size.LARGE, "none": None},
        {"text": "f", "at": np.datetime64("NaT"), "open": time(9, 30), "day": date(2024, 5, 31), "of": (1, [2])},
        {"text": "g", "in": {1: np.float64(0.5), "b": {"c": pd.NA}}, "cost": Decimal("Infinity")},
    ]
    search = indexed(rows)
    assert [hit.metadata for hit in search.search(filter={}, top_k=9)] == [
        {"n": 100, "f": 9.5, "ok": True, "cost": 140},
        {"n": 9, "f": 20.0, "ok": False, "cost": 9.5},
        {},
        {"n": 20, "at": "2024-05-31T12:00:00.123456", "tags": ["x"]},
        {"day": "2024-05-31", "kind": "coat", "size": 3},
        {"open": "09:30:00", "day": "2024-05-31", "of": [1, [2]]},
        {"in": {"1": 0.5, "b": {"c": None}}},
    ]
    assert [hit.metadata["n"] for hit in search.search(filter={"n": {"$gt": 0}}, sort={"n": "asc"})] == [9, 20, 100]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a"}, {"text": "b", "x": {"set"}}], "found set in the column 'x' of row 1 (from 0)"),
        ([{"text": "a", "x": b"abc"}], "found bytes in the column 'x' of row 0"),
        ([{"text": "a", "x": timedelta(1)}], "found timedelta in the column 'x' of row 0"),
        ([{"text": "a", "x": np.timedelta64(1, "ns")}], "found timedelta64 in the column 'x' of row 0"),
        ([{"text": "a", "x": pd.Timestamp("2024-05-31T12:00:00.123456789")}], "found nanoseconds in the column 'x'"),
        ([{"text": "a", "x": np.datetime64("2024-05-31T12:00:00.123456789")}], "found nanoseconds in the column 'x'"),
        ([{"text": "a", "x": Decimal("0.1234567890123456789")}], "expected a number that 64 bits hold"),
        ([{"text": "a", "x": 2**70 + 1}], "expected numbers that 64 bits hold exactly"),
        ([{"text": "a"}, {"text": "b", 1: 2, "1": 3}], "row 1 (from 0): found the name '1' twice, expected each"),
        ({"text": ["a", "b"]}, "found dict, expected rows"),
        ([{"text": "a"}, 5], "found int in row 1"),
        (pd.DataFrame({"text": ["a", "b"], "x": [1, {"set"}]}), "found set in the column 'x' of row 1 (from 0)"),
        (7, "rows: found int, expected rows; pass a DataFrame, or a list of dicts or of texts"),
        (b"a goose", "rows: found bytes, expected rows"),
        (["a goose", {"text": "b"}], "rows: found str in row 0 (from 0), expected a mapping of column names to values"),
        (pd.Index(["a"]), "rows: found pandas' Index, expected a DataFrame or a Series; pass one of these"),
        (
            [{"text": "a", "x": np.zeros((2, 2))}],
            "found ndarray in the column 'x' of row 0 (from 0), expected a string",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(rows: Any, message: str, indexed: Callable[..., Search]) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        indexed(rows)


def test_a_value_of_another_type_is_a_type_error(indexed: Callable[..., Search]) -> None:
    with pytest.raises(TypeError):
        indexed([{"text": "a", "x": object()}])


@pytest.mark.parametrize("series", [list, pl.Series, pd.Series])
def test_texts_alone_are_rows(series: Callable[..., Any], indexed: Callable[..., Search]) -> None:
    found = indexed(series(["a goose", "a ferry"])).search(filter={})
    assert [(hit.id, hit.text) for hit in found] == [("0", "a goose"), ("1", "a ferry")]


FRAME = pd.DataFrame({"sku": ["x-1", "x-2", "x-3"], "text": ["a goose", None, "a ferry"], "k": [1, 2, 3]})


@pytest.mark.parametrize(
    ("frame", "ids"),
    [
        (FRAME, ["0", "2"]),
        (FRAME.set_index("sku"), ["x-1", "x-3"]),
        (FRAME[FRAME["k"] != 1].drop(columns="sku"), ["1"]),
        (FRAME.rename(columns={"sku": "id"})[FRAME["k"] != 1], ["x-3"]),
        (FRAME.set_index("sku", drop=False), ["x-1", "x-3"]),
        (pd.concat([FRAME, FRAME]), ["0", "2", "3", "5"]),
        (pd.concat([FRAME, FRAME]).set_index("sku"), ["x-1", "x-3", "x-1", "x-3"]),
        (FRAME.set_index(["sku", "k"]), ["0", "2"]),
    ],
    ids=[
        *("a default index", "a named index", "labels of a part", "a column of ids", "a column that is the index too"),
        *("labels that repeat", "a named index that repeats", "levels"),
    ],
)
def test_the_index_of_a_frame_has_the_ids(frame: Any, ids: list[str], indexed: Callable[..., Search]) -> None:
    assert [hit.id for hit in indexed(frame).search(filter={}, top_k=9)] == ids


def test_the_columns_of_a_frame_keep_their_values_whatever_their_names_are(indexed: Callable[..., Search]) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "c"], "v": [0, 1, 2]}, index=["A", "B", "C"]).reset_index()
    found = indexed(frame[frame["v"] != 1]).search(filter={})
    assert [(hit.id, hit.metadata) for hit in found] == [("0", {"index": "A", "v": 0}), ("1", {"index": "C", "v": 2})]
    both = indexed(frame.set_index(["index", "v"]), mode="replace").search(filter={"v": 1})
    assert [hit.metadata for hit in both] == [{"index": "B", "v": 1}]


LEVELS = [("x", 1), ("y", 2)]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (pd.DataFrame({"text": ["a", "b"]}, index=pd.Index(["i1", "i2"], name="text")), "text"),
        (pd.DataFrame({"text": ["a", "b"], "k": [1, 2]}, index=pd.Index(["i1", "i2"], name="k")), "k"),
        (
            pd.DataFrame({"text": ["a", "b"], "k": [1, 2]}, index=pd.MultiIndex.from_tuples(LEVELS, names=["k", "m"])),
            "k",
        ),
        (pd.DataFrame({"text": ["a", "b"]}, index=pd.MultiIndex.from_tuples(LEVELS, names=["k", "k"])), "k"),
        (pd.DataFrame([["a", 1, 2]], columns=["text", "v", "v"]), "v"),
        (pd.DataFrame([["a", 1, 2]], columns=["text", 1, "1"]), "1"),
        (pa.table([["a"], [1], [2]], names=["text", "v", "v"]), "v"),
    ],
    ids=["the texts", "an index", "a level", "two levels", "two columns", "a number and its text", "Arrow"],
)
def test_two_columns_with_one_name_are_refused(data: Any, name: str, indexed: Callable[..., Search]) -> None:
    with pytest.raises(CorpusError, match=rf"rows: found .*{name}.*, expected each name once; rename"):
        indexed(data)


def frame_of(kind: Callable[..., Any], **columns: list[Any]) -> Any:
    return kind({"text": ["a goose", "a ferry"]} | columns)


def dicts(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


KEYS = [UUID(int=1), UUID(int=2)]


@pytest.mark.parametrize("kind", [dicts, pd.DataFrame, pl.DataFrame])
def test_what_has_one_spelling_is_text(kind: Callable[..., Any], indexed: Callable[..., Search]) -> None:
    columns: dict[str, list[Any]] = {"id": KEYS, "key": [KEYS[1], None]}
    if kind is not pl.DataFrame:  # which has neither
        columns |= {"size": list(pd.cut([1, 3], [0, 2, 4])), "month": [pd.Period("2024-05"), pd.NaT]}
    search = indexed(frame_of(kind, **columns))
    first = search.get(KEYS[0])
    assert first is not None
    expected = {"key": str(KEYS[1]), "size": "(0, 2]", "month": "2024-05"}
    assert first.metadata == {name: value for name, value in expected.items() if name in columns}
    assert [
        hit.id for hit in search.search(filter={name: columns[name][0] for name in expected if name in columns})
    ] == [str(KEYS[0])]
    assert [hit.id for hit in search.search(filter={"id": {"$in": KEYS[1:]}})] == [str(KEYS[1])]


@pytest.mark.parametrize("column", ["text", "id", "note"])
def test_half_a_surrogate_pair_is_refused_with_its_row_and_column(
    column: str, indexed: Callable[..., Search], tmp_path: Path
) -> None:
    rows = [{"text": "a goose", "id": "x", "note": "n"}, {"text": "a ferry", "id": "y", "note": "m", column: "\ud83d"}]
    lines, array = tmp_path / "a.jsonl", tmp_path / "a.json"
    lines.write_text("\n".join(map(json.dumps, rows)))
    array.write_text(json.dumps(rows))
    for data, place in ((rows, "rows, row 1 (from 0)"), (lines, "a.jsonl, line 2"), (array, "a.json, row 1 (from 0)")):
        with pytest.raises(CorpusError) as raised:
            indexed(data)
        expected = f"{place}: found half a surrogate pair in the column {column!r}, expected valid Unicode; "
        assert expected in str(raised.value)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"text": ["a", "b"], "n": [1, 2], "raw": [b"x", None], "wait": [pd.Timedelta(1, "s"), pd.NaT]}),
        pl.DataFrame({"text": ["a", "b"], "n": [1, 2], "raw": [b"x", None], "wait": [timedelta(1), None]}),
        pa.table({"text": ["a"], "n": [1], "raw": [b"x"], "wait": pa.array([648], pa.duration("s"))}),
    ],
    ids=["pandas", "polars", "Arrow"],
)
def test_columns_that_cannot_be_kept_are_left_out_and_named(frame: Any, out: Path) -> None:
    made = index(frame, out=out)
    assert (made.report.unkept, made.corpus.columns) == (("raw", "wait"), {"n": "number"})


def test_a_column_whose_meaning_is_not_in_its_numbers_is_left_out(out: Path) -> None:
    frame = pd.DataFrame({"text": ["a"], "month": [pd.Period("2024-05")]})
    assert index(pa.Table.from_pandas(frame), out=out).report.unkept == ("month",)  # whose number is 652


@pytest.mark.parametrize(
    "data",
    [
        pl.DataFrame({"text": ["a"], "id": [b"x"]}),
        pd.DataFrame({"text": ["a"], "id": [b"x"]}),
        pa.table({"text": ["a"], "id": pa.array([KEYS[0].bytes], pa.uuid())}),
    ],
    ids=["polars", "pandas", "Arrow"],
)
def test_ids_that_cannot_be_kept_are_refused(data: Any, indexed: Callable[..., Search]) -> None:
    with pytest.raises(CorpusError, match="rows: found values that JSON cannot hold in the column 'id', expected text"):
        indexed(data)
