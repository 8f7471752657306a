"""numpy.linalg imports all of NumPy's types for checkers, to annotate five named tuples with one of them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

MODULE = "numpy._typing"


class _NDArray:
    """What stands in those annotations."""

    def __class_getitem__(cls, scalar: object) -> "type[_NDArray]":
        return cls


@contextmanager
def no_numpy_types() -> Iterator[None]:
    """Have NumPy find a stand-in for its types inside; afterwards they are imported by who asks for them."""
    if MODULE in sys.modules:
        yield
        return
    stand_in = ModuleType(MODULE)
    stand_in.NDArray = _NDArray  # type: ignore[attr-defined]
    sys.modules[MODULE] = stand_in
    try:
        yield
    finally:
        del sys.modules[MODULE]
