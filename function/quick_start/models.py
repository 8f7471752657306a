"""Less work for pydantic while FastAPI is imported. Our own models are made outside, at once and in full."""

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


class _PlainDict(dict[str, Any]):
    """What a TypedDict is at run time, without the work of checking its annotations."""

    def __init_subclass__(cls, total: bool = True) -> None:
        super().__init_subclass__()


class _TypedDict:
    """Stands for TypedDict as a base class: plain in pydantic_core.core_schema, and itself everywhere else."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        if sys._getframe(1).f_globals["__name__"] == "pydantic_core.core_schema":
            return (_PlainDict,)
        entries: tuple[type, ...] = self._real.__mro_entries__(bases)
        return entries


def import_core_schema() -> None:
    """Import pydantic_core with plain classes for the hundred TypedDicts of its schemas: nothing validates those."""
    real = typing.TypedDict, typing_extensions.TypedDict
    typing.TypedDict, typing_extensions.TypedDict = map(_TypedDict, real)  # type: ignore[assignment]
    try:
        import pydantic_core  # noqa: F401
    finally:
        typing.TypedDict, typing_extensions.TypedDict = real
