"""Stub of a module that no request uses: runs the library's own code, here, at the first access to an attribute."""

import _thread
from typing import Any

__lazy_lock__ = _thread.RLock()
__lazy_running__ = False


def __getattr__(name: str) -> Any:
    if name == "__path__":  # the import system reads it from every module
        raise AttributeError(name)
    names = globals()
    with names["__lazy_lock__"]:  # another thread waits until all of the code has run
        if names["__lazy_running__"]:
            raise AttributeError(f"partially initialized module {__name__!r} has no attribute {name!r}")
        if names.get("__getattr__") is names["__lazy_stub__"]:
            names["__lazy_running__"] = True
            try:
                exec(names["__loader__"].original_code(__name__), names)
            finally:
                names["__lazy_running__"] = False
            if names["__getattr__"] is names["__lazy_stub__"]:  # unless the module has one of its own
                del names["__getattr__"]
    if name not in names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return names[name]


__lazy_stub__ = __getattr__  # by another name, since the library's own code can replace or delete that one
