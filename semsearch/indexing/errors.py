"""Errors in one line: of libraries, and of packages and clusters that a command needs."""

from importlib.util import find_spec
from pathlib import Path

from semsearch.engine.errors import ExpectedError

QUOTED_CHARACTERS = 40  # maximum characters of a wrong value in a message
EXTRAS: dict[str, tuple[str, ...]] = {  # the modules that each extra is for
    "parquet": ("polars",),  # also in the next one: `explain_missing` names the first
    "export": ("optimum", "transformers", "onnx", "flatbuffers", "torch", "polars"),
    "documents": ("pyromark", "docutils", "selectolax", "pypdfium2", "mammoth", "semchunk", "yaml"),
    "cluster": ("ray", "pyarrow"),
    "publish": ("boto3",),
    "plot": ("matplotlib",),
    "server": ("granian", "uvloop", "prometheus_client"),
}


class ClusterError(ExpectedError, RuntimeError):
    """A cluster cannot be used. It is here so that the command line catches it without importing what embeds."""


class PackagesError(ExpectedError, RuntimeError):
    """Packages are missing: the message has the command that installs them."""


def require_packages(where: str, extra: str, *modules: str) -> None:
    """Raise PackagesError unless the packages of an extra are installed, or those of some of its modules."""
    if missing := [module for module in modules or EXTRAS[extra] if find_spec(module) is None]:
        found = f"the package {missing[0]} is not installed"
        raise PackagesError(f"{where}: {found}, expected the extra `{extra}`; install it: {install_command(extra)}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the checkout, or of the package that pip has installed."""
    is_checkout = (Path(__file__).parents[2] / "pyproject.toml").is_file()
    package = "semsearch"
    if is_checkout:
        package = "."
    return f"pip install '{package}[{extra}]'"


def explain_missing(error: ImportError) -> str:
    """Return the message of an import that failed because an extra is not installed. Raises any other error again."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if module in modules:
            try:
                require_packages("semsearch", extra)
            except PackagesError as missing:
                return str(missing)
    raise error


def first_line(error: BaseException) -> str:
    """Return the error's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    if lines:
        return f"{type(error).__name__}: {lines[0].strip()}"
    return type(error).__name__
