"""Starts functions inside the image, one for each line of standard input: docker's own work is left out of it.

A line is a JSON object: the folder that the function is in, the handler, an environment variable to unset or "", and
the event. The answer is a line with the milliseconds of INIT. `bench/ablation.py` runs this module in a container.
"""

import json
import os
import sys
from pathlib import Path

from bench.emulator import LocalFunction, emulated

EMULATOR = Path("/usr/local/bin/aws-lambda-rie")
TASK = "/var/task"  # the folder of the function, its libraries and the bundle in Lambda's images
RUNTIME = "/var/runtime"  # the runtime's own packages


def main() -> None:
    """Start what standard input names, until it ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        environment = {name: value for name, value in os.environ.items() if name != asked["unset"]}
        environment |= {"PYTHONPATH": f"{asked['folder']}:{TASK}:{RUNTIME}", "BUNDLE_DIR": f"{TASK}/bundle"}
        function = LocalFunction(Path(sys.executable), asked["handler"], Path(asked["folder"]), environment)
        with emulated(EMULATOR, function) as emulator:
            emulator.invoke(asked["event"])
            print(emulator.init_milliseconds(), flush=True)


if __name__ == "__main__":
    main()
