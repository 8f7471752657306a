"""Delete parts of installed packages that the function never imports, and print how much that saves.

These are whole parts that their packages import on demand or never: tests, headers, types for checkers, command line
tools. If the function needs one of them after all, `make test-image` fails.
"""

import shutil
import sys
from pathlib import Path

# glob pattern, relative to the folder of the packages: the reason why the matching files are not needed
LEFT_OUT = {
    "bin": "command line tools",
    "**/tests": "the packages' own tests",
    "**/*.pyi": "types for checkers",
    "**/*.pxd": "declarations for Cython",
    "numpy/_core/include": "headers",
    "**/*.h": "headers",
    "**/*.a": "libraries to link with",
    "numpy/_core/_simd.*.so": "a module for NumPy's tests",
    "numpy/f2py": "Fortran to Python",
    "numpy/random/_examples": "examples",
    "onnxruntime/capi/libonnxruntime.so.*": "the runtime for programs in C; Python's module has its own inside",
    "onnxruntime/backend": "for tests of the ONNX standard",
    "onnxruntime/datasets": "examples",
    "onnxruntime/quantization": "tools of the export",
    "onnxruntime/tools": "tools of the export",
    "onnxruntime/transformers": "tools of the export",
    "aws_lambda_powertools/event_handler": "a web framework; ours is FastAPI",
}


def trim(packages: Path) -> int:
    """Delete the files that LEFT_OUT matches and return the bytes that this saves.

    Raises SystemExit if a pattern matches nothing, because then a new version has moved its files and keeps them.
    """
    before = _size(packages)
    for pattern in LEFT_OUT:
        found = sorted(packages.glob(pattern))
        if not found:
            raise SystemExit(
                f"error: {packages}: nothing matches {pattern}, expected a file; correct function/image/trim.py"
            )
        for path in found:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)  # it can have been deleted with a folder above it
    return before - _size(packages)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    print(f"{trim(Path(sys.argv[1])) / 1e6:.2f} MB less")
