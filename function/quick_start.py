"""Two ways to spend less time importing, both undone when the imports are over.

- pydantic builds a validator for each model class when the class is made. FastAPI makes some fifty of them to describe
  OpenAPI documents, which no request for an answer needs: `defer_build` leaves each to its first use.
- Imports make many objects and hardly any garbage, so collecting it only walks through them again and again.
"""

import gc
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
def no_collection() -> Iterator[None]:
    """Collect no garbage inside; what is there at the end is taken for permanent and never walked through again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
