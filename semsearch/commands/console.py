"""A console whose texts cannot control a terminal, and commands that people paste into a shell."""

import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from semsearch.commands.terminal import NO_READER, visible


class TerminalConsole(Console):
    """A console that displays control characters of names and ids as escapes such as \\x1b."""

    def __init__(self, *, stderr: bool = False) -> None:
        """Print on standard output, or on standard error."""
        super().__init__(highlight=False, soft_wrap=True, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Any:
        """Return a string, also one in a table, as rich displays it."""
        return super().render_str("\n".join(map(visible, text.split("\n"))), **options)

    def on_broken_pipe(self) -> None:
        """End the command, because the reader of its output has ended. Raises SystemExit."""
        with suppress(SystemExit):
            super().on_broken_pipe()  # discards all further output
        raise SystemExit(NO_READER)


def suggested(*words: str | Path) -> str:
    """Return a command line of semsearch, quoted for a POSIX shell.

    If the shell does not find `semsearch`, because nobody has activated this environment, the line has its path.
    """
    program = "semsearch"
    own = Path(sys.executable).with_name(program)
    if shutil.which(program) is None and own.exists():
        program = str(own)
        if own.is_relative_to(Path.cwd()):
            program = str(own.relative_to(Path.cwd()))
    return shlex.join([program, *map(str, words)])
