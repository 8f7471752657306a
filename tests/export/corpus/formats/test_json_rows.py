"""JSON lines, and those that are refused in JSON's own words."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.export.corpus.files import complaint, read_corpus, write

ONE_OBJECT_A_LINE = "expected one whole JSON object on each line"
KEY_ONCE = "times in one object, expected each key once; remove or rename all but one of them"
OTHER_COLUMN = "correct that line, or name another column"
HALF_A_PAIR = r"found \ud83d, half of a surrogate pair, expected both halves of the character; correct that line"
TOO_LARGE = "expected one below 1.8e308; write it as a string, in quotes"
TOO_LONG = "found a whole number of thousands of digits, expected at most 4,300; write it as a string, in quotes"
TOO_DEEP = (
    "found arrays or objects nested too deeply, expected some hundred levels at most; store such a value as a string"
)
NO_NAME = "found no name for column 3, expected a name for each; name it, or leave it out"
CUT_OFF = (
    f"found an object that does not end on its line, {ONE_OBJECT_A_LINE}; if it goes on in the next line, join them "
    "(jq -c . does); if not, fetch or write the file again"
)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        # keys
        (r'{"text": "b", "n": 1, "n": 2}', f"found the key 'n' 2 {KEY_ONCE}"),
        (r'{"text": "b", "text": "b"}', f"found the key 'text' 2 {KEY_ONCE}"),
        (r'{"text": "b", "n": {"deep": [{"k": 1, "other": 2, "k": 1, "k": null}]}}', f"found the key 'k' 3 {KEY_ONCE}"),
        (r'{"text": "b", "n": 1, "\u006e": 2}', f"found the key 'n' 2 {KEY_ONCE}"),
        *((f'{{"text": "c", "n": 1, "{name}": 2}}', NO_NAME) for name in ("", " ", "\u3000")),
        # values
        *(
            (f'{{"text": "b", "n": [{name}]}}', f"found {name}, expected a number that JSON has; write null, or leave")
            for name in ("NaN", "Infinity", "-Infinity")
        ),
        ('{"text": "b", "n": 1e999}', f"found the number 1e999, {TOO_LARGE}"),
        ('{"text": "b", "n": -1.5E+400}', f"found the number -1.5E+400, {TOO_LARGE}"),
        (f'{{"text": "b", "n": {"9" * 400}.5}}', f"found the number {'9' * 40}..., {TOO_LARGE}"),
        (f'{{"text": "b", "n": {"7" * 5_000}}}', TOO_LONG),
        (f'{{"text": "b", "n": {"[" * 100_000 + "]" * 100_000}}}', TOO_DEEP),
        (r'{"text": "\ud83d"}', HALF_A_PAIR),
        *(
            (f'{{"text": {value}}}', f"found {kind} in the column 'text', expected a string; {OTHER_COLUMN}")
            for value, kind in (("1", "a number"), ("false", "a boolean"), ("[]", "an array"), ("{}", "an object"))
        ),
        *(
            (f'{{"text": "b", "id": {value}}}', f"found {kind} in the column 'id', expected a string or a number; ")
            for value, kind in (("true", "a boolean"), ("{}", "an object"))
        ),
        # lines
        *(
            (line, f"found broken JSON ({reason}), {ONE_OBJECT_A_LINE}; correct that line")
            for line, reason in (
                ('{"text": b}', "Expecting value at column 10"),
                ("{'text': True, 'n': None}", "Expecting property name enclosed in double quotes at column 2"),
                ('{"text": "b"} {"text": "c"}', "Extra data at column 15"),
            )
        ),
        *(
            (line, CUT_OFF)
            for line in ('{\n  "text": "a"\n}', '{"text": "a",\n "n": 1}', '{"text": "b', '{"text": "b"', '{"te')
        ),
        ('{"text": "b", "n": tr', CUT_OFF),
        *(
            (line, f"found a line that starts with {shown!r}, {ONE_OBJECT_A_LINE}; correct that line")
            for line, shown in (
                *((line, line) for line in ('"text"', "null", "NaN", "17", "id,text")),
                ("\x1b[31m" + "x" * 80, f"\x1b[31m{'x' * 35}"),
            )
        ),
        ("[1, 2]", f"found a JSON array, {ONE_OBJECT_A_LINE}; write an object with a name for each value"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_line_is_refused_with_its_number_and_a_remedy(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"text": "\\ud83d\\ude00", "n": 0}}\n\n{line}\n')
    assert complaint(path).startswith(f", line 3: {message}")


def test_keys_may_repeat_or_be_empty_within_different_values(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"text": "a", "n": {"k": 1, "text": 2}, "m": [{"k": 1}, {"": 2}]}\n')
    assert read_corpus(path).metadata == ['{"n":{"k":1,"text":2},"m":[{"k":1},{"":2}]}']


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
            path = write(tmp_path, "a.jsonl", json.dumps(row))
            try:
                read_corpus(path)
            except ValueError as error:
                message = str(error).removeprefix(str(path))
                assert not {"True", "None", "nan", "inf"} & set(message.replace(",", " ").split()), message
