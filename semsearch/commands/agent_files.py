"""Add a server to the configuration file of an agent, and change nothing else in the text of the file.

JSON can have comments and commas before closing brackets, as VS Code and Zed write it. The text is edited in place, so
comments, order and indentation stay. Whoever changes a text parses it again and compares it with what was meant, so an
edit never loses an entry.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

JSON_STRING = r'"(?:[^"\\]|\\.)*"'
COMMENT = re.compile(rf"{JSON_STRING}|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
LAST_COMMA = re.compile(rf"{JSON_STRING}|[\[{{,]\s*,|(?P<last>,)(?=\s*[}}\]])", re.DOTALL)  # no comma without a value
WHITESPACE = re.compile(r"\s*")
FIRST_INDENTATION = re.compile(r'\s*\{\s*\n([ \t]+)"')
BYTE_ORDER_MARK = "\ufeff"
DECODER = json.JSONDecoder()


class EditError(ValueError):
    """A file that cannot be edited: what was found in it, and what was expected."""


def read_configuration(file: Path) -> str:
    """Return the text of a file with its own line ends, "" if there is none. Raises EditError if it is no UTF-8."""
    try:
        return file.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise EditError(f"{error.reason} at byte {error.start}, expected UTF-8") from error


def write_configuration(file: Path, text: str) -> None:
    """Replace a file in one step, and keep its mode. A link stays, and the file that it leads to is replaced."""
    file = file.resolve()
    file.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o666  # mode of a new file, before the umask
    if file.exists():
        mode = file.stat().st_mode & 0o7777
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            if file.exists():
                os.fchmod(descriptor, mode)
            opened.write(text.encode("utf-8"))
            opened.flush()
            os.fsync(descriptor)
        unfinished.replace(file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def parse_json(text: str) -> dict[str, Any]:
    """Return the object that a text has, {} if it has none. Raises EditError for all that is no object."""
    plain = _plain(text)
    if not plain.strip():
        return {}
    try:
        found = json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise EditError(f"{error}, expected JSON, which can have comments") from error
    return _object(found, "the file")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table that a text has. Raises EditError if it is no TOML."""
    try:
        return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        raise EditError(f"{error}, expected TOML") from error


def servers_in(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the servers that a file has, by name. Raises EditError if they are no object."""
    return _object(content.get(key, {}), key)


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = {list: "a list", type(None): "null"}.get(type(value), json.dumps(value, default=str))
        raise EditError(f"{name} is {kind}, expected an object")
    return value


def _plain(text: str) -> str:
    """Return a text of JSON with blanks in place of comments and of commas before closing brackets."""
    return LAST_COMMA.sub(lambda found: " " if found["last"] else found[0], _without_comments(text))


def _without_comments(text: str) -> str:
    return COMMENT.sub(_blanked, text.replace(BYTE_ORDER_MARK, " ", int(text.startswith(BYTE_ORDER_MARK))))


def _blanked(found: re.Match[str]) -> str:
    """Return a string as it is, and blanks of the same length for all else, with its line ends."""
    if found[0].startswith('"'):
        return found[0]
    return re.sub(r"[^\r\n]", " ", found[0])


def with_value(text: str, path: Sequence[str], value: object) -> str:
    """Return a text of JSON in which the members of a path lead to a value. Raises EditError if they cannot."""
    if not _plain(text).strip():
        text = f"{_ended(text)}{{}}{_line_end(text)}"
    plain = _plain(text)
    start = _skip(plain, 0)
    for depth, name in enumerate(path):
        if plain[start] != "{":
            _object(DECODER.raw_decode(plain, start)[0], path[depth - 1])
        children, _ = _children(plain, start)
        if name not in children:
            for each in reversed(path[depth + 1 :]):
                value = {each: value}
            return _with_child(text, start, depth, f"{json.dumps(name)}: ", value)
        start, end = children[name]
    if DECODER.raw_decode(plain, start)[0] == value:
        return text
    return text[:start] + _dumped(text, value, len(path)) + text[end:]


def with_item(text: str, name: str, item: object) -> str:
    """Return a text of JSON in which the list `name` of the object has an item too. Raises EditError for no list."""
    content = parse_json(text)
    if name not in content:
        return with_value(text, [name], [item])
    found = content[name]
    if not isinstance(found, list):
        raise EditError(f"{name} is {json.dumps(found)}, expected a list")
    if item in found:
        return text
    plain = _plain(text)
    start, _ = _children(plain, _skip(plain, 0))[0][name]
    return _with_child(text, start, 1, "", item)


def _with_child(text: str, start: int, depth: int, name: str, value: object) -> str:
    """Return a text in which an object or a list, which begins at `start`, has one more value at its end."""
    children, closing = _children(_plain(text), start)
    last = max((end for _, end in children.values()), default=start + 1)
    has_last_comma = "," in _without_comments(text)[last:closing]
    indentation = _indentation(text)
    line = f"{indentation * (depth + 1)}{name}{_dumped(text, value, depth + 1)}"
    if has_last_comma:
        line += ","
    begin_of_line = text.rfind("\n", 0, closing) + 1
    if begin_of_line > last and not text[begin_of_line:closing].strip():
        place, added = begin_of_line, f"{line}{_line_end(text)}"
    else:
        place, added = closing, f"{_line_end(text)}{line}{_line_end(text)}{indentation * depth}"
    comma = "," if children and not has_last_comma else ""
    return text[:last] + comma + text[last:place] + added + text[place:]


def _children(plain: str, start: int) -> tuple[dict[str, tuple[int, int]], int]:
    """Return where each value of an object or a list begins and ends, and where its closing bracket is.

    The values of a list have their numbers as names.
    """
    children = dict[str, tuple[int, int]]()
    place = _skip(plain, start + 1)
    while plain[place] not in "}]":
        name = str(len(children))
        if plain[start] == "{":
            name, place = DECODER.raw_decode(plain, place)
            place = _skip(plain, _skip(plain, place) + 1)  # behind the colon
        _, end = DECODER.raw_decode(plain, place)
        children[name] = place, end
        place = _skip(plain, end)
        if plain[place] == ",":
            place = _skip(plain, place + 1)
    return children, place


def _skip(plain: str, place: int) -> int:
    """Return the first place that is not blank."""
    found = WHITESPACE.match(plain, place)
    assert found is not None
    return found.end()


def _dumped(text: str, value: object, depth: int) -> str:
    """Return a value as JSON with the indentation and the line ends of a text; the first line has none."""
    indentation = _indentation(text)
    lines = json.dumps(value, indent=indentation, ensure_ascii=False).split("\n")
    return f"{_line_end(text)}{indentation * depth}".join(lines)


def _indentation(text: str) -> str:
    if found := FIRST_INDENTATION.match(_without_comments(text)):
        return found[1]
    return "  "


def _ended(text: str) -> str:
    """Return a text whose last line, if it has one, is ended: it can be a comment."""
    if not text or text.endswith("\n"):
        return text
    return text + _line_end(text)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def toml_table(key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return a table of TOML: the name of a server, and its strings and lists of strings."""
    lines = [f"[{key}.{name}]", *(_assignment(field, value) for field, value in entry.items())]
    return "".join(f"{line}\n" for line in lines)


def _assignment(field: str, value: object) -> str:
    return f"{field} = {json.dumps(value, ensure_ascii=False)}"  # such strings and lists are TOML too


def with_table(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return a text of TOML with one more table at its end, or with other values in the table that is there.

    Raises EditError if the values of that table cannot be replaced without a loss of comments.
    """
    line_end = _line_end(text)
    if name not in servers_in(parse_toml(text), key):
        if text:
            text = _ended(text) + line_end
        return text + toml_table(key, name, entry).replace("\n", line_end)
    lines = text.splitlines(keepends=True)
    is_header = re.compile(rf"""\ufeff?\s*\[\s*{key}\s*\.\s*["']?{name}["']?\s*\]""").match
    header = next((number for number, line in enumerate(lines) if is_header(line)), None)
    if header is None:
        raise EditError(f"{key} has {name} in another form, expected the table [{key}.{name}]")
    for field, value in entry.items():
        begin, end = _lines_of(lines, header, field)
        line = f"{_assignment(field, value)}{line_end}"
        if tomllib.loads("".join(lines[begin:end])) == {field: value}:
            continue
        if any("#" in each for each in lines[begin:end]):
            raise EditError(f"{field} of [{key}.{name}] has a comment, expected none")
        lines[begin:end] = [line]
    return "".join(lines)


def _lines_of(lines: Sequence[str], header: int, field: str) -> tuple[int, int]:
    """Return the first line of a field in a table and the one behind its last, or twice the one behind the header."""
    is_field = re.compile(rf"\s*{field}\s*=").match
    for begin in range(header + 1, len(lines)):
        if lines[begin].lstrip().startswith("["):
            break
        if is_field(lines[begin]):
            for end in range(begin + 1, len(lines) + 1):
                with suppress(tomllib.TOMLDecodeError):
                    tomllib.loads("".join(lines[begin:end]))
                    return begin, end
    return header + 1, header + 1
