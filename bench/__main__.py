"""python -m bench: what the project claims, measured on this machine."""

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from bench.report import PROJECT, SKIPPED, Missing, console
from bench.texts import add_data_argument

# The measurements in the order in which `all` makes them: quick ones without Docker first, those that take hours last.
# Each is a module with its docstring as help, `add_arguments` and `run`.
MEASUREMENTS = (
    *("accuracy", "modes", "documents", "browser", "box", "throughput", "warm", "serve", "cold-start", "memory"),
    *("site-questions", "floor", "agents", "month", "scale", "nearest"),
)
COMMANDS = ("demo", *MEASUREMENTS, "all", "tables")
ALL = "Make all measurements again, each in a process of its own; skip, with the reason, those that cannot run here."


def main() -> int:
    """Run one command; return its exit code. Only the module of that command is imported."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = [name for name in sys.argv[1:2] if name in COMMANDS] or COMMANDS
    for name in chosen:
        module = command_module(name)
        description = ALL if name == "all" else (module.__doc__ or "")
        command = commands.add_parser(name, help=description.strip().splitlines()[0], description=description)
        command.add_argument(
            "--work", type=Path, default=Path("build/bench"), help="folder for models, bundles and environments"
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    options = parser.parse_args()
    try:
        return int(options.run(options))
    except Missing as missing:
        print(missing, file=sys.stderr)
        return SKIPPED


def command_module(name: str) -> ModuleType:
    """Return the module of a command, which has `add_arguments` and `run`."""
    return sys.modules[__name__] if name == "all" else import_module(f"bench.{name.replace('-', '_')}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `all`."""
    add_data_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Make all measurements; return 1 if one failed."""
    commands = {}
    for name in MEASUREMENTS:
        folders = ["--work", str(options.work.absolute()), "--data", str(options.data.absolute())]
        commands[name] = [sys.executable, "-m", "bench", name, *folders]
    return run_all(commands, PROJECT)


def run_all(commands: Mapping[str, Sequence[str]], folder: Path) -> int:
    """Run the commands in turn and print the outcome of each; return 1 if a command failed, otherwise 0."""
    outcomes = {}
    for name, command in commands.items():
        console.rule(name)
        begin = time.perf_counter()
        done = subprocess.run(command, cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
        sys.stderr.write(done.stderr)
        outcomes[name] = f"measured in {time.perf_counter() - begin:.0f} s"
        if done.returncode == SKIPPED:
            outcomes[name] = f"skipped: {done.stderr.strip().splitlines()[-1]}"
        elif done.returncode:
            outcomes[name] = f"failed: exit {done.returncode}"
    console.rule("all")
    for name, outcome in outcomes.items():
        console.print(f"{name}: {outcome}", markup=False)
    return int(any(outcome.startswith("failed") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
