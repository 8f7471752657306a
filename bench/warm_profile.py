"""Where the microseconds of a warm /similar request go, part by part.

Each part is wrapped by a clock, which takes a microsecond or two of its own; what a part calls and is a part itself is
not counted twice. The clock is the processor's time of the handler's thread, so that other programs hardly matter: the
medians of many requests through the Lambda handler, in one process.
"""

import argparse
import importlib
import inspect
import os
import statistics
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any

from bench.bundles import make_bundle
from bench.data import add_data_argument
from bench.provenance import make_provenance
from bench.report import report
from bench.sample_event import Context, sample_event
from bench.texts import read_texts, short_queries

WRITES: tuple[str, ...] = ("warm_profile",)
MEASURES: tuple[str, ...] = ("function", "requirements.txt")
WARM_UP = 100  # requests that are not counted
EVENT = "event to request, and reply to event (Mangum)"
# what a part is called, the object that holds it, and its names there; "" stands for the handler's module
PARTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("check of the event", "function.events.adapter:CheckedEvent", ("__init__",)),
    ("round of the event loop", "mangum.protocols.http:HTTPCycle", ("__call__",)),
    (EVENT, "mangum.protocols.http:HTTPCycle", ("send",)),
    ("log, limits and HEAD", "function.middleware:RequestLog", ("__call__",)),
    ("log, limits and HEAD", "function.middleware:RequestLimits", ("__call__",)),
    ("line in the log", "aws_lambda_powertools.logging:Logger", ("info",)),
    ("route and validation (FastAPI)", "starlette.middleware.exceptions:ExceptionMiddleware", ("__call__",)),
    ("tokens", "function.engine.embedder:Embedder", ("tokenize",)),
    ("model", "function.engine.embedder:Embedder", ("embed",)),
    ("search", "function.engine.semantic.index:Index", ("search",)),
    ("texts and metadata of the hits", "function.engine.passages:Passages", ("id", "text", "metadata")),
    ("JSON of the reply", "function.routes.similar", ("json_reply",)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--requests", type=int, default=1_000)


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(options.work, texts)
    found = profile(bundle, short_queries(options.data, 4, 1_000), options.requests)
    whole = sum(found.values())
    rows = [(part, f"{taken:.0f}", f"{100 * taken / whole:.1f}") for part, taken in found.items()]
    rows.append(("together", f"{whole:.0f}", "100"))
    details = {"rows": len(texts.texts), "requests": options.requests, "microseconds": found}
    report("warm_profile", ("part of a request", "µs", "%"), rows, details, make_provenance(texts.description()))
    return 0


def profile(bundle: Path, queries: list[str], requests: int) -> dict[str, float]:
    """Return the median microseconds of each part, the parts in the order of PARTS."""
    os.environ["BUNDLE_DIR"] = str(bundle)
    clock = Clock()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as in Lambda
        from function.handler import handler

        for part, holder, names in PARTS:
            for name in names:
                clock.wrap(part, holder, name)
        taken: dict[str, list[float]] = {part: [] for part, *_ in PARTS}
        for number in range(requests + WARM_UP):
            event = sample_event("/similar", {"text": queries[number % len(queries)]})
            clock.taken = dict.fromkeys(taken, 0.0)
            clock.enter(EVENT)
            reply = handler(event, Context())  # type: ignore[arg-type]
            clock.leave()
            if reply["statusCode"] != 200:
                raise SystemExit(f"the handler answered {reply}")
            if number >= WARM_UP:
                for part, microseconds in clock.taken.items():
                    taken[part].append(microseconds)
    return {part: statistics.median(each) for part, each in taken.items()}


class Clock:
    """Microseconds by part; while a part runs that another called, the other's time stands still."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._running: list[str] = []
        self._last = 0

    def enter(self, part: str) -> None:
        """Begin a part."""
        self._count()
        self._running.append(part)

    def leave(self) -> None:
        """End the part that began last."""
        self._count()
        self._running.pop()

    def _count(self) -> None:
        now = time.thread_time_ns()
        if self._running:
            part = self._running[-1]
            self.taken[part] = self.taken.get(part, 0.0) + (now - self._last) / 1e3
        self._last = time.thread_time_ns()

    def wrap(self, part: str, holder: str, name: str) -> None:
        """Put the clock around a function of a module, or around a method of "module:Class"."""

        module, _, inside = holder.partition(":")
        owner: Any = importlib.import_module(module)
        owner = getattr(owner, inside) if inside else owner
        function: Callable[..., Any] = getattr(owner, name)

        @wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            self.enter(part)
            try:
                return function(*arguments, **named)
            finally:
                self.leave()

        @wraps(function)
        async def timed_await(*arguments: Any, **named: Any) -> Any:
            self.enter(part)
            try:
                return await function(*arguments, **named)
            finally:
                self.leave()

        setattr(owner, name, timed_await if inspect.iscoroutinefunction(function) else timed)
