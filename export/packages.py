"""Packages that a command needs and that are not installed: those of an extra of pyproject.toml, or some from npm.

An error names the packages themselves, so that its command works for a checkout and for a wheel.
"""

import shlex
from importlib.util import find_spec

# the packages of each extra, by the module that is imported
EXTRAS = {
    "export": {
        "optimum": "optimum-onnx",
        "transformers": "transformers",
        "onnx": "onnx",
        "flatbuffers": "flatbuffers",
        "torch": "torch",
        "polars": "polars",
        "rich": "rich",
    },
    "documents": {
        "markdown_it": "markdown-it-py",
        "selectolax": "selectolax",
        "pypdfium2": "pypdfium2",
        "mammoth": "mammoth",
        "semchunk": "semchunk",
        "yaml": "PyYAML",
    },
    "cluster": {"ray": "ray[data]", "pyarrow": "ray[data]"},
    "publish": {"boto3": "boto3"},
}


class PackagesError(RuntimeError):
    """Packages are missing: the message says which, and how to install them."""


def require_packages(where: str, extra: str, *modules: str) -> None:
    """Raise PackagesError unless the packages of an extra are installed, or those of some of its modules."""
    packages = EXTRAS[extra]
    if missing := [module for module in modules or packages if find_spec(module) is None]:
        install = shlex.join(["pip", "install", *dict.fromkeys(packages[module] for module in missing)])
        raise PackagesError(
            f"{where}: the package {missing[0]} is not installed, expected the extra `{extra}`; install it: {install}"
        )


def explain_import(error: ImportError) -> str:
    """Return the message of an import that failed because an extra is not installed. Raises any other error again."""
    module = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if module in packages:
            try:
                require_packages("python -m export", extra)
            except PackagesError as missing:
                return str(missing)
    raise error
