"""Modules that the libraries import and that no request here uses, loaded when something is asked of them.

The standard library's LazyLoader loads a module when it is imported a second time, so most would be loaded after all.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAMES = frozenset(
    {
        # numpy: docstrings for its compiled functions, and what it has for files and records
        *("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars", "numpy._core._internal"),
        *("numpy._core._dtype_ctypes", "numpy.lib.format", "numpy.lib.mixins", "numpy.lib.npyio", "numpy.lib.scimath"),
        # powertools: queries into events
        "aws_lambda_powertools.utilities.jmespath_utils",
        # the standard library: connections, mail, archives, and hashes by OpenSSL
        *("ssl", "asyncio.sslproto", "http.client", "http.cookies", "importlib.metadata._adapters"),
        *("csv", "hashlib", "pickle", "calendar", "locale"),  # no package: its modules may be imported before it
    }
)


class _Loading:
    """Whether a lazy module's code is running, and the lock for the one thread that runs it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_running = False


class _LazyModule(ModuleType):
    """A module whose code has not run: Python has set its name and place, and nothing else is there yet.

    It stays one until all of its code has run: other threads that ask it for something wait for that.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # asked of every module by `from module import name`
            raise AttributeError(name)
        if not _load(self):
            raise AttributeError(f"partially initialized module {self.__name__!r} has no attribute {name!r}")
        return getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__"):
            _load(self)  # or its code would overwrite the value
        ModuleType.__setattr__(self, name, value)  # no longer lazy, so super() would not do


def _load(module: ModuleType) -> bool:
    """Run a lazy module's code, unless it has run; say whether it has. While it runs, its own thread gets False."""
    loading: _Loading | None = module.__dict__.get("__loading__")
    if loading is None:
        return True
    with loading.lock:
        if loading.is_running:
            return False
        if type(module) is _LazyModule:
            assert module.__spec__ is not None
            assert module.__spec__.loader is not None
            loading.is_running = True
            try:
                module.__spec__.loader.exec_module(module)
            finally:
                loading.is_running = False
            module.__class__ = ModuleType  # type: ignore[assignment]
            del module.__dict__["__loading__"]
    return True


class _LazyLoader:
    """Makes a lazy module, which another loader will run."""

    def __init__(self, loader: Any) -> None:  # importlib.abc, which names its type, would import twenty modules
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._loader
        module.__dict__["__loading__"] = _Loading()
        module.__class__ = _LazyModule


class LazyFinder:
    """A finder of NAMES: they come from where a finder behind it finds them, lazily."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one of NAMES; Python calls this for every module."""
        if name not in NAMES:
            return None
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in behind)), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _LazyLoader(spec.loader)  # type: ignore[assignment]
        return spec


@contextmanager
def lazy_modules() -> Iterator[None]:
    """Have NAMES imported lazily inside. What was not used by the end stays to be loaded at its first use."""
    finder = LazyFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
