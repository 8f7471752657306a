"""The columns of a corpus: their names, and the separator that a CSV file states."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.export.corpus_files import complaint, read_corpus, write

# Names


@pytest.mark.parametrize(
    ("header", "number"), [(",text,n", 1), ("id,text,", 3), ("id,text,  ", 3), (",text,", 1), ('"",text,n', 1)]
)
def test_a_csv_column_without_a_name_is_refused(tmp_path: Path, header: str, number: int) -> None:
    assert complaint(write(tmp_path, "a.csv", f"{header}\n0,one,2\n".encode())) == (
        f", line 1: found no name for column {number}, expected a name for each; name it in the header, or leave the"
        " column out (pandas writes its index without a name: use to_csv(..., index=False))"
    )


@pytest.mark.parametrize("name", ["", " ", "\u3000"])
def test_a_json_key_without_a_name_is_refused(tmp_path: Path, name: str) -> None:
    lines = [{"text": "a", "n": 1}, {"text": "b", "n": 1}, {"text": "c", "n": 1, name: 2}]
    content = "".join(json.dumps(line) + "\n" for line in lines)
    assert complaint(write(tmp_path, "a.jsonl", content.encode())) == (
        ", line 3: found no name for column 3, expected a name for each; name it, or leave it out"
    )


def test_a_key_within_a_json_value_may_be_empty(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path, "a.jsonl", b'{"text":"a","n":{"":1}}\n')).metadata == ['{"n":{"":1}}']


@pytest.mark.parametrize("name", ["", " "])
def test_a_parquet_column_without_a_name_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["a"], name: [1]}).write_parquet(path)
    assert complaint(path) == (": found no name for column 2, expected a name for each; name it, or leave it out")


@pytest.mark.parametrize(("header", "name"), [("id, text", " text"), ("id ,text", "id "), ('id," text\t"', " text\t")])
def test_blanks_around_a_csv_column_name_are_refused(tmp_path: Path, header: str, name: str) -> None:
    assert complaint(write(tmp_path, "a.csv", f"{header}\n1,one\n".encode())) == (
        f", line 1: found the column {name!r}, expected no blanks around a name; remove them from the header,"
        " and from the rows if they have them too"
    )


def test_a_column_named_twice_is_refused_since_one_would_be_lost(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.csv", b"text,a,a\nx,1,2\n")) == (
        ", line 1: found 2 columns 'a', expected each name once; rename columns in the header"
    )


# Separators


@pytest.mark.parametrize(
    ("name", "separator", "expected", "remedy"),
    [
        ("a.csv", ";", ",", "put sep=; on a line before the header"),
        ("a.csv", "\t", ",", "name the file .tsv"),
        ("a.tsv", ",", "\t", "put sep=, on a line before the header"),
    ],
)
def test_a_header_with_another_separator_is_refused(
    tmp_path: Path, name: str, separator: str, expected: str, remedy: str
) -> None:
    header = f"id{separator}text"
    assert complaint(write(tmp_path, name, f"{header}\n1{separator}one\n".encode())) == (
        f", line 1: found the one column {header!r}, expected columns apart by {expected!r};"
        f" {remedy}, or write the file with {expected!r}"
    )


def test_a_single_column_may_have_the_separator_in_its_quoted_name(tmp_path: Path) -> None:
    assert read_corpus(write(tmp_path, "a.csv", b'"text, or title"\none\n')).texts == ["one"]


@pytest.mark.parametrize("separator", [";", ",", "|", "\t"])
@pytest.mark.parametrize("first", ["sep={}\r\n", "\ufeffsep={}\n", '"sep={}"\n', "SEP={}\n"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_the_separator_that_excel_states_in_the_first_line_is_used(
    tmp_path: Path, name: str, first: str, separator: str
) -> None:
    rows = [("id", "text", "n"), ("1", "one", ""), ("2", f'"two{separator} or\n""more"""', "3")]
    content = first.format(separator) + "".join(separator.join(row) + "\n" for row in rows)
    corpus = read_corpus(write(tmp_path, name, content.encode()))
    assert corpus.texts == ["one", f'two{separator} or\n"more"']
    assert (corpus.ids, corpus.metadata) == (["1", "2"], ["{}", '{"n":"3"}'])


def test_lines_count_from_the_first_line_although_it_states_the_separator(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.csv", b"sep=;\nid;text\n1;one\n2\n")) == (
        ", line 4: found 1 field, expected 2 as in the header;"
        " put quotes around a field that holds ';', or add what is missing"
    )
    assert complaint(write(tmp_path, "a.csv", b"sep=;\nid;text;text\n")).startswith(", line 2: found 2 columns 'text'")


def test_a_file_with_only_a_separator_line_has_no_rows(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.csv", b"sep=;\n")).startswith(": found no rows")


@pytest.mark.parametrize("header", ["sep=", "sep=ab", "sep=x", "sep"])
def test_a_column_may_be_called_nearly_as_excel_states_a_separator(tmp_path: Path, header: str) -> None:
    assert read_corpus(write(tmp_path, "a.csv", f"{header}\none\n".encode())).texts == ["one"]
