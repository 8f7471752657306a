"""Imports make many objects and hardly any garbage: collecting it walks through them again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage inside; what is there at the end is taken for permanent and never walked through again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
