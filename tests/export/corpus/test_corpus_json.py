"""JSON lines that are refused, in JSON's own words."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.export.corpus_files import complaint, read_corpus, write

ONE_OBJECT_A_LINE = "expected one whole JSON object on each line"


# Keys


@pytest.mark.parametrize(
    ("row", "key", "times"),
    [
        (r'{"text": "b", "n": 1, "n": 2}', "n", 2),
        (r'{"text": "b", "text": "b"}', "text", 2),
        (r'{"text": "b", "n": {"deep": [{"k": 1, "other": 2, "k": 1, "k": null}]}}', "k", 3),
        (r'{"text": "b", "n": 1, "\u006e": 2}', "n", 2),
    ],
)
def test_a_key_that_repeats_in_one_object_is_refused(tmp_path: Path, row: str, key: str, times: int) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"text": "a", "n": 0}}\n{row}\n'.encode())
    assert complaint(path) == (
        f", line 2: found the key {key!r} {times} times in one object, expected each key once;"
        " remove or rename all but one of them"
    )


def test_the_same_key_in_two_objects_of_a_line_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "a", "n": {"k": 1, "text": 2}, "m": [{"k": 1}, {"k": 2}]}\n')
    assert read_corpus(path).metadata == ['{"n":{"k":1,"text":2},"m":[{"k":1},{"k":2}]}']


# Values


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_does_not_have_is_refused(tmp_path: Path, constant: str) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"text": "a"}}\n{{"text": "b", "n": [{constant}]}}\n'.encode())
    assert complaint(path) == (
        f", line 2: found {constant}, expected a number that JSON has; write null, or leave the value out"
    )


@pytest.mark.parametrize(
    ("number", "shown"),
    [("1e999", "1e999"), ("-1.5E+400", "-1.5E+400"), ("9" * 400 + ".5", "9" * 40 + "...")],
)
def test_a_number_too_large_for_a_float_is_refused(tmp_path: Path, number: str, shown: str) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"text": "b", "n": {number}}}\n'.encode())
    assert complaint(path) == (
        f", line 1: found the number {shown}, expected one below 1.8e308; write it as a string, in quotes"
    )


def test_a_whole_number_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"text": "b", "n": {"7" * 5_000}}}\n'.encode())
    assert complaint(path) == (
        ", line 1: found a whole number of thousands of digits, expected at most 4,300; write it as a string, in quotes"
    )


def test_values_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "b", "n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    assert complaint(path) == (
        ", line 1: found arrays or objects nested too deeply, expected some hundred levels at most;"
        " store such a value as a string"
    )


def test_half_a_surrogate_pair_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "\\ud83d\\ude00"}\n{"text": "\\ud83d"}\n')
    assert complaint(path) == (
        r", line 2: found \ud83d, half of a surrogate pair, expected both halves of the character; correct that line"
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [(b"1", "a number"), (b"false", "a boolean"), (b"[]", "an array"), (b"{}", "an object")],
)
def test_a_json_text_that_is_not_a_string_is_refused_with_its_type(tmp_path: Path, value: bytes, kind: str) -> None:
    assert complaint(write(tmp_path, "a.jsonl", b'{"text":"a"}\n{"text":' + value + b"}\n")) == (
        f", line 2: found {kind} in the column 'text', expected a string; correct that line, or name another column"
    )


def test_a_json_id_that_is_an_object_names_its_type(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.jsonl", b'{"text":"a","id":{}}\n')) == (
        ", line 1: found an object in the column 'id', expected a string or a number;"
        " correct that line, or name another column"
    )


# Lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": b}', "Expecting value at column 10"),
        (b"{'text': True, 'n': None}", "Expecting property name enclosed in double quotes at column 2"),
        (b'{"text": "b"} {"text": "c"}', "Extra data at column 15"),
    ],
)
def test_a_broken_json_line_is_named(tmp_path: Path, line: bytes, reason: str) -> None:
    content = b'{"text": "a"}\n\n' + line + b'\n{"text": "d"}\n'
    assert complaint(write(tmp_path, "a.jsonl", content)) == (
        f", line 3: found broken JSON ({reason}), {ONE_OBJECT_A_LINE}; correct that line"
    )


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{\n  "text": "a"\n}\n', 1),
        (b'{"text": "a",\n "n": 1}\n', 1),
        (b'{"text": "a"}\n{"text": "b', 2),
        (b'{"text": "a"}\n{"text": "b"', 2),
        (b'{"text": "a"}\n{"te', 2),
        (b'{"text": "a"}\n{"text": "b", "n": tr', 2),
    ],
)
def test_an_object_that_its_line_does_not_hold_whole_is_named(tmp_path: Path, content: bytes, line: int) -> None:
    assert complaint(write(tmp_path, "a.jsonl", content)) == (
        f", line {line}: found an object that does not end on its line, {ONE_OBJECT_A_LINE};"
        " if it goes on in the next line, join them (jq -c . does); if not, fetch or write the file again"
    )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'"text"', "a line that starts with '\"text\"'"),
        (b"null", "a line that starts with 'null'"),
        (b"NaN", "a line that starts with 'NaN'"),
        (b"17", "a line that starts with '17'"),
        (b"id,text", "a line that starts with 'id,text'"),
        (b"\x1b[31m" + b"x" * 80, f"a line that starts with '\\x1b[31m{'x' * 35}'"),
    ],
)
def test_a_json_line_that_is_not_an_object_is_refused_with_its_number(tmp_path: Path, line: bytes, found: str) -> None:
    assert complaint(write(tmp_path, "a.jsonl", b'{"text": "a"}\n' + line + b"\n")) == (
        f", line 2: found {found}, {ONE_OBJECT_A_LINE}; correct that line"
    )


def test_an_array_on_a_later_line_is_refused_as_one_line(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, "a.jsonl", b'{"text": "a"}\n[1, 2]\n')) == (
        f", line 2: found a JSON array, {ONE_OBJECT_A_LINE}; write an object with a name for each value"
    )


ARRAYS = [
    b'[{"id": 1, "text": "a"},\n{"id": 2, "text": "b"}]\n',
    b'[\n  {\n    "id": 1,\n    "text": "a"\n  },\n  {\n    "id": 2,\n    "text": "b"\n  }\n]\n',
    b'\xef\xbb\xbf\n [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]',
]


@pytest.mark.parametrize("content", ARRAYS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.ndjson"])
def test_a_json_array_says_how_to_convert_it(tmp_path: Path, name: str, content: bytes) -> None:
    line = 2 if content.startswith(b"\xef") else 1
    start = f", line {line}: found a JSON array, {ONE_OBJECT_A_LINE}; convert it: "
    assert complaint(write(tmp_path, name, content)) == f"{start}jq -c '.[]' FILE"
    zipped = write(tmp_path, f"{name}.gz", gzip.compress(content))
    assert complaint(zipped) == f"{start}gunzip -c FILE | jq -c '.[]'"


@pytest.mark.skipif(shutil.which("jq") is None, reason="the command is jq's")
@pytest.mark.parametrize("content", ARRAYS[:2])
def test_the_command_that_is_named_converts_an_array(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, "a.json", content)
    command = complaint(path).partition("convert it: ")[2].replace("FILE", str(path))
    done = subprocess.run(command, shell=True, check=True, capture_output=True)
    assert read_corpus(write(tmp_path, "b.jsonl", done.stdout)).ids == ["1", "2"]


def test_messages_use_the_words_of_json_instead_of_python(tmp_path: Path) -> None:
    values: list[object] = [None, True, float("nan"), float("inf"), [], {}, 1]
    for value in values:
        for row in (value, {"text": value, "n": 1}, {"text": "t", "id": value}, {"text": "t", "n": [{"n": value}]}):
            path = write(tmp_path, "a.jsonl", json.dumps(row).encode())
            try:
                read_corpus(path)
            except ValueError as error:
                message = str(error).removeprefix(str(path))
                assert not {"True", "None", "nan", "inf"} & set(message.replace(",", " ").split()), message
