"""Modules that are asked for and done without: the libraries take an ImportError for an answer."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = (
    # FastAPI asks of each annotation whether it is of pydantic's first version, and imports all of that to know
    "pydantic.v1",
    # OpenSSL, for signatures: hmac has its own way without, and hashlib, which comes later, gets it
    "_hashlib",
)


@contextmanager
def absent_modules() -> Iterator[None]:
    """Have NAMES not be found inside, but for those that are there already."""
    absent = [name for name in NAMES if name not in sys.modules]
    for name in absent:
        sys.modules[name] = None  # type: ignore[assignment] # how Python marks a module as not to be found
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
