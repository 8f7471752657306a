"""Parquet values that JSON cannot hold."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.export.corpus_files import read_corpus

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_nan_and_infinity_are_left_out_like_null_and_counted(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    path = tmp_path / "a.parquet"
    score = pl.Series("score", [0.5, NAN, INFINITY, -INFINITY, None], dtype=dtype)
    pl.DataFrame([pl.Series("text", ["t"] * 5), pl.Series("n", [1] * 5), score]).write_parquet(path)
    corpus = read_corpus(path)
    assert corpus.metadata == ['{"n":1,"score":0.5}', *['{"n":1}'] * 4]
    assert corpus.non_finite == 3


def test_nan_within_a_list_or_struct_is_null_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    values = {
        "list": [[1.0, NAN], [], None],
        "struct": [{"a": INFINITY, "b": [NAN, 2.0, None]}, {"a": 1.0, "b": None}, {"a": None, "b": []}],
        "structs": [[{"c": NAN}, {"c": 1.0}], [], None],
        "array": pl.Series([[1.0, 2.0], None, [NAN, -INFINITY]], dtype=pl.Array(pl.Float64, 2)),
        "lists": [[[NAN], []], [None], [[1.0]]],
    }
    pl.DataFrame({"text": ["t"] * 3, **values}).write_parquet(path)
    corpus = read_corpus(path)
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


def test_values_of_rows_without_text_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["a", None], "n": [NAN, NAN], "l": [[NAN], [NAN]]}).write_parquet(path)
    assert read_corpus(path).non_finite == 2


def test_the_floats_of_the_id_column_are_not_counted_as_metadata(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["a"], "id": [NAN]}).write_parquet(path)
    corpus = read_corpus(path)
    assert (corpus.blank_ids, corpus.non_finite, corpus.metadata) == (1, 0, ["{}"])
