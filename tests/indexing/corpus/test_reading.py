"""Reading a corpus in each format: files written by hand, with csv, json and polars as judges, and what is refused."""

import csv
import gzip
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semsearch.indexing.corpus import Corpus, CorpusError, read_column
from semsearch.indexing.corpus.rows import ROWS_PER_READ
from semsearch.indexing.row_changes import find_changes
from tests.indexing.corpus.files import complaint, read_corpus, read_table, write, write_each_format, write_parquet

Rows = list[dict[str, str | None]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"id,text,year\n7,one,1999\n8,two,\n"),
        ("a.tsv", b"id\ttext\tyear\n7\tone\t1999\n8\ttwo\t\n"),
        ("a.jsonl", b'{"id": 7, "text": "one", "year": "1999"}\n{"id": "8", "text": "two", "year": null}\n'),
        ("a.ndjson", b'{"id": 7, "text": "one", "year": "1999"}\n\n{"text": "two", "id": 8}'),
        ("a.json", b'\xef\xbb\xbf{"id": 7, "text": "one", "year": "1999"}\r\n{"text": "two", "id": 8}\r\n'),
    ],
)
def test_the_same_rows_read_the_same_from_each_format(tmp_path: Path, name: str, content: bytes) -> None:
    parquet = write_parquet(tmp_path, {"id": [7, 8], "text": ["one", "two"], "year": ["1999", None]})
    zipped = write(tmp_path, f"{name}.gz", gzip.compress(content))
    for path in (write(tmp_path, name, content), zipped, parquet):
        assert read_corpus(path) == Corpus(["one", "two"], ["7", "8"], ['{"year":"1999"}', "{}"])


@pytest.mark.parametrize("blank", [None, "", "\x1c", "\x85\xa0\u3000", "\t\n\x0b\x0c\r "], ids=repr)
def test_rows_without_text_are_skipped_counted_and_keep_their_number(tmp_path: Path, blank: str | None) -> None:
    rows: Rows = [{"text": text, "n": "1"} for text in ("one", blank, "  two  spaces ", blank)]
    for path in write_each_format(tmp_path, rows):
        found, report = read_table(path)
        assert (found.texts, found.ids, report.empty_texts) == (["one", "  two  spaces "], ["0", "2"], 2), path.name


def test_a_single_column_is_the_text_whatever_its_name(tmp_path: Path) -> None:
    for path in write_each_format(tmp_path, [{"id": "one"}, {"id": "two"}]):
        assert read_corpus(path) == Corpus(["one", "two"], ["0", "1"], ["{}", "{}"])


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"key,title,text\nk1,one,long\n")
    assert read_corpus(path, "title", "key") == Corpus(["one"], ["k1"], ['{"text":"long"}'])


def test_json_values_keep_their_type_and_digits_from_row_to_row(tmp_path: Path) -> None:
    values = [1, 0.5, 9007199254740993, "1", True, {"a": 1}, [], [1, "x"], {"a": "b", "c": None}]
    corpus = read_corpus(write(tmp_path, "a.jsonl", "\n".join(json.dumps({"text": "t", "v": one}) for one in values)))
    assert [repr(json.loads(entry)["v"]) for entry in corpus.metadata] == [repr(value) for value in values]


# neither surrogates, nor NUL, nor byte order marks, each of which has its own test
fields = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=8) | st.sampled_from(
    ['"', ",", "\r\n", "\n"]
)
# blank, or unlike every row number
csv_ids = fields.map(lambda name: f"n{name}" if name.strip() else name)
names = fields.filter(lambda name: name.strip() != "")
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | fields,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=3),
    max_leaves=5,
)
in_one_folder = settings(
    max_examples=max(60, settings().max_examples), suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@in_one_folder
@given(
    rows=st.lists(st.tuples(csv_ids, fields, fields), min_size=1, max_size=6), separator=st.sampled_from([",", "\t"])
)
def test_whatever_csv_writes_is_read_back(rows: list[tuple[str, str, str]], separator: str, tmp_path: Path) -> None:
    rows = [("i", "always some text", "n"), *rows]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=separator).writerows([("id", "text", "note"), *rows])
    corpus, report = read_table(write(tmp_path, "a.csv" if separator == "," else "a.tsv", buffer.getvalue()))
    kept = [(number, *row) for number, row in enumerate(rows) if row[1].strip()]
    assert corpus.texts == [text for _, _, text, _ in kept]
    assert corpus.ids == [name if name.strip() else str(number) for number, name, _, _ in kept]
    assert [json.loads(entry) for entry in corpus.metadata] == [{"note": n} if n else {} for *_, n in kept]
    assert report.empty_texts == len(rows) - len(kept)


@in_one_folder
@given(rows=st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=6), is_ascii=st.booleans())
def test_whatever_json_writes_is_read_back(rows: list[dict[str, object]], is_ascii: bool, tmp_path: Path) -> None:
    rows = [{**row, "text": f"row {number}"} for number, row in enumerate(rows)]
    lines = "\n".join(json.dumps(row, ensure_ascii=is_ascii) for row in rows)
    corpus = read_corpus(write(tmp_path, "a.jsonl", lines), id_column="text")
    assert corpus.texts == corpus.ids == [row["text"] for row in rows]
    for entry, row in zip(corpus.metadata, rows, strict=True):
        assert json.loads(entry) == {key: value for key, value in row.items() if key != "text" and value is not None}


def test_more_rows_of_parquet_than_are_read_at_once(tmp_path: Path) -> None:
    numbers = range(ROWS_PER_READ + 10)
    ids = [f"n{number}" for number in numbers]
    texts = [f"text {number}" for number in numbers]
    corpus = read_corpus(write_parquet(tmp_path, {"id": ids, "text": texts, "size": numbers}))
    assert (corpus.ids, corpus.texts) == (ids, texts)
    assert corpus.metadata == [f'{{"size":{number}}}' for number in numbers]


@pytest.mark.parametrize(("name", "suffix"), [("a.txt", ".txt"), ("a.parquet.gz", ".parquet.gz")])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path, name: str, suffix: str) -> None:
    message = complaint(write(tmp_path, name, b"text\none\n"))
    assert message.startswith(f": found the suffix '{suffix}', expected .csv, .tsv, ")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((), "one named 'text'; name the one to embed with --text-column"),
        (("Titel",), "a column 'Titel'; did you mean --text-column 'title'?"),
        (("title", "KEY"), "a column 'KEY'; did you mean --id-column 'key'?"),
        (("zzz",), "a column 'zzz'; name another with --text-column"),
    ],
)
def test_a_missing_column_names_the_closest_one(tmp_path: Path, columns: tuple[str, ...], expected: str) -> None:
    for path in write_each_format(tmp_path, [{"key": "1", "title": "a", "body": "b"}]):
        assert complaint(path, *columns) == f": found the columns 'key', 'title', 'body', expected {expected}"


@pytest.mark.parametrize(
    ("name", "content"), [("a.csv", b""), ("a.csv", b"id,text\n"), ("a.jsonl", b"\n\n"), ("a.jsonl", b"{}\n")]
)
def test_a_file_without_rows_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    assert complaint(write(tmp_path, name, content)) == (
        ": found no rows, expected at least one row with a column; check that the file was written completely"
    )


def test_a_file_whose_texts_are_all_empty_is_refused(tmp_path: Path) -> None:
    for path in write_each_format(tmp_path, [{"text": None, "n": "1"}, {"text": None, "n": "2"}]):
        assert complaint(path) == (
            ": found no text in any of 2 rows, expected at least one; name another column with --text-column"
        )


def test_ids_that_repeat_are_kept_and_counted(tmp_path: Path) -> None:
    rows: Rows = [{"id": name, "text": "t"} for name in ("x", "y", "x", "x")]
    for path in write_each_format(tmp_path, rows):
        corpus = read_corpus(path)
        assert (corpus.ids, find_changes(corpus, None).repeated_ids) == (["x", "y", "x", "x"], 2), path.name


@pytest.mark.parametrize("blank", [None, "\u3000\t"])
def test_a_blank_id_becomes_the_row_number_and_is_counted(tmp_path: Path, blank: str | None) -> None:
    rows: Rows = [{"id": name, "text": "t"} for name in ("x", blank, blank, "0")]
    for path in write_each_format(tmp_path, rows):
        corpus, report = read_table(path)
        assert (corpus.ids, report.blank_ids) == (["x", "1", "2", "0"], 2), path.name


def test_a_blank_id_whose_row_number_is_the_id_of_another_row_is_refused(tmp_path: Path) -> None:
    rows: Rows = [{"id": "x", "text": "t"}, {"id": None, "text": "t"}, {"id": "1", "text": "t"}]
    for path in write_each_format(tmp_path, rows):
        assert complaint(path) == (
            ": found a row without an id whose number, 1, is the id of another row, expected a different id for each; "
            "write an id in each row, or name another column with --id-column"
        )


def test_a_whole_number_is_one_id_however_json_writes_it(tmp_path: Path) -> None:
    content = "".join(f'{{"text":"t","id":{value}}}\n' for value in ("1", '"1"', "1.0", "1e0", "1.5", 2**53 + 1))
    corpus = read_corpus(write(tmp_path, "a.jsonl", content.encode()))
    assert (corpus.ids, find_changes(corpus, None).repeated_ids) == (["1", "1", "1", "1", "1.5", "9007199254740993"], 3)


def test_whole_numbers_that_parquet_holds_as_floats_are_ids_without_a_point(tmp_path: Path) -> None:
    ids = [7.0, None, float("nan"), 0.5, 2.0**60]
    corpus, report = read_table(write_parquet(tmp_path, {"id": ids, "text": ["t"] * 5}))
    assert (corpus.ids, report.blank_ids) == (["7", "1", "2", "0.5", "1.152921504606847e+18"], 2)


def test_texts_alone_are_read_whatever_their_ids_are(tmp_path: Path) -> None:
    path = tmp_path / "calibration.csv"
    path.write_text("id,text\n1,first\n,second\n")
    with pytest.raises(CorpusError, match="without an id"):
        read_corpus(path)
    assert read_column(path, None, "--calibration-column") == ["first", "second"]
    with pytest.raises(CorpusError, match="name another with --calibration-column"):
        read_column(path, "words", "--calibration-column")


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        # CSV
        ("a.csv", ",text,n\n0,one,2\n", ", line 2: found a column without a name, expected a name for each"),
        ("a.csv", "id, text\n1,one\n", ", line 1: found the column ' text', expected each name once and without"),
        ("a.csv", "id,text\n1,a\n2,b,c\n", ", line 3: found 3 fields, expected 2 as in the header; put quotes around"),
        ("a.csv", 'id,text\n2,"never closed\n', ", line 2: found a broken record (unexpected end of data), expected"),
        (
            "a.csv",
            "id;text\n1;one\n",
            ", line 1: found the one column 'id;text', expected columns apart by ','; add --separator ';'",
        ),
        # JSON lines
        ("a.jsonl", '{"text": "a"}\n{"text": b}\n', ", line 2: found JSONDecodeError: Expecting value"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"text": "\\ud83d"}\n',
            ", line 2: found half a surrogate pair in the column 'text'",
        ),
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
def test_a_fault_is_refused_with_its_place(tmp_path: Path, name: str, content: bytes | str, message: str) -> None:
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
    corpus, report = read_table(table)
    assert corpus.metadata == ['{"score":0.5,"s":{"a":[null,2.0]}}', "{}", '{"s":{"a":[]}}', '{"s":{"a":[1.0]}}']
    assert (corpus.ids, report.non_finite, report.blank_ids) == (["0", "1", "2", "3"], 3, 1)
    lines, report = read_table(write(tmp_path, "a.jsonl", '{"text": "t", "n": NaN, "m": 1e999, "k": 1}\n'))
    assert (lines.metadata, report.non_finite) == (['{"k":1}'], 2)


def test_texts_of_parquet_must_be_strings(tmp_path: Path) -> None:
    found = complaint(write_parquet(tmp_path, {"text": [1]}))
    assert found.startswith(", row 0 (from 0): found 1 in the column 'text', expected a string")


def test_columns_of_parquet_that_json_cannot_hold_are_left_out_and_named(tmp_path: Path) -> None:
    columns = {"text": ["a"], "b": [[{"raw": b"x"}]], "wait": [timedelta(seconds=1)], "kept": [1]}
    corpus, report = read_table(write_parquet(tmp_path, columns))
    assert (list(corpus.metadata), report.unkept) == (['{"kept":1}'], ("b", "wait"))


def test_nanoseconds_of_parquet_are_refused(tmp_path: Path) -> None:
    moments = pl.Series([1_700_000_000_123_456_789], dtype=pl.Datetime("ns"))
    assert "found nanoseconds in the column 'at'" in complaint(write_parquet(tmp_path, {"text": ["a"], "at": moments}))
    whole = pl.Series([1_700_000_000_123_456_000, None, 1_700_000_000_000_001_000], dtype=pl.Datetime("ns"))
    corpus = read_corpus(write_parquet(tmp_path, {"text": ["a", "b", "c"], "at": whole}))
    moment = "2023-11-14T22:13:20."
    assert corpus.metadata == [f'{{"at":"{moment}123456"}}', "{}", f'{{"at":"{moment}000001"}}']
    one = pl.Series([None, None, 1_700_000_000_000_000_001], dtype=pl.Datetime("ns"))
    table = write_parquet(tmp_path, {"text": ["a"] * 3, "whole": whole, "at": one})
    assert "found nanoseconds in the column 'at'" in complaint(table)


def test_a_json_file_can_be_one_array(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path, "a.json", '\n[{"text": "a", "n": 1},\n{"text": "b"}]'))
    assert (list(corpus.texts), list(corpus.metadata)) == (["a", "b"], ['{"n":1}', "{}"])
