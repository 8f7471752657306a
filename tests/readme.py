"""Run the shell blocks of README.md as they stand, in a fresh clone: `python3 -m tests.readme [CLONE]`.

CLONE is where the clone is left; without it, the clone is removed. Each line of a block of text must be among the lines
that the commands before it print. The script needs no package, because `make demo` installs them.
"""

import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = {"sam build": "needs Docker and an account of AWS; tests/image builds the image"}
SERVES = re.compile(r"\bserve\b")
HEALTH = "http://localhost:8000/health"
SECONDS_TO_START = 120
# `query` prints other lines in a pipe than in a terminal, whose width README.md has
TERMINAL = os.environ | {"NO_COLOR": "1", "COLUMNS": "100"}
READ_AT_ONCE = 4096
MEASURED = re.compile(r"\d+\.\d ms")


class ReadmeError(Exception):
    """A block failed, or printed something else than README.md shows."""


def main(clone: Path) -> None:
    """Clone the checkout, run each block of commands there, and compare what it prints with the next block of text."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    printed: list[str] = []
    for kind, content in BLOCK.findall((clone / "README.md").read_text(encoding="utf-8")):
        if kind == "text":
            compare(content, printed)
        else:
            printed = follow(content, clone)


def follow(commands: str, clone: Path) -> list[str]:
    """Run a block of commands and return the lines that it prints."""
    print(f"\n-- README.md:\n{commands}", flush=True)
    for part, reason in NOT_RUN.items():
        if part in commands:
            print(f"-- not run: {reason}")
            return []
    started = time.monotonic()
    if SERVES.search(commands):
        serve(commands, clone)
        printed = []
    else:
        printed = run(commands, clone)
    print(f"-- took {time.monotonic() - started:.0f} s", flush=True)
    return printed


def run(commands: str, clone: Path) -> list[str]:
    """Run commands of bash in a terminal and return the lines that they print, which are displayed too."""
    terminal, of_commands = pty.openpty()
    printed = b""
    with subprocess.Popen(["bash", "-euc", commands], cwd=clone, env=TERMINAL, stdout=of_commands) as process:
        os.close(of_commands)
        with os.fdopen(terminal, "rb", buffering=0) as output, suppress(OSError):  # Linux raises one at the end
            while part := output.read(READ_AT_ONCE):
                sys.stdout.buffer.write(part)
                sys.stdout.flush()
                printed += part
    if process.returncode:
        raise ReadmeError(f"exit status {process.returncode}, expected 0")
    return printed.decode().splitlines()


def serve(command: str, clone: Path) -> None:
    """Start a server, wait until it answers, and stop it as Ctrl-C does."""
    with subprocess.Popen(["bash", "-euc", f"exec {command}"], cwd=clone) as process:
        try:
            for _ in range(SECONDS_TO_START):
                time.sleep(1)
                if process.poll() is not None:
                    raise ReadmeError(f"the server ended with {process.returncode}, expected that it answers {HEALTH}")
                if answers():
                    return
            raise ReadmeError(f"{HEALTH} did not answer in {SECONDS_TO_START} s")
        finally:
            process.terminate()


def answers() -> bool:
    """Return whether the server is there."""
    try:
        with urlopen(HEALTH) as reply:
            return bool(reply.status == 200)
    except URLError:
        return False


def compare(shown: str, printed: list[str]) -> None:
    """Raise ReadmeError if a line that README.md shows was not printed. Milliseconds may differ."""
    found = {MEASURED.sub("ms", line.strip()) for line in printed}
    missing = [line for line in shown.splitlines() if MEASURED.sub("ms", line.strip()) not in found]
    if missing:
        raise ReadmeError("README.md shows lines that were not printed:\n" + "\n".join(missing))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as folder:
            main(Path(folder) / "semsearch")
