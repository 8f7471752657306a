"""Errors in one line: of libraries, and of packages and clusters that a command needs."""

from importlib.util import find_spec

from function.commands.options import install_command

QUOTED_CHARACTERS = 40  # maximum characters of a wrong value in a message
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


class ClusterError(RuntimeError):
    """A cluster cannot be used. It is here so that the command line catches it without importing what embeds."""


class PackagesError(RuntimeError):
    """Packages are missing: the message names those to install, which works for a checkout and for a wheel."""


def require_packages(where: str, extra: str, *modules: str) -> None:
    """Raise PackagesError unless the packages of an extra are installed, or those of some of its modules."""
    packages = EXTRAS[extra]
    if missing := [module for module in modules or packages if find_spec(module) is None]:
        found = f"the package {packages[missing[0]]} is not installed"
        raise PackagesError(f"{where}: {found}, expected the extra `{extra}`; install it: {install_command(extra)}")


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


def first_line(error: BaseException) -> str:
    """Return the error's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
