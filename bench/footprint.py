"""What INIT takes from the file system: modules, files opened, megabytes read, megabytes of mapped files touched."""

import json
import os
import subprocess

from bench.emulator import LocalFunction
from bench.image import run_python

NUMBERS = ("modules", "files_opened", "megabytes_read", "megabytes_mapped")

# Imports the module that it is given, as INIT does, and prints the numbers.
SCRIPT = """
import importlib, json, sys
files = set()
def hook(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and not arguments[2] & 3:
        files.add(arguments[0])
sys.addaudithook(hook)
def read():
    return int(open("/proc/self/io").read().split("rchar: ")[1].split()[0])
def mapped():
    lines = open("/proc/self/smaps").read().splitlines()
    total, of_file = 0, False
    for line in lines:
        words = line.split()
        if "-" in words[0] and ":" not in words[0]:
            of_file = len(words) > 5 and words[5].startswith("/")
        elif words[0] == "Rss:" and of_file:
            total += int(words[1])
    return total / 1024
before, mapped_before = read(), mapped()
importlib.import_module(sys.argv[1])
print(json.dumps({
    "modules": len(sys.modules),
    "files_opened": len(files),
    "megabytes_read": (read() - before) / 1e6,
    "megabytes_mapped": mapped() - mapped_before,
}))
"""


def footprint_here(function: LocalFunction) -> dict[str, float]:
    """Return the footprint of a function on this machine's own Python."""
    environment = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONPATH": "."} | function.environment
    command = [str(function.python), "-c", SCRIPT, module_of(function.handler)]
    done = subprocess.run(command, cwd=function.folder, env=environment, check=True, capture_output=True, text=True)
    return last_numbers(done.stdout)


def footprint_in_image(image: str, handler: str) -> dict[str, float]:
    """Return the footprint of a handler in an image."""
    return last_numbers(run_python(image, SCRIPT, module_of(handler)))


def module_of(handler: str) -> str:
    """Return the module of a handler: function.handler of function.handler.handler."""
    return handler.rpartition(".")[0]


def last_numbers(printed: str) -> dict[str, float]:
    """Return the numbers from what the script printed, among lines that the function logs."""
    line = next(line for line in reversed(printed.splitlines()) if line.startswith('{"modules"'))
    numbers: dict[str, float] = json.loads(line)
    return numbers
