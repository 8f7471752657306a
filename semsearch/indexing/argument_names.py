"""Messages for callers from Python: they name arguments, such as `text_column=`, where messages name options.

A message is written for the command, such as "name the one to embed with --text-column". A function of Python changes
the messages of the errors that leave it, so that no message is written twice. A command that calls such a function
turns that off with `naming_options`.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from semsearch.engine.errors import ExpectedError, are_options_named

# an option, and perhaps its value: in quotation marks, an object of JSON, or a word
OPTION = re.compile(r"(?<![\w-])--(?P<option>[a-z]+(?:-[a-z]+)*)(?: (?P<value>'[^']*'|\{.*?\}(?=:|$)|[^\s,;:()`?]+))?")
SUBJECT = re.compile(r"--(?P<option>[a-z]+(?:-[a-z]+)*):")  # the beginning of a message about an option
COMMAND = re.compile(r"`semsearch (?P<command>index|evaluate)(?P<words>(?: [^`]*)?)`")
BARE_NUMBER = re.compile(r"-?\d+(\.\d+)?")

Names = Mapping[str, str]  # what Python has in place of each option: `strict=True`, or `out=` before a value


def argument_names(*functions: Callable[..., object]) -> dict[str, str]:
    """Return what Python has in place of the options of commands that are made of these functions."""
    names = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            option = name.replace("_", "-")
            if isinstance(parameter.default, bool):
                names[option] = f"{name}=True"
                names[f"no-{option}"] = f"{name}=False"
            else:
                names[option] = f"{name}="
    return names


@contextmanager
def naming_arguments(names: Names) -> Iterator[None]:
    """Name arguments in the errors of the block that its caller is expected to read, unless a command runs it."""
    try:
        yield
    except ExpectedError as error:
        error.args = tuple(as_arguments(each, names) if isinstance(each, str) else each for each in error.args)
        if hasattr(error, "__notes__"):
            error.__notes__ = [as_arguments(note, names) for note in error.__notes__]
        raise


def as_arguments(message: str, names: Names) -> str:
    """Return a message with arguments in place of options, or as it is for a command. Unknown options stay."""
    if are_options_named():
        return message
    subject = SUBJECT.match(message)
    if subject is not None and subject["option"] in names:
        message = subject["option"].replace("-", "_") + message[subject.end() - 1 :]
    message = COMMAND.sub(lambda found: _as_call(found["command"], found["words"], names), message)
    return OPTION.sub(lambda found: _as_argument(found, names), message)


def _as_argument(found: re.Match[str], names: Names) -> str:
    name, value = names.get(found["option"]), found["value"]
    if name is None:
        return found[0]
    if value is None:
        return name
    if not name.endswith("="):  # a flag, and a word behind it
        return f"{name} {value}"
    return name + _as_value(value)


def _as_value(words: str) -> str:
    """Return a value of an option as Python has it."""
    if words.startswith("{") or BARE_NUMBER.fullmatch(words):
        return words
    words = words.strip("'")
    column, equals, kind = words.rpartition("=")
    if equals:
        return json.dumps({column: kind}, ensure_ascii=False)
    return json.dumps(words, ensure_ascii=False)


def _as_call(command: str, words: str, names: Names) -> str:
    """Return a command of a message as a call, such as `index(PATH, out="bundle")`; without words, its name alone."""
    if not words.strip():
        return f"`{command}`"
    place, *options = words.strip().split(" --")
    arguments = [place]
    for option in options:
        name, _, value = option.partition(" ")
        if name not in names:
            return f"`semsearch {command}{words}`"
        argument = names[name]
        if argument.endswith("="):
            argument += _as_value(value)
        arguments.append(argument)
    return f"`{command}({', '.join(arguments)})`"
