"""Stub of fastapi.openapi.models: the fifty pydantic models are created with the first OpenAPI document.

FastAPI only names them in annotations while it is imported. Calling one, or reading an attribute, runs the real module
and continues there, so security schemes and /openapi.json work as usual.
"""

from types import ModuleType
from typing import Any

__real_module__: ModuleType | None = None


def __load__() -> ModuleType:
    global __real_module__
    if __real_module__ is None:
        names = globals()
        module = ModuleType(__name__)
        module.__spec__, module.__loader__ = names["__spec__"], names["__loader__"]
        exec(names["__loader__"].original_code(__name__), module.__dict__)
        __real_module__ = module
    return __real_module__


class Stub(type):
    """The type of a class that acts as the real module's class of the same name."""

    def __call__(cls, **fields: Any) -> Any:
        if not fields:  # FastAPI's default for an argument, OAuthFlows(): pydantic takes a dict for it too
            return {}
        return getattr(__load__(), cls.__name__)(**fields)

    def __getattr__(cls, name: str) -> Any:
        return getattr(getattr(__load__(), cls.__name__), name)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, getattr(__load__(), cls.__name__))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(__real_module__, name) if __real_module__ else Stub(name, (), {"__module__": __name__})
