"""python -m bench: what the project claims, measured on this machine."""

import argparse
import sys
from pathlib import Path

from bench import ablation, accuracy, cold_start, cost, demo, latency, memory, readme, throughput, warm

COMMANDS = {
    "demo": demo,
    "accuracy": accuracy,
    "latency": latency,
    "throughput": throughput,
    "warm": warm,
    "cold-start": cold_start,
    "ablation": ablation,
    "cost": cost,
    "memory": memory,
    "readme": readme,
}


def main() -> int:
    """Run one measurement; give its exit code."""
    parser = argparse.ArgumentParser("python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        summary = (module.__doc__ or "").strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.add_argument(
            "--work", type=Path, default=Path("build/bench"), help="folder for models and environments"
        )
        module.add_arguments(command)
    options = parser.parse_args()
    module = COMMANDS[options.command]
    return int(module.run(options))


sys.exit(main())
