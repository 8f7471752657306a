"""FastAPI's models of an OpenAPI document, imported when the first document is made: no other request needs them.

FastAPI imports some fifty pydantic models to name a few of them in annotations. Inside `described_later` it finds
stand-ins instead. Calling one, or asking it for anything, imports the real module and goes on there, so security
schemes and `/openapi.json` work as ever.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULE = "fastapi.openapi.models"


class _StandIn(type):
    """A class that acts as the real module's class of the same name."""

    def __call__(cls, **fields: Any) -> Any:
        if sys.modules[MODULE] is _later and not _later.is_over:
            return fields  # a default made while importing, OAuthFlows(): FastAPI takes a dict for it as well
        return getattr(_load(), cls.__name__)(**fields)

    def __getattr__(cls, name: str) -> Any:
        return getattr(getattr(_load(), cls.__name__), name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, getattr(_load(), cls.__name__))


class _Later(ModuleType):
    """What is in sys.modules until the real module is needed."""

    is_over = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # nothing of Python's own is there
        return getattr(_load(), name) if self.is_over else _StandIn(name, (), {})


_later = _Later(MODULE)
_later.__spec__ = ModuleSpec(MODULE, None)


def _load() -> ModuleType:
    if sys.modules[MODULE] is _later:
        del sys.modules[MODULE]
        return importlib.import_module(MODULE)
    return sys.modules[MODULE]


@contextmanager
def described_later() -> Iterator[None]:
    """Have what is imported inside find stand-ins for the models; afterwards they are as good as the models."""
    if MODULE not in sys.modules:
        sys.modules[MODULE] = _later
    try:
        yield
    finally:
        _later.is_over = True
        if sys.modules.get(MODULE) is _later:
            sys.modules["fastapi.openapi"].models = _later  # type: ignore[attr-defined] # as an import sets it
