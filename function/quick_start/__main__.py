"""`python -m function.quick_start`: make the archive of what INIT imports, as the last step of an image."""

import sys

before = set(sys.modules)

import importlib  # noqa: E402  what is imported from here on goes into the archive
from pathlib import Path  # noqa: E402

from function.quick_start.archive import ARCHIVE, write_archive  # noqa: E402
from function.quick_start.lazy import lazy_modules  # noqa: E402
from function.quick_start.models import no_pydantic_extras  # noqa: E402
from function.quick_start.openapi import described_later  # noqa: E402

# what function/handler.py imports, but for itself: it opens a bundle, and there may be none yet
IMPORTED = (
    *("concurrent.futures.thread", "function.quick_start.collection", "function.engine.loading", "fastapi", "mangum"),
    *("function.app", "function.quick_start.endpoints", "function.telemetry", "function.warm_up"),
)

with no_pydantic_extras(), lazy_modules(), described_later():
    for name in IMPORTED:
        importlib.import_module(name)
import numpy as np  # noqa: E402

fresh = (name for name in list(sys.modules) if name not in before and name.partition(".")[0] != "function")
count = write_archive(fresh, str(Path(np.__file__).parents[1]))
print(f"{ARCHIVE}: {count} modules, {Path(ARCHIVE).stat().st_size:,} bytes")  # noqa: T201
