"""Parquet: types that JSON lacks, and files that are refused."""

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from tests.export.corpus.files import complaint, read_corpus, write, write_parquet

NAN, INFINITY = float("nan"), float("inf")
MAGIC = b"PAR1"


def test_every_type_becomes_valid_json(tmp_path: Path) -> None:
    values = {
        "date": date(2024, 2, 29),
        "moment": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        "span": timedelta(hours=1),
        "price": Decimal("1.20"),
        "list": [1, 2],
        "struct": {"a": [date(2024, 1, 1)], "b": None},
        "nan": NAN,
        "big": 2**63,
        "flag": False,
        'quo"te\n': 'a "b", }',
        "^t.*$": "no pattern",
        "*": "nor this",
    }
    absent = pl.Series("absent", [None], dtype=pl.Int64)
    path = write_parquet(tmp_path, {"text": ["t"], "absent": absent} | {key: [value] for key, value in values.items()})
    found = json.loads(read_corpus(path).metadata[0])
    same = {key: found[key] for key in ("list", "big", "flag", 'quo"te\n', "^t.*$", "*")}
    assert same == {key: values[key] for key in same}
    assert found["date"] == "2024-02-29"
    assert found["moment"].startswith("2024-02-29")
    assert found["price"] == "1.20"
    assert found["struct"] == {"a": ["2024-01-01"], "b": None}
    assert set(found) == set(values) - {"nan"}


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_nan_and_infinity_are_left_out_like_null_and_counted(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    score = pl.Series("score", [0.5, NAN, INFINITY, -INFINITY, None], dtype=dtype)
    corpus = read_corpus(write_parquet(tmp_path, {"text": ["t"] * 5, "n": [1] * 5, "score": score}))
    assert corpus.metadata == ['{"n":1,"score":0.5}', *['{"n":1}'] * 4]
    assert corpus.non_finite == 3


def test_nan_within_a_list_or_struct_is_null_and_counted(tmp_path: Path) -> None:
    values = {
        "list": [[1.0, NAN], [], None],
        "struct": [{"a": INFINITY, "b": [NAN, 2.0, None]}, {"a": 1.0, "b": None}, {"a": None, "b": []}],
        "structs": [[{"c": NAN}, {"c": 1.0}], [], None],
        "array": pl.Series([[1.0, 2.0], None, [NAN, -INFINITY]], dtype=pl.Array(pl.Float64, 2)),
        "lists": [[[NAN], []], [None], [[1.0]]],
    }
    corpus = read_corpus(write_parquet(tmp_path, {"text": ["t"] * 3, **values}))
    assert [json.loads(entry) for entry in corpus.metadata] == [
        {
            "list": [1.0, None],
            "struct": {"a": None, "b": [None, 2.0, None]},
            "structs": [{"c": None}, {"c": 1.0}],
            "array": [1.0, 2.0],
            "lists": [[None], []],
        },
        {"list": [], "struct": {"a": 1.0, "b": None}, "structs": [], "lists": [None]},
        {"struct": {"a": None, "b": []}, "array": [None, None], "lists": [[1.0]]},
    ]
    assert corpus.non_finite == 1 + 2 + 1 + 2 + 1


def test_values_of_rows_without_text_and_ids_are_not_counted(tmp_path: Path) -> None:
    columns = {"text": ["a", None], "n": [NAN, NAN], "l": [[NAN], [NAN]], "id": [NAN, NAN]}
    corpus = read_corpus(write_parquet(tmp_path, columns))
    assert (corpus.non_finite, corpus.blank_ids, corpus.metadata) == (2, 1, ['{"l":[null]}'])


COLUMNS: dict[str, object] = {"n": [1], "l": [[1]], "s": ["a"], "b": [[{"raw": b"x"}]]}


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        (COLUMNS, ("n",), "found Int64 in the column 'n', expected strings; name another column with --text-column"),
        (
            COLUMNS,
            ("s", "l"),
            "found List(Int64) in the column 'l', expected strings or numbers; name another column with --id-column",
        ),
        (
            COLUMNS,
            ("s",),
            "found List(Struct({'raw': Binary})) in the column 'b', expected values that JSON can hold; write the file "
            "without that column",
        ),
        (
            {"text": ["a"], "id": [True]},
            (),
            "found Boolean in the column 'id', expected strings or numbers; name another column with --id-column",
        ),
        *(
            ({"text": ["a"], name: [1]}, (), "found no name for column 2, expected a name for each; name it, or leave")
            for name in ("", " ")
        ),
        ({"text": pl.Series([], dtype=pl.String)}, (), "found no rows, expected at least one; check that the file was"),
    ],
)
def test_a_file_that_cannot_be_a_corpus_is_refused(
    tmp_path: Path, columns: dict[str, object], names: tuple[str, ...], message: str
) -> None:
    assert complaint(write_parquet(tmp_path, columns), *names).startswith(f": {message}")


def test_a_broken_file_says_what_to_do(tmp_path: Path) -> None:
    whole = write_parquet(tmp_path, {"text": ["a"] * 100}).read_bytes()
    assert whole.startswith(MAGIC)
    for content in (b"", b"text\na\n", whole[:-4], whole[: len(whole) // 2], MAGIC * 20):
        message = complaint(write(tmp_path, "a.parquet", content))
        assert message.startswith(": found Parquet that cannot be read (")
        assert message.endswith("), expected a whole Parquet file; fetch or write the file again")
