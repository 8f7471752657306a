"""The ids of a corpus: what becomes one, what is counted, and what is refused."""

import gzip
from datetime import date
from pathlib import Path

import pytest

from export.corpus import CorpusError, read_texts
from tests.export.corpus.files import complaint, read_corpus, write, write_each_format, write_parquet

Rows = list[dict[str, str | None]]


def test_ids_that_repeat_are_kept_and_counted(tmp_path: Path) -> None:
    rows: Rows = [{"id": name, "text": "t"} for name in ("x", "y", "x", "x")]
    for path in write_each_format(tmp_path, rows):
        corpus = read_corpus(path)
        assert (corpus.ids, corpus.repeated_ids) == (["x", "y", "x", "x"], 2), path.name


@pytest.mark.parametrize("blank", [None, "", " ", "\u3000\t"])
def test_a_blank_id_becomes_the_row_number_and_is_counted(tmp_path: Path, blank: str | None) -> None:
    rows: Rows = [{"id": name, "text": "t"} for name in ("x", blank, blank, "0")]
    for path in write_each_format(tmp_path, rows):
        corpus = read_corpus(path)
        assert (corpus.ids, corpus.blank_ids) == (["x", "1", "2", "0"], 2), path.name


@pytest.mark.parametrize("row_of_the_id", [0, 2])
def test_a_blank_id_whose_row_number_is_the_id_of_another_row_is_refused(tmp_path: Path, row_of_the_id: int) -> None:
    rows: Rows = [{"id": "x", "text": "t"}, {"id": None, "text": "t"}, {"id": "y", "text": "t"}]
    rows[row_of_the_id]["id"] = "1"
    csv_file, json_file, parquet_file = write_each_format(tmp_path, rows)
    remedy = "expected a different id for each; write an id in each row, or name another column with --id-column"
    assert complaint(csv_file) == (
        f", line 3: found no id, and the row number 1 that replaces it is the id of line {row_of_the_id + 2}, {remedy}"
    )
    assert complaint(json_file) == (
        f", line 2: found no id, and the row number 1 that replaces it is the id of line {row_of_the_id + 1}, {remedy}"
    )
    assert complaint(parquet_file) == (
        ", row 1 (from 0): found no id, and the row number 1 that replaces it"
        f" is the id of row {row_of_the_id} (from 0), {remedy}"
    )


def test_the_lines_of_colliding_ids_are_those_of_the_uncompressed_file(tmp_path: Path) -> None:
    content = b'id,text\n,"two\nlines"\n\n0,t\n'
    for path in (write(tmp_path, "a.csv", content), write(tmp_path, "a.csv.gz", gzip.compress(content))):
        message = complaint(path)
        assert message.startswith(", line 3: found no id, and the row number 0 that replaces it is the id of line 5,")


def test_ids_of_rows_without_text_cannot_collide(tmp_path: Path) -> None:
    rows: Rows = [
        {"id": "1", "text": None},
        {"id": None, "text": "a"},
        {"id": None, "text": " "},
        {"id": "2", "text": "b"},
        {"id": "2", "text": " "},
    ]
    for path in write_each_format(tmp_path, rows):
        corpus = read_corpus(path)
        assert (corpus.ids, corpus.blank_ids, corpus.repeated_ids) == (["1", "2"], 1, 0), path.name


def test_a_file_without_an_id_column_has_no_blank_ids(tmp_path: Path) -> None:
    rows: Rows = [{"text": "a", "n": "1"}, {"text": "b", "n": "0"}]
    for path in write_each_format(tmp_path, rows):
        corpus = read_corpus(path)
        assert (corpus.ids, corpus.blank_ids, corpus.repeated_ids) == (["0", "1"], 0, 0), path.name


def test_a_json_line_without_the_id_column_has_a_blank_id(tmp_path: Path) -> None:
    corpus = read_corpus(write(tmp_path, "a.jsonl", b'{"text":"a"}\n{"text":"b","id":"x"}\n'))
    assert (corpus.ids, corpus.blank_ids) == (["0", "x"], 1)
    message = complaint(write(tmp_path, "b.jsonl", b'{"text":"a"}\n{"text":"b","id":0}\n'))
    assert message.startswith(", line 1: found no id, and the row number 0 that replaces it is the id of line 2,")


def test_a_whole_number_is_one_id_however_json_writes_it(tmp_path: Path) -> None:
    content = "".join(f'{{"text":"t","id":{value}}}\n' for value in ("1", '"1"', "1.0", "1e0", "1.5", 2**53 + 1))
    corpus = read_corpus(write(tmp_path, "a.jsonl", content.encode()))
    assert (corpus.ids, corpus.repeated_ids) == (["1", "1", "1", "1", "1.5", "9007199254740993"], 3)


def test_whole_numbers_that_parquet_holds_as_floats_are_ids_without_a_point(tmp_path: Path) -> None:
    ids = [7.0, None, float("nan"), 0.5, 2.0**60]
    corpus = read_corpus(write_parquet(tmp_path, {"id": ids, "text": ["t"] * 5}))
    assert (corpus.ids, corpus.blank_ids) == (["7", "1", "2", "0.5", "1.152921504606847e+18"], 2)


def test_a_float_beside_blank_ids_collides_as_a_whole_number_does(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, {"id": [1.0, None], "text": ["a", "b"]})
    assert complaint(path).startswith(", row 1 (from 0): found no id")


def test_a_date_is_an_id_in_iso_8601(tmp_path: Path) -> None:
    assert read_corpus(write_parquet(tmp_path, {"text": ["a"], "id": [date(2024, 2, 29)]})).ids == ["2024-02-29"]


def test_texts_alone_are_read_whatever_their_ids_are(tmp_path: Path) -> None:
    path = tmp_path / "calibration.csv"
    path.write_text("id,text\n1,first\n,second\n")
    with pytest.raises(CorpusError, match="no id"):
        read_corpus(path)
    assert read_texts(path, None, "--calibration-column") == ["first", "second"]
    with pytest.raises(CorpusError, match="name another with --calibration-column"):
        read_texts(path, "words", "--calibration-column")
