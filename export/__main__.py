"""Run the command line of `python -m export`."""

import sys

from function.commands.terminal import fail, run


def main() -> int:
    """Run the command and return its exit code."""
    try:
        from export.cli import main as export

        return export()
    except ImportError as error:
        from export.errors import explain_import

        return fail(explain_import(error))


sys.exit(run(main))
