"""What `python -m export corpus` says of the texts that it read."""

from decimal import Decimal
from pathlib import Path

import polars as pl

from function.engine.bundle import COLUMNS, open_bundle
from function.engine.metadata.columns import Columns
from function.engine.metadata.filters import allowed_rows
from tests.export.command_line import contents, error_line, export_texts, run, summary
from tests.export.corpus.files import write

COLUMNS_AS_JSON = b"""\
{"text": "one", "year": 2019, "tags": ["a"], "told": "2024-05-31", "isbn": "12", "mixed": 1, "new": true}
{"text": "two", "year": 2020.5, "told": "2024-06-30", "isbn": "13", "mixed": "1"}
"""


def test_repeated_and_blank_ids_are_said(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(tmp_path, "a.csv", b"id,text\nx,one\nx,two\n,three\ny,\n,four\n,five\n")
    done = export_texts(corpus, bundle_copy)
    assert summary(done, "texts") == "5 from a.csv, 1 empty ones skipped"
    assert summary(done, "ids") == "1 the same as an earlier one, 3 blank ones replaced by the row number"


def test_the_files_of_a_folder_are_counted_and_those_that_are_skipped(bundle_copy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    write(folder, "a.csv", b"text\none\n")
    assert "\nfiles" not in export_texts(folder, bundle_copy).out
    for name in ("_SUCCESS", "_metadata"):
        write(folder, name, b"")
    (folder / "latest.csv").symlink_to("a.csv")
    assert summary(export_texts(folder, bundle_copy), "files") == (
        "1 read; 1 skipped: a link leads to what is read already, such as latest.csv; "
        "2 skipped: the name begins with a dot or an underscore, such as _SUCCESS"
    )


def test_values_that_json_cannot_hold_are_said(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "a.parquet"
    pl.DataFrame({"text": ["one", "two"], "score": [float("nan"), 1.0]}).write_parquet(corpus)
    assert summary(export_texts(corpus, bundle_copy), "metadata") == "1 NaN or infinite values left out"


def test_the_types_of_the_columns_are_said_and_written_and_can_be_chosen(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(tmp_path, "a.jsonl", COLUMNS_AS_JSON)
    said = summary(export_texts(corpus, bundle_copy), "filters")
    assert said == "isbn (string), mixed (none), new (boolean), tags (list), told (date), year (number)"
    index = open_bundle(bundle_copy).index
    assert index is not None
    assert index.columns == {"isbn": "string", "new": "boolean", "tags": "list", "told": "date", "year": "number"}
    types = ("--column", "isbn=number", "--column=told=string", "--column", "tags=none")
    said = summary(export_texts(corpus, bundle_copy, *types), "filters")
    assert said == "isbn (number), mixed (none), new (boolean), tags (none), told (string), year (number)"


def test_numbers_of_a_csv_are_said_to_be_compared_as_strings(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(
        tmp_path, "a.csv", b"text,year,isbn,mixed,the fee\none,2019,007,1,\ntwo,2020.5,12,MMXX,-3\n,x,x,x,x\n"
    )
    done = export_texts(corpus, bundle_copy)
    assert [line.removeprefix("numbers").strip() for line in done.out.splitlines() if line.startswith("numbers")] == [
        "the fee has only numbers, compared as strings; add --column 'the fee=number' to compare numbers",
        "year has only numbers, compared as strings; add --column year=number to compare numbers",
    ]
    asked = export_texts(corpus, bundle_copy, "--column", "year=number", "--column", "the fee=string")
    assert "\nnumbers" not in asked.out


def test_texts_without_columns_are_said_to_have_none(bundle_copy: Path, tmp_path: Path) -> None:
    assert (bundle_copy / COLUMNS).exists()
    done = export_texts(write(tmp_path, "a.csv", b"id,text\nx,one\n"), bundle_copy)
    assert summary(done, "filters") == "no columns"
    assert not (bundle_copy / COLUMNS).exists()
    assert COLUMNS not in open_bundle(bundle_copy).files


def test_a_value_of_another_type_than_was_asked_for_stops_the_export(bundle_copy: Path, tmp_path: Path) -> None:
    before = contents(bundle_copy)
    corpus = write(tmp_path, "a.csv", b"id,text,year\nx,one,2019\ny,two,MMXX\n")
    line = error_line(run("corpus", "--corpus", corpus, "--out", bundle_copy, "--column", "year=number"))
    assert f"{corpus}, text 1 (from 0, id 'y'): found 'MMXX' in the column 'year', expected a number; " in line
    assert contents(bundle_copy) == before


def test_numbers_of_parquet_are_compared_exactly(bundle_copy: Path, tmp_path: Path) -> None:
    numbers = [2**64 - 1, 2**64 - 2, 2**63]
    columns = {
        "hash": pl.Series(numbers, dtype=pl.UInt64),
        "amount": pl.Series([Decimal(number) for number in numbers], dtype=pl.Decimal(38, 0)),
    }
    pl.DataFrame({"text": ["one", "two", "three"]} | columns).write_parquet(tmp_path / "a.parquet")
    done = export_texts(tmp_path / "a.parquet", bundle_copy, "--column", "amount=number")
    assert summary(done, "filters") == "amount (number), hash (number)"
    found = Columns(bundle_copy / COLUMNS, {"amount": "number", "hash": "number"}, 3)
    for name in ("amount", "hash"):
        kept = [allowed_rows({name: number}, found).nonzero()[0].tolist() for number in numbers]
        assert kept == [[0], [1], [2]]
