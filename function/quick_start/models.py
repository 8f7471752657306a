"""Less work for pydantic while FastAPI is imported. Our own models are made outside, at once and in full."""

import os
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typing_extensions


@contextmanager
def deferred_models() -> Iterator[None]:
    """Have pydantic build the validators of models defined inside at their first use."""
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


@contextmanager
def no_pydantic_extras() -> Iterator[None]:
    """Let pydantic.v1 not be found inside, and have pydantic look for no plugins in this process.

    FastAPI imports all of pydantic.v1 to ask of each annotation whether it is of that kind, and takes an ImportError
    for a no. Pydantic looks for plugins in the metadata of every installed package. There are neither here.
    """
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if "pydantic.v1" in sys.modules:
        yield
        return
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment] # how Python marks a module as not to be found
    try:
        yield
    finally:
        del sys.modules["pydantic.v1"]


class _PlainDict(dict[str, Any]):
    """What a TypedDict is at run time, without the work of checking its annotations."""

    def __init_subclass__(cls, total: bool = True) -> None:
        super().__init_subclass__()


def import_core_schema() -> None:
    """Import pydantic_core with plain classes for its hundred TypedDicts: only type checkers look at them."""
    real = typing.TypedDict, typing_extensions.TypedDict
    typing.TypedDict = typing_extensions.TypedDict = _PlainDict  # type: ignore[assignment]
    try:
        import pydantic_core  # noqa: F401
    finally:
        typing.TypedDict, typing_extensions.TypedDict = real
