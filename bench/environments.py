"""Environments that the measurements make for themselves: the peers', the function's as it ships, the emulator's."""

import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from bench.report import console

PEERS = Path(__file__).parent / "peers"
PROJECT = Path(__file__).parents[1]
RUNTIME = "awslambdaric==4.2.2"  # the runtime interface client that Lambda's Python images run
EMULATOR = "aws-sam-cli==1.170.0"  # carries the runtime interface emulator


def _make(folder: Path, marker: str, installs: Sequence[Sequence[str]]) -> Path:
    """Give the interpreter of an environment, made anew unless it was made from the same words."""
    python = folder.absolute() / "bin" / "python"
    made = folder / "made-from.txt"
    if not made.exists() or made.read_text() != marker:
        console.print(f"making the environment {folder.name} ...")
        venv.create(folder, with_pip=True, clear=True)
        for words in installs:
            command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
            subprocess.run(command, check=True)
        subprocess.run([python, "-m", "compileall", "-q", folder / "lib"], check=False)
        made.write_text(marker)
    return python


def peer_python(work: Path) -> Path:
    """Give the interpreter that has sentence-transformers."""
    wanted = (PEERS / "requirements.txt").read_text()
    # torch first, so that nothing else chooses its build
    return _make(work / "peer-environment", sys.version + wanted, [[line] for line in wanted.split()])


def function_python(work: Path) -> Path:
    """Give the interpreter that has the function's locked packages and Lambda's runtime client, and nothing else."""
    lock = PROJECT / "requirements.txt"
    locked = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(lock)]
    return _make(work / "function-environment", sys.version + lock.read_text() + RUNTIME, [locked, [RUNTIME]])


def function_package(work: Path) -> Path:
    """Give a folder with the function as an image has it: a fresh copy, compiled, with the archive of its imports."""
    python, package = function_python(work), work / "function-package"
    shutil.rmtree(package, ignore_errors=True)
    for name in ("function", "deploy"):
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        shutil.copytree(PROJECT / name, package / name, ignore=ignored)
    subprocess.run([python, "-m", "compileall", "-q", "function"], cwd=package, check=True)
    subprocess.run([python, "-m", "deploy.build_archive"], cwd=package, check=True, capture_output=True)
    return package


def emulator(work: Path) -> Path:
    """Give the runtime interface emulator's program."""
    python = _make(work / "emulator-environment", sys.version + EMULATOR, [[EMULATOR]])
    found = sorted(python.parents[1].glob("lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64"))
    if not found:
        raise SystemExit(f"{EMULATOR} carries no emulator for this machine")
    found[0].chmod(0o755)
    return found[0]
