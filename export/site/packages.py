"""onnxruntime-web and the stemmer, from npm. Their versions and hashes are in package-lock.json beside this file."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from export.errors import PackagesError

HERE = Path(__file__).parent
LOCK = ("package.json", "package-lock.json")
INSTALL = ("ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
RUNTIME = "onnxruntime-web/dist/ort.wasm.bundle.min.mjs"
WASM = "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm"  # runs with one thread where a page is not isolated
STEMMER = "porter2/dist/index.js"


def find_program(name: str) -> str:
    """Return the path of node or npm. Raises PackagesError if it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise PackagesError(
            f"{name}: is not installed; a site has onnxruntime-web and a stemmer from npm: install Node.js 20 or newer "
            "(https://nodejs.org), or run this command on a machine that has it"
        )
    return path


@contextmanager
def installed_packages(folder: Path | None) -> Iterator[Path]:
    """Yield the folder node_modules with the packages: that of `folder`, or a temporary one that npm fills.

    Raises PackagesError if npm is missing or fails, or if the folder lacks the packages.
    """
    if folder is not None:
        yield _checked(folder / "node_modules")
        return
    npm = find_program("npm")
    with TemporaryDirectory() as temporary:
        for name in LOCK:
            shutil.copy(HERE / name, temporary)
        done = subprocess.run([npm, *INSTALL], cwd=temporary, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if " error " in line), "no reason")
            raise PackagesError(
                f"npm ci: exit {done.returncode} ({said}); expected the packages of {HERE / LOCK[1]}; check that this "
                "machine reaches npm's registry (`npm ping`)"
            )
        yield _checked(Path(temporary) / "node_modules")


def _checked(modules: Path) -> Path:
    for name in (RUNTIME, WASM, STEMMER):
        if not (modules / name).is_file():
            raise PackagesError(
                f"{modules / name}: is missing; run `npm ci` with the package-lock.json of {HERE}, or leave out "
                "--packages"
            )
    return modules
