"""python -m bench: what the project claims, measured on this machine."""

import argparse
import sys
from pathlib import Path

from bench import documents, everything, fetch, stale
from bench.measurements import MEASUREMENTS, Command
from bench.needs import EXIT_CODE, Missing

COMMANDS: dict[str, Command] = {
    **MEASUREMENTS,
    "all": everything,
    "data": fetch,
    "stale": stale,
    "documents": documents,
}


def main() -> int:
    """Run one command; return its exit code."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.add_argument(
            "--work", type=Path, default=Path("build/bench"), help="folder for models, bundles and environments"
        )
        module.add_arguments(command)
    options = parser.parse_args()
    try:
        return COMMANDS[options.command].run(options)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return EXIT_CODE


sys.exit(main())
