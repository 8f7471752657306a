"""The JavaScript packages of a static site, which npm installs, and the programs that it needs."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from semsearch.indexing.errors import PackagesError

HERE = Path(__file__).parent
PACKAGE_FILES = ("package.json", "package-lock.json")
INSTALL = ("ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
RUNTIME = "onnxruntime-web/dist/ort.wasm.bundle.min.mjs"
WASM = "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm"  # uses one thread unless the page is isolated


def find_program(name: str) -> str:
    """Return the path of npm. Raises PackagesError if it is not installed."""
    path = shutil.which(name)
    if path is None:
        raise PackagesError(f"{name}: is not installed, expected Node.js 20 or newer; get it from https://nodejs.org")
    return path


@contextmanager
def installed_packages(folder: Path | None) -> Iterator[Path]:
    """Yield a folder node_modules with the packages: in `folder`, or in a temporary folder that npm fills.

    Raises PackagesError if npm is missing or fails.
    """
    if folder is not None:
        yield folder / "node_modules"
        return
    npm = find_program("npm")
    with TemporaryDirectory() as temporary:
        for name in PACKAGE_FILES:
            shutil.copy(HERE / name, temporary)
        done = subprocess.run([npm, *INSTALL], cwd=temporary, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            said = next((line for line in done.stderr.splitlines() if " error " in line), "no reason")
            expected = f"the packages of {HERE / PACKAGE_FILES[1]}"
            raise PackagesError(f"npm ci: exit {done.returncode} ({said}); expected {expected}; try `npm ping`")
        yield Path(temporary) / "node_modules"
