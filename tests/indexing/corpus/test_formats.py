"""CSV, TSV, JSON lines and Parquet: what each format needs beside rows, and what is refused with its place."""

import gzip
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from tests.indexing.corpus.files import complaint, read_corpus, write, write_parquet

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # CSV
        (
            "a.csv",
            ",text,n\n0,one,2\n",
            ", line 2: found a column without a name, expected a name for each; name it, or",
        ),
        ("a.csv", "id, text\n1,one\n", ", line 1: found the column ' text', expected each name once and without"),
        ("a.csv", "id,text\n1,a\n2,b,c\n", ", line 3: found 3 fields, expected 2 as in the header; put quotes around"),
        ("a.csv", 'id,text\n2,"never closed\n', ", line 2: found a broken record (unexpected end of data), expected"),
        (
            "a.csv",
            "id;text\n1;one\n",
            ", line 1: found the one column 'id;text', expected columns apart by ','; add --separator ';'",
        ),
        # JSON lines
        (
            "a.jsonl",
            '{"text": "a"}\n{"text": b}\n',
            ", line 2: found JSONDecodeError: Expecting value: line 1 column 10",
        ),
        ("a.jsonl", '{"text": "a"}\n{"text": "\\ud83d"}\n', ", line 2: found UnicodeEncodeError"),
        ("a.jsonl", '{"text": "b", "id": {}}\n', ", line 1: found {} in the column 'id', expected a string or a"),
        ("a.json", '[{"text": "a"},\n{"text": "b"}', ": found JSONDecodeError: Expecting ',' delimiter"),
        ("a.json", '[{"text": "a"}, 1]', ", row 1 (from 0): found 1, expected a JSON object"),
        ("a.jsonl", '[{"text": "a"}]', ", line 1: found ValueError: a line that starts with '["),
        # text
        ("a.csv", b"id,text\n1,caf\xe9\n", ": found text in UTF-8 that cannot be read (UnicodeDecodeError"),
        ("a.csv.gz", gzip.compress(b"text\none\n", mtime=0)[:-4], ": found gzip that cannot be read (EOFError"),
        # Parquet
        ("a.parquet", b"text\na\n", ": found Parquet that cannot be read ("),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, name: str, content: bytes | str, message: str
) -> None:
    assert complaint(write(tmp_path, name, content)).startswith(message)


@pytest.mark.parametrize("separator", [";", ",", "|", "\t"])
@pytest.mark.parametrize("first", ["\ufeffsep={}\r\n", '"SEP={}"\n'])
def test_the_separator_that_excel_states_in_the_first_line_is_used(tmp_path: Path, first: str, separator: str) -> None:
    rows = [("id", "text", "n"), ("1", "one", ""), ("2", f'"two{separator} or\n""more"""', "3")]
    content = first.format(separator) + "".join(separator.join(row) + "\n" for row in rows)
    corpus = read_corpus(write(tmp_path, "a.csv", content))
    assert corpus.texts == ["one", f'two{separator} or\n"more"']
    assert (corpus.ids, corpus.metadata) == (["1", "2"], ["{}", '{"n":"3"}'])


def test_a_byte_order_mark_crlf_and_quoted_line_breaks_are_read(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbftext,note\r\n"a ""b"", c","x\r\ny"\r\n\r\n5" disk,caf\xc3\xa9\r\n'
    corpus = read_corpus(write(tmp_path, "a.csv", content))
    assert corpus.texts == ['a "b", c', '5" disk']
    assert corpus.metadata == ['{"note":"x\\r\\ny"}', '{"note":"café"}']


def test_a_field_may_be_as_long_as_it_is(tmp_path: Path) -> None:
    text = "word " * 60_000
    assert read_corpus(write(tmp_path, "a.csv", f"id,text\n1,{text}\n2,short\n")).texts == [text, "short"]


# Parquet


def test_every_type_of_parquet_becomes_valid_json(tmp_path: Path) -> None:
    values = {
        "date": date(2024, 2, 29),
        "moment": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        "price": Decimal("1.20"),
        "list": [1, 2],
        "struct": {"a": [date(2024, 1, 1)], "b": None},
        "nan": NAN,
        "big": 2**63,
        "flag": False,
        'quo"te\n': 'a "b", }',
        "kind": pl.Series(["a"], dtype=pl.Categorical),
    }
    columns = {name: value if isinstance(value, pl.Series) else [value] for name, value in values.items()}
    path = write_parquet(tmp_path, {"text": ["t"], "absent": pl.Series([None], dtype=pl.Int64)} | columns)
    found = json.loads(read_corpus(path).metadata[0])
    same = ("list", "big", "flag", 'quo"te\n')
    assert {name: found[name] for name in same} == {name: values[name] for name in same}
    assert (found["date"], found["moment"], found["kind"]) == ("2024-02-29", "2024-02-29T12:30:00+00:00", "a")
    assert (found["price"], found["struct"]) == (1.2, {"a": ["2024-01-01"], "b": None})
    assert set(found) == set(values) - {"nan"}


def test_nan_and_infinity_are_left_out_like_null_and_counted(tmp_path: Path) -> None:
    score = [0.5, NAN, INFINITY, None]
    structs: list[object] = [{"a": [NAN, 2.0]}, None, {"a": []}, {"a": [1.0]}]
    table = write_parquet(tmp_path, {"text": ["t"] * 4, "id": [NAN, 1.0, 2.0, 3.0], "score": score, "s": structs})
    corpus = read_corpus(table)
    assert corpus.metadata == ['{"score":0.5,"s":{"a":[null,2.0]}}', "{}", '{"s":{"a":[]}}', '{"s":{"a":[1.0]}}']
    assert (corpus.ids, corpus.non_finite, corpus.blank_ids) == (["0", "1", "2", "3"], 3, 1)
    lines = read_corpus(write(tmp_path, "a.jsonl", '{"text": "t", "n": NaN, "m": 1e999, "k": 1}\n'))
    assert (lines.metadata, lines.non_finite) == (['{"k":1}'], 2)


def test_texts_of_parquet_must_be_strings(tmp_path: Path) -> None:
    found = complaint(write_parquet(tmp_path, {"text": [1]}))
    assert found.startswith(", row 0 (from 0): found 1 in the column 'text', expected a string")


def test_columns_of_parquet_that_json_cannot_hold_are_left_out_and_named(tmp_path: Path) -> None:
    columns = {"text": ["a"], "b": [[{"raw": b"x"}]], "wait": [timedelta(seconds=1)], "kept": [1]}
    corpus = read_corpus(write_parquet(tmp_path, columns))
    assert (list(corpus.metadata), corpus.left_out) == (['{"kept":1}'], ("b", "wait"))


def test_nanoseconds_of_parquet_are_refused(tmp_path: Path) -> None:
    moments = pl.Series([1_700_000_000_123_456_789], dtype=pl.Datetime("ns"))
    assert "found nanoseconds in the column 'at'" in complaint(write_parquet(tmp_path, {"text": ["a"], "at": moments}))


def test_a_json_file_can_be_one_array(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path, "a.json", '\n[{"text": "a", "n": 1},\n{"text": "b"}]'))
    assert (list(corpus.texts), list(corpus.metadata)) == (["a", "b"], ['{"n":1}', "{}"])
