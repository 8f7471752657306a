"""The console script `semsearch`: its commands, each in a module of its own, and how they end."""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from inspect import BoundArguments
from itertools import dropwhile
from typing import Any, NoReturn

from cyclopts import App, CycloptsError, UnknownOptionError

from semsearch.commands.options import LOOK
from semsearch.commands.terminal import UNUSABLE, fail, run, visible
from semsearch.engine.errors import ExpectedError, OptionError, naming_options
from semsearch.version import VERSION

COMMANDS = (
    "index",
    "query",
    "serve",
    "mcp",
    "install-mcp",
    "evaluate",
    "site",
    "publish",
    "history",
    "rollback",
    "prune",
    "remove",
    "restore",
    "verify",
    "key",
    "model",
)
READING = ("query", "serve", "mcp")  # commands that write no file, and need not be run again after an interruption
HELP = ("--help", "-h")
FOR_PROGRAMS = ("serve", "mcp")  # they print UTF-8, whatever the encoding of the terminal is

app: App = App(
    "semsearch",
    version=f"semsearch {VERSION}",
    help="Search your own texts and documents by meaning and by words.",
    help_epilogue="`semsearch COMMAND --help` shows the options of a command and examples.",
    **LOOK,
)
for _place, _name in enumerate(COMMANDS):
    app.command(f"semsearch.commands.{_name.replace('-', '_')}:command", name=_name, sort_key=_place)
app.register_install_completion_command()


def main() -> NoReturn:
    """Run the command that sys.argv names, and exit with its exit code."""
    words = sys.argv[1:]
    encoding = "utf-8" if words and words[0] in FOR_PROGRAMS else None
    sys.exit(run(lambda: dispatch(words), encoding, explain_import))


def dispatch(words: Sequence[str], program: App = app) -> int:
    """Run a command, and return its exit code: 0 if it is done, 1 if it failed, 2 for arguments that cannot be used.

    Raises KeyboardInterrupt and SystemExit, which `run` turns into exit codes.
    """
    if not words or words[0] in HELP:
        program.resolved_commands()  # their first sentences are shown
    try:
        command, bound = parse(words, program)
        with naming_options():
            code = command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        chain = " ".join([program.name[0], *(error.command_chain or ())])
        fail(f"{str(error).rstrip('.')}{_as_text(words, error)}; see `{chain} --help`")
        return UNUSABLE
    except OptionError as error:
        fail(error.on_command_line())
        return UNUSABLE
    except ExpectedError as error:
        return fail(with_notes(str(error), error))
    except (KeyboardInterrupt, SystemExit) as stopped:  # SystemExit after SIGTERM, or if nobody reads standard output
        if words[0] not in READING and not {*HELP} & {*words}:
            said = " ".join(getattr(stopped, "__notes__", ["run the command again"]))
            sys.stderr.write(f"interrupted: {visible(said)}\n")
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError) or (error.filename is None and words[0] in READING):
            raise  # the error is that of a standard stream, which `run` reports
        where = "" if error.filename is None else f"{error.filename}: "
        return fail(with_notes(f"{where}{error.strerror or error}", error))
    if isinstance(code, int):
        return code
    return 0


def parse(words: Sequence[str], program: App) -> tuple[Callable[..., Any], BoundArguments]:
    """Return the function that words name, with its arguments. Options can also follow `--` and its values.

    Raises CycloptsError for words that cannot be used.
    """
    ordered = list(words)
    if "--" in words:
        unused: list[str] = []
        with suppress(CycloptsError):  # it is raised below
            _, _, unused, _ = program.parse_known_args(ordered)
        options = list(dropwhile(lambda word: not word.startswith("-"), unused))
        place = ordered.index("--")  # cyclopts reads options before it alone
        ordered = [*ordered[:place], *options, *ordered[place : len(ordered) - len(options)]]
    command, bound, _ = program.parse_args(ordered, exit_on_error=False, print_error=False)
    return command, bound


def _as_text(words: Sequence[str], error: CycloptsError) -> str:
    """Return how to search for the text that a query has taken for an option, "" for any other error."""
    if not isinstance(error, UnknownOptionError) or words[0] != "query":
        return ""
    text, values = error.token.value, error.unused_tokens or []
    if values[1:] != [text]:  # the values are the place and the text
        return ""
    from semsearch.commands.console import suggested  # only then

    others = [word for word in words[1:] if word != text]
    return f"; to search for this text, write `{suggested('query', *others, '--', text)}`"


def with_notes(message: str, error: Exception) -> str:
    """Return the first line of a message, and in brackets what was added to the error."""
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return message.partition("\n")[0] + notes


def explain_import(error: ImportError) -> str:
    """Return the message of an import that failed because an extra is not installed. Raises any other error again."""
    from semsearch.indexing.errors import explain_missing  # only then

    return explain_missing(error)
