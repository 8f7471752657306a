"""Commands that are printed for people to paste into a shell."""

import shlex
import shutil
import sys
from pathlib import Path


def python_module(module: str, *arguments: str | Path) -> str:
    """Return the command that runs a module with the current Python, quoted for a POSIX shell.

    The command begins with `python` or `python3` if that is the current Python, or else with its path.
    """
    return shlex.join([_python(), "-m", module, *map(str, arguments)])


def _python() -> str:
    executable, here = Path(sys.executable), Path.cwd()
    for name in ("python", "python3"):
        path = Path(shutil.which(name) or "")
        if path.parent == executable.parent and path.resolve() == executable.resolve():
            return name
    return str(executable.relative_to(here) if executable.is_relative_to(here) else executable)
