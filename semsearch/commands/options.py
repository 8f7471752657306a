"""Types of options for argparse, in the commands of `python -m function` and `python -m export`."""

import json
import os
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semsearch.app.settings import whole_number


def number_option(least: int, most: int, advice: str = "") -> Callable[[str], int]:
    """Return `whole_number` as the type of an option. Its error ends with `advice`."""

    def parse(text: str) -> int:
        try:
            return whole_number(text, least, most)
        except ValueError as error:
            raise ArgumentTypeError(f"{error}{advice}") from error

    return parse


def share(text: str) -> float:
    """Return a number from 0 to 1. Raises ArgumentTypeError for all else."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"found {text!r}, expected a number from 0 to 1")
    return number


def filter_object(text: str) -> dict[str, Any]:
    """Return an object of JSON. Raises ArgumentTypeError for all else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentTypeError(f"not JSON: {error}; expected such as '{{\"year\": 2014}}'") from error
    if not isinstance(found, dict):
        raise ArgumentTypeError("expected an object of JSON, such as '{\"year\": 2014}'")
    return found


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the checkout, or of the package that pip has installed."""
    is_checkout = (Path(__file__).parents[2] / "pyproject.toml").is_file()
    return f"pip install '{'.' if is_checkout else 'semantic-search-lambda'}[{extra}]'"


def cache_folder() -> Path:
    """Return ~/.cache/semsearch, or `semsearch` in the folder that XDG_CACHE_HOME names."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "semsearch"
