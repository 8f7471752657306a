"""Take out of installed packages what the function never imports, and say how much that was.

Only whole parts that their packages themselves import on demand or never: tests, headers, types for checkers, command
line tools. An import of the function's that needs one of them after all fails `make test-image`.
"""

import shutil
import sys
from pathlib import Path

# glob pattern, relative to the folder of the packages: why the files that it matches are not needed
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


class TrimError(ValueError):
    """A part that is not there to be taken out: the message says where, what was looked for and what to do."""


def trim(packages: Path) -> dict[str, int]:
    """Delete what LEFT_OUT names and return the bytes that each of its patterns saved.

    Raises TrimError if a pattern matches nothing: a new version moved it, and its bytes would be back unnoticed.
    """
    saved = {}
    for pattern in LEFT_OUT:
        found = sorted(packages.glob(pattern))
        if not found:
            raise TrimError(
                f"{packages}: nothing matches {pattern} ({LEFT_OUT[pattern]}), expected at least one file; "
                "see where the new version of the package has it and correct LEFT_OUT in deploy/trim.py"
            )
        saved[pattern] = sum(_remove(path) for path in found)
    return saved


def _remove(path: Path) -> int:
    """Delete a file or a folder and return its bytes, 0 if it was deleted with a folder above it."""
    if path.is_dir():
        length = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        shutil.rmtree(path)
        return length
    if not path.exists():
        return 0
    length = path.stat().st_size
    path.unlink()
    return length


if __name__ == "__main__":
    by_pattern = trim(Path(sys.argv[1]))
    for name, bytes_saved in by_pattern.items():
        print(f"{bytes_saved / 1e6:6.2f} MB  {name}: {LEFT_OUT[name]}")
    print(f"{sum(by_pattern.values()) / 1e6:6.2f} MB less")
