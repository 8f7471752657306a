"""Run the command line of `python -m export`."""

import sys

from export.errors import explain_import
from function.commands.terminal import run


def main() -> int:
    """Run the command and return its exit code."""
    from export.cli import main as export

    return export()


sys.exit(run(main, explain_import=explain_import))
