"""What the first query after a start reads of a bundle that is not in the page cache: pages of 4 KB, and chunks.

The kernel reads more of a mapped file than is asked for, up to megabytes around a page. `no_readahead` tells it not to,
so what is in the page cache afterwards is exactly what was touched: mincore says which pages those are.
"""

import argparse
import ctypes
import json
import mmap
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from bench.folders import PROJECT
from bench.sample_event import Context, sample_event
from function.engine.arrays import Array
from function.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES

PAGE = mmap.PAGESIZE
CHUNK = 512 * 1024  # bytes; a bundle in chunks of this size could be fetched as they are needed
TOUCHED, READ_AHEAD = "touched", "read ahead"
TEXT = {"text": "self driving cars navigation"}
BODIES: dict[str, dict[str, Any]] = {
    "semantic": TEXT,
    "filter": TEXT | {"filter": {"lot": {"$lt": 100}}},
    "keyword": TEXT | {"mode": "keyword"},
    "hybrid": TEXT | {"mode": "hybrid"},
}
FILES = (INDEX, PASSAGES, COLUMNS, KEYWORDS)


def first_query(bundle: Path, body: dict[str, Any], readahead: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Return what INIT, and INIT with one request of this body after it, touch of each file: megabytes and chunks.

    The result is {"INIT": {file: {"megabytes": ..., "chunks": ...}}, "first query": ...}. INIT searches, too.
    With `readahead` the kernel reads as it does for every function, so these are the bytes that come from the disk.
    The bundle must not be open elsewhere, because the kernel forgets no page that is in use.
    """
    for name in FILES:
        forget(bundle / name)
    if kept := sum(seen["megabytes"] for seen in measure_files(bundle).values()):
        raise SystemExit(f"{bundle}: {kept:.1f} MB are still in memory; end the programs that have it open")
    flags = [] if readahead else ["--no-readahead"]
    command = [sys.executable, "-m", "bench.touched", str(bundle.absolute()), *flags]
    done = subprocess.run(command, cwd=PROJECT, check=True, input=json.dumps(body), stdout=subprocess.PIPE, text=True)
    seen: dict[str, dict[str, dict[str, float]]] = json.loads(done.stdout)
    return seen


def touch_in_turn(bundles: Mapping[int, Path]) -> dict[int, dict[str, Any]]:
    """Return what each kind of request in BODIES touches first of each bundle, with and without reading ahead."""
    return {
        size: {
            kind: {name: first_query(bundle, body, name == READ_AHEAD) for name in (TOUCHED, READ_AHEAD)}
            for kind, body in BODIES.items()
        }
        for size, bundle in bundles.items()
    }


def measure_files(bundle: Path) -> dict[str, dict[str, float]]:
    """Return `measure` of the pages of each of a bundle's FILES that are in the page cache."""
    return {name: measure(cached_pages(bundle / name)) for name in FILES if (bundle / name).exists()}


def measure(pages: Array[np.bool_]) -> dict[str, float]:
    """Return how much of a file these pages are: in megabytes, and in chunks of CHUNK bytes that hold one of them."""
    chunks = np.unique(np.flatnonzero(pages) // (CHUNK // PAGE))
    return {"megabytes": int(np.count_nonzero(pages)) * PAGE / 1e6, "chunks": len(chunks)}


def forget(path: Path) -> None:
    """Make the kernel drop a file from the page cache, if there is such a file."""
    if path.exists():
        with path.open("rb") as file:
            os.fsync(file.fileno())  # what is not yet on the disk cannot be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cached_pages(path: Path) -> Array[np.bool_]:
    """Return which pages of a file are in the page cache, (pages,) bool; asking changes nothing."""
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped:
        states = np.zeros(-(-size // PAGE), np.uint8)
        view = np.frombuffer(mapped, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(
            ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(size), states.ctypes.data_as(ctypes.c_void_p)
        )
        del view  # otherwise the map cannot be closed
        if failed:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    cached: Array[np.bool_] = (states & 1).astype(np.bool_)
    return cached


class RandomMap(mmap.mmap):
    """A memory map of which the kernel reads only the pages that are used."""

    def __new__(cls, *arguments: Any, **named: Any) -> "RandomMap":
        """Map a file as mmap.mmap does."""
        mapped = super().__new__(cls, *arguments, **named)
        mapped.madvise(mmap.MADV_RANDOM)
        return mapped


def main() -> int:
    """Start the function and send it the request whose body is the input."""
    parser = argparse.ArgumentParser("python -m bench.touched", description=main.__doc__)
    parser.add_argument("bundle")
    parser.add_argument("--no-readahead", action="store_true")
    options = parser.parse_args()
    if options.no_readahead:
        mmap.mmap = RandomMap  # type: ignore[misc] # the engine looks the class up when it maps a file
    os.environ["BUNDLE_DIR"] = options.bundle
    body = json.load(sys.stdin)
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as in Lambda
        from function.handler import handler

        seen = {"INIT": measure_files(Path(options.bundle))}
        reply = handler(sample_event("/similar", body), Context())  # type: ignore[arg-type]
        if reply["statusCode"] != 200:
            raise SystemExit(f"the handler answered {reply}")
        seen["first query"] = measure_files(Path(options.bundle))
    print(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
