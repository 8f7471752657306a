"""Ways to spend less time importing; but for the variable that stops the search for plugins, undone with the imports.

- pydantic builds a validator for each model class when the class is made. FastAPI makes some fifty of them to describe
  OpenAPI documents, which no request for an answer needs: `defer_build` leaves each to its first use.
- FastAPI imports all of pydantic.v1 to ask of each annotation whether it is of that kind, and takes an ImportError for
  a no; pydantic looks for plugins in the metadata of every installed package. There are neither here.
- Imports make many objects and hardly any garbage, so collecting it only walks through them again and again.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_models() -> Iterator[None]:
    """Have pydantic build models defined inside at first use: FastAPI is imported inside, our models outside."""
    from pydantic import BaseModel

    BaseModel.model_config["defer_build"] = True
    try:
        yield
    finally:
        del BaseModel.model_config["defer_build"]


@contextmanager
def no_pydantic_extras() -> Iterator[None]:
    """Let pydantic.v1 not be found and look for no plugins inside. Our models are all of version 2."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    if "pydantic.v1" in sys.modules:
        yield
        return
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment] # how Python marks a module as not to be found
    try:
        yield
    finally:
        del sys.modules["pydantic.v1"]


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage inside; what is there at the end is taken for permanent and never walked through again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
