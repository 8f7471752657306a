"""Virtual environments of Python that measurements make in their work folder."""

import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from bench.report import PEERS, PROJECT, Missing, console

# Libraries of linear algebra and of OpenMP would otherwise use all cores for one query.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
RUNTIME = "awslambdaric==4.2.2"  # the runtime interface client that Lambda's Python images run
EMULATOR = "aws-sam-cli==1.170.0"  # includes the runtime interface emulator


def _make(folder: Path, marker: str, installs: Sequence[Sequence[str]]) -> Path:
    """Return the interpreter of a virtual environment, made by these pip installs unless it is there already.

    marker describes how it is made; an environment with another marker is replaced.
    """
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


def _make_in_order(folder: Path, requirements: Path) -> Path:
    """Return the interpreter of an environment: torch, the first line, is installed before what depends on it."""
    wanted = requirements.read_text()
    torch, *others = wanted.split()
    return _make(folder, sys.version + wanted, [[torch], [torch, *others]])


def peer_python(work: Path) -> Path:
    """Return the interpreter that has sentence-transformers."""
    return _make_in_order(work / "peer-environment", PEERS / "requirements.txt")


def library_python(work: Path, requirements: Path) -> Path:
    """Return the interpreter that has these packages and Lambda's runtime client."""
    return _make(
        work / f"{requirements.stem}-environment",
        sys.version + requirements.read_text() + RUNTIME,
        [["-r", str(requirements), RUNTIME]],
    )


def peer_server_python(work: Path) -> Path:
    """Return the interpreter that has sentence-transformers and gunicorn."""
    return _make_in_order(work / "peer-server-environment", PEERS / "serve.txt")


def infinity_python(work: Path) -> Path:
    """Return the interpreter that has infinity-emb, with the newest libraries that it works with."""
    return _make_in_order(work / "infinity-environment", PEERS / "infinity.txt")


def function_python(work: Path) -> Path:
    """Return the interpreter that has the function's locked packages and Lambda's runtime client, and nothing else."""
    lock = PROJECT / "requirements.txt"
    locked = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(lock)]
    return _make(work / "function-environment", sys.version + lock.read_text() + RUNTIME, [locked, [RUNTIME]])


def function_package(work: Path) -> Path:
    """Return a folder with the function as an image has it: a fresh copy, compiled, with the archive of its imports."""
    python = function_python(work)
    package = work / "function-package"
    shutil.rmtree(package, ignore_errors=True)
    for name in ("function", "deploy"):
        ignored = shutil.ignore_patterns("__pycache__", "archive.bin")
        shutil.copytree(PROJECT / name, package / name, ignore=ignored)
    subprocess.run([python, "-m", "compileall", "-q", "function"], cwd=package, check=True)
    subprocess.run([python, "-m", "deploy.build_archive"], cwd=package, check=True, capture_output=True)
    return package


def emulator(work: Path) -> Path:
    """Return the program of Lambda's runtime interface emulator. Raises Missing if there is none for this machine."""
    python = _make(work / "emulator-environment", sys.version + EMULATOR, [[EMULATOR]])
    found = sorted(python.parents[1].glob("lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64"))
    if not found:
        raise Missing(f"{EMULATOR} has no emulator for this machine; run this on x86_64 Linux")
    found[0].chmod(0o755)
    return found[0]
