"""The same rows from every source, compared by what searches find: dicts, pandas, polars, Arrow, CSV, JSON, Parquet."""

import csv
import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from semsearch import Search, index

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


@pytest.fixture
def indexed(out: Path) -> Callable[..., Search]:
    """Return what makes an index of rows, with the tests' model, and opens it."""

    def make(data: Any, **options: Any) -> Search:
        index(data, out=out, **options)
        return Search(out)

    return make


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
        {"text": "e", "day": np.datetime64("2024-05-31")},
    ]
    search = indexed(rows)
    assert [hit.metadata for hit in search.search(filter={}, top_k=9)] == [
        {"n": 100, "f": 9.5, "ok": True, "cost": 140},
        {"n": 9, "f": 20.0, "ok": False, "cost": 9.5},
        {},
        {"n": 20, "at": "2024-05-31T12:00:00.123456", "tags": ["x"]},
        {"day": "2024-05-31"},
    ]
    assert [hit.metadata["n"] for hit in search.search(filter={"n": {"$gt": 0}}, sort={"n": "asc"})] == [9, 20, 100]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"text": "a"}, {"text": "b", "x": {"set"}}], "found set in the column 'x' of row 1 (from 0)"),
        ([{"text": "a", "x": b"abc"}], "found bytes in the column 'x' of row 0"),
        ([{"text": "a", "x": timedelta(1)}], "found timedelta in the column 'x' of row 0"),
        ([{"text": "a", "x": pd.Timestamp("2024-05-31T12:00:00.123456789")}], "found nanoseconds in the column 'x'"),
        ([{"text": "a", "x": np.datetime64("2024-05-31T12:00:00.123456789")}], "found nanoseconds in the column 'x'"),
        ([{"text": "a", "x": Decimal("0.1234567890123456789")}], "expected a number that 64 bits hold"),
        ([{"text": "a", "x": 2**70 + 1}], "expected numbers that 64 bits hold exactly"),
        ({"text": ["a", "b"]}, "found dict, expected rows"),
        ([{"text": "a"}, 5], "found int in row 1"),
        (7, "found int, expected rows"),
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
        (FRAME[FRAME["k"] != 1].drop(columns="sku"), ["2"]),
        (FRAME.rename(columns={"sku": "id"})[FRAME["k"] != 1], ["x-3"]),
    ],
    ids=["a default index", "a named index", "labels of a part", "a column of ids"],
)
def test_the_index_of_a_frame_has_the_ids(frame: Any, ids: list[str], indexed: Callable[..., Search]) -> None:
    assert [hit.id for hit in indexed(frame).search(filter={}, top_k=9)] == ids


def test_a_column_that_cannot_be_kept_is_left_out_and_named(out: Path) -> None:
    frame = pd.DataFrame({"text": ["a goose"], "wait": [pd.Timedelta(1, "s")], "n": [1]})
    assert index(frame, out=out).corpus.left_out == ("wait",)
    assert index(pl.DataFrame({"text": ["a"], "raw": [b"x"]}), out=out, mode="replace").corpus.left_out == ("raw",)
