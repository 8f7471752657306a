"""The memory that Python objects and NumPy arrays take while a function runs."""

import tracemalloc
from collections.abc import Callable


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that were in use while the function ran, beside those in use before it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
