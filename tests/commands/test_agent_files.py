"""The configuration files of agents: what an edit adds, and that all else stays byte for byte."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.commands.agent_files import (
    EditError,
    parse_json,
    parse_toml,
    read_configuration,
    servers_in,
    toml_table,
    with_item,
    with_table,
    with_value,
    write_configuration,
)

PATH = ["servers", "docs"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "servers": {\n    "docs": 1\n  }\n}\n'),
        ("  \n", '  \n{\n  "servers": {\n    "docs": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "servers": {\n    "docs": 1\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "servers": {\n    "docs": 1\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "docs": 1\n  }\n}'),
        ("{ }\n", '{ \n  "servers": {\n    "docs": 1\n  }\n}\n'),
        ("{\n}\n", '{\n  "servers": {\n    "docs": 1\n  }\n}\n'),
        ('{"servers": {}}', '{"servers": {\n    "docs": 1\n  }}'),
        ('{"servers": {"a": 2}}', '{"servers": {"a": 2,\n    "docs": 1\n  }}'),
        ('{"servers": {"docs": 2, "a": 3}}', '{"servers": {"docs": 1, "a": 3}}'),
        ('{"servers": {"docs": 1}}', '{"servers": {"docs": 1}}'),
        ('{"servers": {"docs":1.0}}', '{"servers": {"docs":1.0}}'),
        ('{"a": 2, "servers": {"a": 2}, "b": [3]}', '{"a": 2, "servers": {"a": 2,\n    "docs": 1\n  }, "b": [3]}'),
        ('{"b": "},]//"}', '{"b": "},]//",\n  "servers": {\n    "docs": 1\n  }\n}'),
        ('{"\\"a": "\\\\"}', '{"\\"a": "\\\\",\n  "servers": {\n    "docs": 1\n  }\n}'),
        ('\ufeff{"servers": {}}', '\ufeff{"servers": {\n    "docs": 1\n  }}'),
    ],
)
def test_a_value_is_added_at_the_end_or_replaces_the_one_of_its_name(before: str, after: str) -> None:
    assert with_value(before, PATH, 1) == after


WITH_COMMENTS = """\
// servers of this folder
{
\t"inputs": [], /* none, yet */
\t"servers": {
\t\t// the first, with "quotes" and a }
\t\t"first": {"command": "a"}, // after it
\t\t"second": {
\t\t\t"command": "b", // has a comma behind it
\t\t}, /* , */
\t\t// the end
\t},
}
"""


def test_comments_tabs_and_last_commas_stay() -> None:
    expected = WITH_COMMENTS.replace(
        "\t\t// the end\n",
        '\t\t// the end\n\t\t"docs": {\n\t\t\t"command": "c",\n\t\t\t"args": [\n\t\t\t\t"d"\n\t\t\t]\n\t\t},\n',
    )
    assert with_value(WITH_COMMENTS, PATH, {"command": "c", "args": ["d"]}) == expected


def test_without_a_last_comma_one_is_added_behind_the_value_and_before_its_comment() -> None:
    before = '{\n    "servers": {\n        "a": {} // first, and last\n    }\n}\n'
    expected = '{\n    "servers": {\n        "a": {}, // first, and last\n        "docs": 1\n    }\n}\n'
    assert with_value(before, PATH, 1) == expected


def test_a_value_that_is_replaced_takes_nothing_with_it() -> None:
    expected = WITH_COMMENTS.replace('"b"', '"new"')
    assert with_value(WITH_COMMENTS, ["servers", "second", "command"], "new") == expected


def test_line_ends_of_windows_stay() -> None:
    before = '{\r\n  "servers": {\r\n    "a": 2\r\n  }\r\n}\r\n'
    expected = '{\r\n  "servers": {\r\n    "a": 2,\r\n    "docs": {\r\n      "b": 1\r\n    }\r\n  }\r\n}\r\n'
    assert with_value(before, PATH, {"b": 1}) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "inputs": [\n    2\n  ]\n}\n'),
        ('{"inputs": []}', '{"inputs": [\n    2\n  ]}'),
        ('{"inputs": [1]}', '{"inputs": [1,\n    2\n  ]}'),
        ('{\n  "inputs": [\n    1, // one\n  ],\n}\n', '{\n  "inputs": [\n    1, // one\n    2,\n  ],\n}\n'),
        ('{"inputs": [2]}', '{"inputs": [2]}'),
    ],
)
def test_an_item_is_added_at_the_end_of_a_list_that_lacks_it(before: str, after: str) -> None:
    assert with_item(before, "inputs", 2) == after


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["//", "/*", ",}", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["a", "servers", "//", "c,"]), st.dictionaries(st.text(max_size=3), values)),
    st.sampled_from([None, 0, 2, "\t"]),
    values,
)
def test_what_any_json_holds_besides_is_the_same_after_an_edit(
    content: dict[str, dict[str, Any]], indent: int | str | None, value: Any
) -> None:
    text = with_value(json.dumps(content, indent=indent), PATH, value)
    assert json.loads(text) == {**content, "servers": {**content.get("servers", {}), "docs": value}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n  ]\n", "Expecting property name enclosed in double quotes: line 2 column 3 (char 4), expected JSON"),
        ("/* {\n\r\n*/ {\n]", "line 4 column 1 (char 12), expected JSON"),
        ("/* ] */ [1}", "Expecting ',' delimiter: line 1 column 11 (char 10), expected JSON"),
        ("{} // a\n{}", "Extra data: line 2 column 1 (char 8), expected JSON"),
        ("[,]", "Expecting value: line 1 column 2 (char 1), expected JSON"),
        ('{"a": 1,\n,}', "Expecting property name enclosed in double quotes: line 2 column 1 (char 9), expected JSON"),
        ("[" * 100_000, "maximum recursion depth exceeded"),
        ("[]", "the file is a list, expected an object"),
        ("null", "the file is null, expected an object"),
        ('"a"', 'the file is "a", expected an object'),
    ],
)
def test_what_is_no_object_is_an_error_that_says_where(text: str, message: str) -> None:
    with pytest.raises(EditError) as raised:
        parse_json(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(("value", "kind"), [("[]", "a list"), ("null", "null"), ("3", "3")])
def test_servers_that_are_no_object_are_an_error(value: str, kind: str) -> None:
    text = f'{{"servers": {value}}}'
    with pytest.raises(EditError, match=f"^servers is {kind}, expected an object$"):
        servers_in(parse_json(text), "servers")
    with pytest.raises(EditError, match=f"^servers is {kind}, expected an object$"):
        with_value(text, PATH, 1)


def test_an_item_of_what_is_no_list_is_an_error() -> None:
    with pytest.raises(EditError, match=r"^inputs is \{\}, expected a list$"):
        with_item('{"inputs": {}}', "inputs", 2)


ENTRY = {"command": "python", "args": ["-m", 'a "quoted" \\ path', "ü"]}
TABLE = '[mcp_servers.docs]\ncommand = "python"\nargs = ["-m", "a \\"quoted\\" \\\\ path", "ü"]\n'


def test_a_table_of_toml_has_the_values() -> None:
    assert toml_table("mcp_servers", "docs", ENTRY) == TABLE
    assert tomllib.loads(TABLE) == {"mcp_servers": {"docs": ENTRY}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", TABLE),
        ('model = "a"  # mine\n', f'model = "a"  # mine\n\n{TABLE}'),
        ('model = "a"', f'model = "a"\n\n{TABLE}'),
        ("[mcp_servers.other]\nargs = []\n", f"[mcp_servers.other]\nargs = []\n\n{TABLE}"),
        ("a = 1\r\n", f"a = 1\r\n\r\n{TABLE}".replace("\n", "\r\n").replace("\r\r", "\r")),
        (TABLE, TABLE),
        (TABLE.replace("python", "old"), TABLE),
        (TABLE.replace('"python"', '"python"  # mine'), TABLE.replace('"python"', '"python"  # mine')),
        (
            '[mcp_servers."docs"] # mine\n# two\ncommand = "old"\nenv = {A = "1"}\n'
            'args = [\n  "b",\n]\n\n[z]\nargs = 1\n',
            '[mcp_servers."docs"] # mine\n# two\ncommand = "python"\nenv = {A = "1"}\n'
            f"{TABLE.splitlines()[2]}\n\n[z]\nargs = 1\n",
        ),
        (
            '[mcp_servers.docs]\ncommand = "python"\n\n[z]\nargs = 1\n',
            f'[mcp_servers.docs]\n{TABLE.splitlines()[2]}\ncommand = "python"\n\n[z]\nargs = 1\n',
        ),
    ],
)
def test_a_table_is_added_at_the_end_or_gets_other_values(before: str, after: str) -> None:
    assert with_table(before, "mcp_servers", "docs", ENTRY) == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('mcp_servers = {docs = {command = "a"}}\n', "mcp_servers has docs in another form"),
        ('[mcp_servers.docs]\ncommand = "a"  # mine\n', r"command of \[mcp_servers.docs\] has a comment"),
        ("[mcp_servers\n", r"\(at line 1, column 13\), expected TOML"),
        ("mcp_servers = []\n", "mcp_servers is a list, expected an object"),
    ],
)
def test_a_table_that_cannot_be_changed_without_a_loss_is_an_error(text: str, message: str) -> None:
    with pytest.raises(EditError, match=message):
        with_table(text, "mcp_servers", "docs", ENTRY)


def test_toml_is_read_with_the_line_ends_and_the_mark_of_windows() -> None:
    assert parse_toml('\ufeffa = """x\r\ny"""\r\n') == {"a": "x\ny"}


def test_a_file_is_replaced_with_its_mode_and_a_link_to_it_stays(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "real.json").chmod(0o666)  # more than the umask leaves
    opened = (tmp_path / "real.json").open()
    (tmp_path / "link.json").symlink_to("real.json")
    write_configuration(tmp_path / "link.json", "{ü}")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_bytes() == "{ü}".encode()
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o666
    with opened:
        assert opened.read() == "{}"  # the older file was not written into
    assert {path.name for path in tmp_path.iterdir()} == {"real.json", "link.json"}


def test_a_file_that_cannot_be_written_whole_stays_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    with pytest.raises(UnicodeEncodeError):
        write_configuration(file, "\ud800")
    assert file.read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_read_with_its_line_ends_and_one_that_is_missing_as_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\r\n")
    assert (read_configuration(tmp_path / "a"), read_configuration(tmp_path / "b")) == ("a\r\n", "")
    (tmp_path / "a").write_bytes(b"\xff")
    with pytest.raises(EditError, match="invalid start byte at byte 0, expected UTF-8"):
        read_configuration(tmp_path / "a")


def test_a_new_file_has_the_mode_that_other_programs_give_it_here(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_configuration(tmp_path / "new.json", "{}")
    assert (tmp_path / "new.json").stat().st_mode == (tmp_path / "other").stat().st_mode
