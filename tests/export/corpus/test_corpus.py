"""Reading a corpus: files written by hand, and csv, json and polars as judges."""

import csv
import gzip
import io
import json
import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export.corpus import Corpus, CorpusError
from tests.export.corpus_files import complaint, read_corpus, write, write_each_format

PARQUET_MAGIC = b"PAR1"


# What is read


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"id,text,year\n7,one,1999\n8,two,\n"),
        ("a.CSV", b"id,text,year\n7,one,1999\n8,two,\n"),
        ("a.tsv", b"id\ttext\tyear\n7\tone\t1999\n8\ttwo\t\n"),
        ("a.jsonl", b'{"id": 7, "text": "one", "year": "1999"}\n{"id": "8", "text": "two", "year": null}\n'),
        ("a.ndjson", b'{"id": 7, "text": "one", "year": "1999"}\n\n{"text": "two", "id": 8}'),
        ("a.json", b'{"id": 7, "text": "one", "year": "1999"}\n{"text": "two", "id": 8}\n'),
    ],
)
@pytest.mark.parametrize("is_gzipped", [False, True])
def test_the_same_rows_read_the_same_from_each_format(
    tmp_path: Path, name: str, content: bytes, is_gzipped: bool
) -> None:
    path = write(tmp_path, name, content)
    if is_gzipped:
        path = write(tmp_path, f"{name}.gz", gzip.compress(content))
    assert read_corpus(path) == Corpus(["one", "two"], ["7", "8"], ['{"year":"1999"}', "{}"], 0)


def test_parquet_reads_as_the_other_formats_do(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"id": [7, 8], "text": ["one", "two"], "year": ["1999", None]}).write_parquet(path)
    assert read_corpus(path) == Corpus(["one", "two"], ["7", "8"], ['{"year":"1999"}', "{}"], 0)


def test_csv_takes_a_byte_order_mark_crlf_and_quoted_line_breaks(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbftext,note\r\n"a ""b"", c","x\r\ny"\r\n\r\n5" disk,caf\xc3\xa9\r\n'
    corpus = read_corpus(write(tmp_path, "a.csv", content))
    assert corpus.texts == ['a "b", c', '5" disk']
    assert corpus.metadata == ['{"note":"x\\r\\ny"}', '{"note":"café"}']
    assert corpus.ids == ["0", "1"]


def test_json_lines_take_a_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"text": "a"}\r\n{"text": "b"}\r\n'
    assert read_corpus(write(tmp_path, "a.jsonl", content)).texts == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"text,n\none,1\n,2\n  ,3\nfour,4\n"),
        ("a.jsonl", b'{"text":"one"}\n{"text":null}\n{"n":3,"text":" \\t"}\n{"text":"four"}\n'),
    ],
)
def test_rows_without_text_are_skipped_counted_and_keep_their_number(tmp_path: Path, name: str, content: bytes) -> None:
    corpus = read_corpus(write(tmp_path, name, content))
    assert (corpus.texts, corpus.ids, corpus.empty_texts) == (["one", "four"], ["0", "3"], 2)


def test_a_csv_field_may_be_as_long_as_it_is(tmp_path: Path) -> None:
    text = "word " * 60_000
    path = tmp_path / "a.csv"
    path.write_text(f"id,text\n1,{text}\n2,short\n")
    assert read_corpus(path).texts == [text, "short"]


def test_line_ends_of_carriage_returns_alone_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,text\r1,one\r2,two\r")
    with pytest.raises(CorpusError, match=r"line 1: found a carriage return alone, .* line ends of LF or CRLF"):
        read_corpus(path)


@pytest.mark.parametrize("blank", ["\x1c", "\x1f", "\x85", "\xa0", "\u2003", "\u3000", "\t\n\x0b\x0c\r "])
def test_a_text_is_blank_in_parquet_where_it_is_in_the_other_formats(tmp_path: Path, blank: str) -> None:
    pl.DataFrame({"text": ["one", blank, "two"]}).write_parquet(tmp_path / "a.parquet")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in ("one", blank, "two"))
    (tmp_path / "a.jsonl").write_text(lines)
    for name in ("a.parquet", "a.jsonl"):
        found = read_corpus(tmp_path / name)
        assert (found.texts, found.empty_texts) == (["one", "two"], 1), name


def test_rows_without_text_are_skipped_in_parquet_too(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["one", None, " \t", "", "five"]}).write_parquet(path)
    assert read_corpus(path) == Corpus(["one", "five"], ["0", "4"], ["{}", "{}"], 3)


def test_a_text_is_kept_as_it_stands(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path, "a.csv", b'text,b\n"  two  spaces ",1\n')).texts == ["  two  spaces "]


def test_a_json_line_without_the_text_column_counts_as_empty(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path, "a.jsonl", b'{"title":"x"}\n{"text":"one"}\n'))
    assert (corpus.texts, corpus.ids, corpus.empty_texts) == (["one"], ["1"], 1)


def test_a_single_column_is_the_text_whatever_its_name(tmp_path: Path) -> None:
    for name, content in [("a.csv", b"id\none\ntwo\n"), ("a.jsonl", b'{"id":"one"}\n{"id":"two"}\n')]:
        corpus = read_corpus(write(tmp_path, name, content))
        assert corpus == Corpus(["one", "two"], ["0", "1"], ["{}", "{}"], 0)


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"key,title,text\nk1,one,long\n")
    assert read_corpus(path, "title", "key") == Corpus(["one"], ["k1"], ['{"text":"long"}'], 0)


def test_ids_may_repeat(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path, "a.csv", b"id,text\nx,one\nx,two\n")).ids == ["x", "x"]


def test_a_row_without_an_id_gets_its_number(tmp_path: Path) -> None:
    csv_file = write(tmp_path, "a.csv", b"id,text\nx,one\n,two\n")
    json_file = write(tmp_path, "a.jsonl", b'{"text":"one","id":"x"}\n{"text":"two","id":null}\n')
    parquet_file = tmp_path / "a.parquet"
    pl.DataFrame({"id": ["x", None], "text": ["one", "two"]}).write_parquet(parquet_file)
    for path in (csv_file, json_file, parquet_file):
        assert read_corpus(path).ids == ["x", "1"]


def test_ids_that_are_not_strings_become_text(tmp_path: Path) -> None:
    content = b'{"text":"a","id":9007199254740993}\n{"text":"b","id":1.5}\n'
    assert read_corpus(write(tmp_path, "a.jsonl", content)).ids == ["9007199254740993", "1.5"]
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["a"], "id": [date(2024, 2, 29)]}).write_parquet(path)
    assert read_corpus(path).ids == ["2024-02-29"]


def test_a_key_that_appears_late_is_kept(tmp_path: Path) -> None:
    lines = [b'{"text":"a"}'] * 2_000 + [b'{"text":"z","late":[1,{"deep":null}]}']
    corpus = read_corpus(write(tmp_path, "a.jsonl", b"\n".join(lines)))
    assert corpus.metadata[0] == "{}"
    assert corpus.metadata[-1] == '{"late":[1,{"deep":null}]}'


def test_json_values_keep_their_type_and_digits_from_row_to_row(tmp_path: Path) -> None:
    values = [1, 0.5, 9007199254740993, "1", True, {"a": 1}, [], [1, "x"], {"a": "b", "c": None}]
    lines = "\n".join(json.dumps({"text": "t", "v": value}) for value in values)
    corpus = read_corpus(write(tmp_path, "a.jsonl", lines.encode()))
    assert [repr(json.loads(entry)["v"]) for entry in corpus.metadata] == [repr(value) for value in values]


def test_every_parquet_type_becomes_valid_json(tmp_path: Path) -> None:
    values = {
        "date": date(2024, 2, 29),
        "moment": datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        "span": timedelta(hours=1),
        "price": Decimal("1.20"),
        "list": [1, 2],
        "struct": {"a": [date(2024, 1, 1)], "b": None},
        "nan": float("nan"),
        "big": 2**63,
        "flag": False,
        'quo"te\n': 'a "b", }',
        "^t.*$": "no pattern",
        "*": "nor this",
    }
    path = tmp_path / "a.parquet"
    absent = pl.Series("absent", [None], dtype=pl.Int64)
    pl.DataFrame({"text": ["t"]} | {key: [value] for key, value in values.items()}).with_columns(absent).write_parquet(
        path
    )
    found = json.loads(read_corpus(path).metadata[0])
    same = {key: found[key] for key in ("list", "big", "flag", 'quo"te\n', "^t.*$", "*")}
    assert same == {key: values[key] for key in same}
    assert found["date"] == "2024-02-29"
    assert found["moment"].startswith("2024-02-29")
    assert found["price"] == "1.20"
    assert found["struct"] == {"a": ["2024-01-01"], "b": None}
    assert "nan" not in found
    assert set(found) == set(values) - {"nan"}


# Against independent readers

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


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(csv_ids, fields, fields), min_size=1, max_size=6), st.sampled_from([",", "\t"]))
def test_whatever_csv_writes_is_read_back(rows: list[tuple[str, str, str]], separator: str) -> None:
    rows = [("i", "always some text", "n"), *rows]
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=separator).writerows([("id", "text", "note"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "a.csv" if separator == "," else "a.tsv", buffer.getvalue().encode())
        corpus = read_corpus(path)
    kept = [(number, *row) for number, row in enumerate(rows) if row[1].strip()]
    assert corpus.texts == [text for _, _, text, _ in kept]
    assert corpus.ids == [name if name.strip() else str(number) for number, name, _, _ in kept]
    assert [json.loads(entry) for entry in corpus.metadata] == [{"note": n} if n else {} for *_, n in kept]
    assert corpus.empty_texts == len(rows) - len(kept)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=6), st.booleans())
def test_whatever_json_writes_is_read_back(rows: list[dict[str, object]], is_ascii: bool) -> None:
    rows = [{**row, "text": f"row {number}"} for number, row in enumerate(rows)]
    lines = "\n".join(json.dumps(row, ensure_ascii=is_ascii) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        corpus = read_corpus(write(Path(folder), "a.jsonl", lines.encode()), id_column="text")
    assert corpus.texts == corpus.ids == [row["text"] for row in rows]
    for entry, row in zip(corpus.metadata, rows, strict=True):
        assert json.loads(entry) == {key: value for key, value in row.items() if key != "text" and value is not None}


def test_ten_thousand_rows_read_as_polars_reads_them(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "id": [f"n{number}" for number in range(10_000)],
            "text": [f'line {number}, "quoted"\nand broken' for number in range(10_000)],
            "size": [str(number % 7) for number in range(10_000)],
        }
    )
    frame.write_csv(tmp_path / "a.csv")
    frame.write_ndjson(tmp_path / "a.jsonl")
    frame.write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        corpus = read_corpus(tmp_path / name)
        assert corpus.texts == frame["text"].to_list()
        assert corpus.ids == frame["id"].to_list()
        assert corpus.metadata == [f'{{"size":"{size}"}}' for size in frame["size"]]


# What is refused, and how


def test_a_missing_file_and_a_folder_without_files_say_so(tmp_path: Path) -> None:
    expected = "ending in .csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet; check the path"
    assert complaint(tmp_path / "no.csv") == f": found no file, expected a file {expected}"
    assert complaint(tmp_path) == f": found a folder without files, expected files {expected}"


@pytest.mark.parametrize(("name", "suffix"), [("a.txt", ".txt"), ("a", ""), ("a.parquet.gz", ".parquet.gz")])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path: Path, name: str, suffix: str) -> None:
    assert complaint(write(tmp_path, name, b"text\none\n")) == (
        f": found the suffix '{suffix}', expected .csv, .tsv, .jsonl, .ndjson or .json (each also as .gz),"
        " or .parquet; convert or rename the file"
    )


KEY_TITLE_BODY: list[dict[str, str | None]] = [{"key": "1", "title": "a", "body": "b"}]


def test_several_columns_without_one_called_text_ask_for_the_option(tmp_path: Path) -> None:
    for path in write_each_format(tmp_path, KEY_TITLE_BODY):
        assert complaint(path) == (
            ": found the columns 'key', 'title', 'body', expected one named 'text';"
            " name the one to embed with --text-column"
        )


def test_a_missing_column_suggests_the_closest_name(tmp_path: Path) -> None:
    columns = "found the columns 'key', 'title', 'body'"
    for path in write_each_format(tmp_path, KEY_TITLE_BODY):
        assert complaint(path, "Titel") == (
            f": {columns}, expected a column 'Titel'; did you mean --text-column 'title'?"
        )
        assert complaint(path, "title", "KEY") == (
            f": {columns}, expected a column 'KEY'; did you mean --id-column 'key'?"
        )
        assert complaint(path, "zzz") == f": {columns}, expected a column 'zzz'; name another with --text-column"


@pytest.mark.parametrize(("row", "count"), [(b"2,b", 2), (b"2,b,c,d", 4)])
def test_a_csv_line_with_too_few_or_too_many_fields_is_named(tmp_path: Path, row: bytes, count: int) -> None:
    content = b'id,text,n\n1,"a\nb",x\n' + row + b"\n3,c,z\n"
    assert complaint(write(tmp_path, "a.csv", content)) == (
        f", line 4: found {count} fields, expected 3 as in the header;"
        " put quotes around a field that holds ',', or add what is missing"
    )


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'2,"never closed\n3,c\n', "unexpected end of data"),
        (b'2,"closed" too early\n3,c\n', "',' expected after '\"'"),
    ],
)
def test_a_csv_record_with_a_stray_quote_is_named_by_its_first_line(tmp_path: Path, row: bytes, reason: str) -> None:
    assert complaint(write(tmp_path, "a.csv", b"id,text\n1,a\n" + row)) == (
        f", line 3: found a record that breaks off or has a stray quote ({reason}),"
        ' expected fields as in RFC 4180; close the quote that opens in this record, or write it as ""'
    )


def test_a_parquet_column_of_the_wrong_type_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"n": [1], "l": [[1]], "s": ["a"], "b": [[{"raw": b"x"}]]}).write_parquet(path)
    assert complaint(path, "n") == (
        ": found Int64 in the column 'n', expected strings; name another column with --text-column"
    )
    assert complaint(path, "s", "l") == (
        ": found List(Int64) in the column 'l', expected strings or numbers; name another column with --id-column"
    )
    assert complaint(path, "s") == (
        ": found List(Struct({'raw': Binary})) in the column 'b', expected values that JSON can hold;"
        " write the file without that column"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", b""), ("a.csv", b"id,text\n"), ("a.csv.gz", b""), ("a.jsonl", b"\n\n"), ("a.jsonl", b"{}\n")],
)
def test_a_file_without_rows_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    assert complaint(write(tmp_path, name, content)) == (
        ": found no rows, expected at least one row with a column; check that the file was written completely"
    )


def test_a_parquet_file_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": []}, schema={"text": pl.String}).write_parquet(path)
    assert complaint(path) == (": found no rows, expected at least one; check that the file was written completely")


def test_a_file_whose_texts_are_all_empty_is_refused(tmp_path: Path) -> None:
    parquet = tmp_path / "a.parquet"
    pl.DataFrame({"text": [None, None], "n": [1, 2]}).write_parquet(parquet)
    for path in (write(tmp_path, "a.csv", b"text,n\n,1\n ,2\n"), parquet):
        assert complaint(path) == (
            ": found no text in any of 2 rows, expected at least one; name another column with --text-column"
        )


def test_a_broken_parquet_file_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["a"] * 100}).write_parquet(path)
    whole = path.read_bytes()
    assert whole.startswith(PARQUET_MAGIC)
    for content in (b"", b"text\na\n", whole[:-4], whole[: len(whole) // 2], PARQUET_MAGIC * 20):
        message = complaint(write(tmp_path, "a.parquet", content))
        assert message.startswith(": found Parquet that cannot be read (")
        assert "\n" not in message
        assert message.endswith("), expected a whole Parquet file; fetch or write the file again")
