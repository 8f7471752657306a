"""Run the command line of `python -m export`."""

import sys

from semsearch.commands.terminal import run
from semsearch.indexing.errors import explain_import


def main() -> int:
    """Run the command and return its exit code."""
    from semsearch.commands.export_cli import main as export

    return export()


sys.exit(run(main, explain_import=explain_import))
