"""A folder of files is one corpus."""

from pathlib import Path

import polars as pl

from export.corpus import read_corpus
from tests.export.corpus_files import complaint, write


def test_the_files_of_a_folder_are_one_corpus_in_the_order_of_their_paths(tmp_path: Path) -> None:
    write(tmp_path, "b.jsonl", b'{"text": "three"}\n{"text": ""}\n{"text": "four"}\n')
    write(tmp_path, "a.csv", b"text,year\none,1999\ntwo,\n")
    (tmp_path / "c").mkdir()
    pl.DataFrame({"text": ["five", "six"], "id": ["x", None]}).write_parquet(tmp_path / "c" / "a.parquet")
    corpus = read_corpus(tmp_path)
    assert corpus.texts == ["one", "two", "three", "four", "five", "six"]
    assert corpus.ids == ["0", "1", "2", "4", "x", "6"]  # row numbers go on from file to file
    assert (corpus.empty_texts, corpus.blank_ids) == (1, 1)
    assert corpus.metadata[0] == '{"year":"1999"}'


def test_hidden_files_and_those_of_other_programs_are_no_part_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"text\none\n")
    for name in (".a.csv.crc", "_SUCCESS"):
        write(tmp_path, name, b"x")
    assert read_corpus(tmp_path).texts == ["one"]


def test_an_error_in_a_folder_names_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a.csv", b"text\none\n")
    write(tmp_path, "b.csv", b"text,year\none\n")
    assert complaint(tmp_path).startswith("/b.csv, line 2: found 1 field")


def test_the_share_of_a_folder_that_was_read_never_falls(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path, f"{name}.csv", b"text\n" + b"word\n" * 2_000)
    told: list[float] = []
    read_corpus(tmp_path, told=told.append)
    assert told == sorted(told)
    assert told[0] > 0
    assert told[-1] <= 1
