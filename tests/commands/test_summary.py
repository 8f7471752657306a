"""What `semsearch index` says of the texts that it read."""

from pathlib import Path

from semsearch.engine.bundle import check_bundle
from tests.command_line import Run, export_texts, run, summary
from tests.indexing.corpus.files import write

COLUMNS_AS_JSON = b"""\
{"text": "one", "year": 2019, "tags": ["a"], "told": "2024-05-31", "isbn": "12", "mixed": 1, "new": true}
{"text": "two", "year": 2020.5, "told": "2024-06-30", "isbn": "13", "mixed": "1"}
"""


def test_repeated_and_blank_ids_are_said(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(tmp_path, "a.csv", b"id,text\nx,one\nx,two\n,three\ny,\n,four\n,five\n")
    done = run("index", corpus, "--out", bundle_copy, "--replace")
    assert summary(done, "texts") == "5 from a.csv, 1 empty ones skipped"
    assert summary(done, "ids") == "3 blank ones replaced by the row number"
    assert done.err.startswith("warning: 1 texts have the id of an earlier one")


def test_the_types_of_the_columns_are_said_and_written_and_can_be_chosen(bundle_copy: Path, tmp_path: Path) -> None:
    corpus = write(tmp_path, "a.jsonl", COLUMNS_AS_JSON)
    command = ("index", corpus, "--out", bundle_copy, "--replace", "--verbose")
    said = summary(run(*command), "filters")
    assert said == "isbn (string), mixed (none), new (boolean), tags (list), told (date), year (number)"
    columns = check_bundle(bundle_copy).corpus.columns
    assert columns == {"isbn": "string", "new": "boolean", "tags": "list", "told": "date", "year": "number"}
    types = ("--column", "isbn=number", "--column=told=string", "--column", "tags=none")
    said = summary(run(*command, *types), "filters")
    assert said == "isbn (number), mixed (none), new (boolean), tags (none), told (string), year (number)"


def numbers_in(done: Run) -> list[str]:
    return [line.removeprefix("numbers").strip() for line in done.out.splitlines() if line.startswith("numbers")]


def test_numbers_of_a_csv_are_numbers_unless_another_type_is_asked_for(bundle_copy: Path, tmp_path: Path) -> None:
    first = b"text,year,isbn,mixed,the fee,exact\none,2019,007,1,,9007199254740993\n"
    corpus = write(tmp_path, "a.csv", first + b"two,2020.5,12,MMXX,-3,0.5\n,,x,x,x,x\n")
    done = export_texts(corpus, bundle_copy)
    assert numbers_in(done) == [
        "the fee has only numbers, compared as numbers; add --column 'the fee=string' to compare strings",
        "year has only numbers, compared as numbers; add --column year=string to compare strings",
    ]
    types = "exact (string), isbn (string), mixed (string), the fee (number), year (number)"
    assert summary(done, "filters") == types
    json_lines = write(tmp_path, "a.jsonl", b'{"text": "one", "year": "2019"}\n')
    hint = "year has only numbers, compared as strings; add --column year=number to compare numbers"
    assert numbers_in(export_texts(json_lines, bundle_copy)) == [hint]
    asked = export_texts(corpus, bundle_copy, "--column", "year=number", "--column", "the fee=string")
    assert "\nnumbers" not in asked.out
