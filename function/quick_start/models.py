"""Less work for pydantic while FastAPI is imported. Our own models are made outside, at once and in full."""

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
