"""The methods that dataclasses write for themselves, compiled before.

Making a dataclass writes the source of its methods and compiles it, some four hundred methods among what INIT imports.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Run = Callable[[str, dict[str, Any], dict[str, Any]], None]


@contextmanager
def dataclass_methods_by(run: Run | None) -> Iterator[None]:
    """Have `run` stand for `exec` in the module dataclasses inside; None changes nothing."""
    if run is None:
        yield
        return
    dataclasses.exec = run  # type: ignore[attr-defined] # a module's own name comes before the built-in one
    try:
        yield
    finally:
        del dataclasses.exec  # type: ignore[attr-defined]
