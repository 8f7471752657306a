"""Formats of tables by their suffix, what a header can be, and the lines that errors name."""

import gzip
from pathlib import Path

import pytest

from semsearch.indexing.corpus import CorpusError
from semsearch.indexing.corpus.formats import json_rows, read_lines, rows_of
from semsearch.indexing.progress import no_progress
from tests.indexing.corpus.files import complaint, read_corpus, write


def rows(
    path: Path, separator: str | None = None, *, decimal_comma: bool = False
) -> list[tuple[int, dict[str, object]]]:
    return list(rows_of(path, separator, decimal_comma).read(no_progress))


@pytest.mark.parametrize("name", ["A.CSV", "a.csv.gz", "A.Csv.GZ"])
def test_a_suffix_counts_in_any_case_and_below_gz(name: str, tmp_path: Path) -> None:
    content = b"text,n\na goose,\n"
    path = write(tmp_path, name, gzip.compress(content) if name.lower().endswith(".gz") else content)
    assert rows(path) == [(2, {"text": "a goose", "n": None})]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_stated_separator_counts_in_each_format(name: str, tmp_path: Path) -> None:
    assert rows(write(tmp_path, name, "text;n\na,b;1\t2\n"), ";") == [(2, {"text": "a,b", "n": "1\t2"})]


def test_a_decimal_comma_is_read_in_numbers_alone(tmp_path: Path) -> None:
    fields = ["1,5", "-1.234,50", "1.234.567", "12", "1.23,4", "1.2345", "1,5 kg", "1,2,3", ",5", "\u0661,5"]
    content = "\n".join(["text;n", *(f"a;{field}" for field in fields)])
    found = [row["n"] for _, row in rows(write(tmp_path, "a.csv", content), ";", decimal_comma=True)]
    assert found == ["1.5", "-1234.50", "1234567", "12", *fields[4:]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "a,a\n1,2\n", ", line 1: found the column 'a', expected each name once and without blanks around it"),
        ("a.csv", "\n\nid,text \n1,a\n", ", line 3: found the column 'text ', expected each name once"),
        (
            "a.csv",
            "id\ttext\n1\ta\n",
            ", line 1: found the one column 'id\\ttext', expected columns apart by ','; name",
        ),
        ("a.csv", "id|text\n1|a\n", ", line 1: found the one column 'id|text', expected columns apart by ','; add"),
        ("a.tsv", "id,text\n1,a\n", ", line 1: found the one column 'id,text', expected columns apart by '\\t'; add"),
        ("a.csv", "sep=;\nid;text\n1;a;b\n", ", line 3: found 3 fields, expected 2 as in the header; put quotes"),
        ("a.csv", 'sep=;\nid;text\n1;"a\n', ", line 3: found a broken record (unexpected end of data), expected"),
        ("a.csv", 'id,text\n1,"a" b\n', ", line 2: found a broken record ("),
        ("a.jsonl", '{"text": "a"}\n\n7\n', ", line 3: found ValueError: a line that starts with '7', expected one"),
        ("a.jsonl", "[" * 100_000, ", line 1: found RecursionError: "),
        ("a.json", "[" * 100_000, ": found RecursionError: "),
        ("a.json", "[1", ": found JSONDecodeError: "),
        (
            "a.jsonl",
            '{" ": 1, "text": "a"}',
            ", line 1: found a column without a name, expected a name for each; name it",
        ),
        ("a.tar.gz", b"", ": found the suffix '.tar.gz', expected .csv, .tsv"),
        ("a", b"", ": found the suffix '', expected .csv, .tsv"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    assert complaint(write(tmp_path, name, content)).startswith(message)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "a;b\none\n"),  # the other character is in the only column that was chosen, and nothing else is
        ("a.csv", "n;\n1\n"),
    ],
)
def test_a_single_column_whose_name_has_another_separator_is_refused(name: str, content: str, tmp_path: Path) -> None:
    assert "found the one column" in complaint(write(tmp_path, name, content))


def test_a_name_can_have_another_separator_beside_other_columns(tmp_path: Path) -> None:
    assert rows(write(tmp_path, "a.csv", "a;b,text\n1,x\n")) == [(2, {"a;b": "1", "text": "x"})]


def test_a_json_file_of_lines_and_one_of_an_array(tmp_path: Path) -> None:
    assert rows(write(tmp_path, "a.json", '{"text": "a"}\n{"text": "b"}\n')) == [(1, {"text": "a"}), (2, {"text": "b"})]
    assert rows(write(tmp_path, "b.json", ' \n [{"text": "a"}, {}]')) == [(0, {"text": "a"}), (1, {})]
    assert rows(write(tmp_path, "c.json", "")) == []


def test_progress_is_told_for_each_thousand_lines_and_stays_below_the_whole(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []

    def on_progress(step: str, share: float, texts: int = 0) -> None:
        told.append((step, share))

    path = write(tmp_path, "a.jsonl", "{}\n" * 3_000)
    assert len(list(json_rows(path, on_progress))) == 3_000
    assert [step for step, _ in told] == ["read texts"] * 3
    assert all(0 <= share <= 0.99 for _, share in told)
    assert told[-1][1] > 0.5
    assert list(read_lines(write(tmp_path, "empty.csv", ""), on_progress)) == []


def test_a_broken_gzip_and_a_missing_file_differ(tmp_path: Path) -> None:
    with pytest.raises(
        CorpusError, match=r"found gzip that cannot be read .*BadGzipFile.*, expected a whole file of gzip"
    ):
        list(read_lines(write(tmp_path, "a.csv.gz", "text\n"), no_progress))
    with pytest.raises(FileNotFoundError):
        list(read_lines(tmp_path / "none.csv", no_progress))


def test_the_first_rows_of_json_can_lack_a_column_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"title": "one"}\n{"title": "two", "key": "k"}\n{"key": 3, "title": "three"}\n')
    corpus = read_corpus(path, "title", "key")
    assert (corpus.texts, corpus.ids) == (["one", "two", "three"], ["0", "k", "3"])
