"""Publish and switch: a server under a steady load takes five newer bundles from S3 and two older ones back.

Beside it, cold starts over a bundle in S3.
"""

import argparse
import http.client
import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.bundles import make_bundle
from bench.data import add_data_argument
from bench.object_server import serving
from bench.provenance import make_provenance
from bench.published import WHERE, export, publish, server, storage, version_of
from bench.published_starts import measure_starts, starts_table
from bench.report import report
from bench.texts import Texts, read_texts

WRITES: tuple[str, ...] = ("switching", "switching_starts")
MEASURES: tuple[str, ...] = ("function", "export/publishing", "requirements.txt")
ROWS = 30_000
STEPS = ("publish", "publish", "publish", "rollback", "publish", "rollback", "publish")
RATE = 50  # requests a second
POLL_SECONDS = 1
CALLERS = 16  # threads that ask
SWITCHES_WITHIN = 120.0  # seconds


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: when it was due and its milliseconds from then on, its status, and the bundle that it names."""

    due: float  # by time.monotonic
    milliseconds: float
    status: int
    bundle: str
    is_of_one: bool  # every result is a text of the bundle that the header names


@dataclass(frozen=True, slots=True)
class Step:
    """One publish or rollback: when it began, when the pointer was switched, and the first answer from the bundle."""

    command: str
    began: float
    switched: float
    answered: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--seconds", type=float, default=120.0, help="how long the load lasts")
    parser.add_argument("--rounds", type=int, default=20, help="cold starts from each place")
    parser.add_argument("--bundles", type=Path, nargs=2, help="two bundles of one model (default: they are exported)")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    texts = read_texts(options.data, 2 * ROWS)
    if options.bundles:
        bundles = options.bundles
    else:
        halves = (texts.texts[:ROWS], texts.texts[ROWS:])
        bundles = [
            make_bundle(options.work, Texts(texts.kind, f"{texts.file_name}-{n}", half))
            for n, half in enumerate(halves)
        ]
    asked, steps = measure(options.work, bundles, texts.texts[::97], options.seconds)
    during = [each.milliseconds for each in asked if any(is_during(each, step) for step in steps)]
    others = [each.milliseconds for each in asked if not any(is_during(each, step) for step in steps)]
    failed = sum(each.status != 200 for each in asked)
    mixed = sum(each.status == 200 and not each.is_of_one for each in asked)
    rows = [
        ("requests", f"{len(asked):,}"),
        ("failed requests", failed),
        ("answers of more than one bundle", mixed),
        ("publishes and rollbacks", len(steps)),
        ("seconds from the command to the first answer", span([step.answered - step.began for step in steps])),
        ("seconds from the switched pointer to the first answer", span([s.answered - s.switched for s in steps])),
        ("milliseconds of a request, median, no switch", f"{statistics.median(others):.1f}"),
        ("milliseconds of a request, slowest, no switch", f"{max(others):.1f}"),
        ("milliseconds of a request, median, during a switch", f"{statistics.median(during):.1f}"),
        ("milliseconds of a request, slowest, during a switch", f"{max(during):.1f}"),
    ]
    details = {
        "requests": len(asked),
        "failed": failed,
        "mixed": mixed,
        "steps": [asdict(step) for step in steps],
        "median_ms": statistics.median(others),
        "slowest_ms": max(others),
        "slowest_during_ms": max(during),
    }
    source = make_provenance(texts.description())
    report("switching", ("", "measured"), rows, details, source)
    with serving(bundles[0]) as environment:
        seen = measure_starts(options.work, environment, bundles[0], options.rounds)
    report("switching_starts", *starts_table(seen), {"rounds": options.rounds, "seen": seen}, source)
    return 0


def is_during(each: Asked, step: Step) -> bool:
    """Return whether a request ran while a bundle was published, fetched or opened."""
    return step.began - 0.1 <= each.due <= step.answered + 0.1


def span(values: Sequence[float]) -> str:
    """Return the median, and the least and the greatest."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def measure(
    work: Path, bundles: Sequence[Path], texts: Sequence[str], seconds: float
) -> tuple[list[Asked], list[Step]]:
    """Ask a server for texts, RATE a second, while the bundles take turns; return all requests and all steps."""
    work.mkdir(parents=True, exist_ok=True)
    asked: list[Asked] = []
    known = {version_of(bundle): set(texts_of(bundle)) for bundle in bundles}
    with ExitStack() as stack:
        log = stack.enter_context((work / "switching.log").open("w"))
        environment = stack.enter_context(storage(log.fileno()))
        publish(environment, bundles[0])
        address = stack.enter_context(server(environment, POLL_SECONDS, log.fileno(), work / "switching-server.log"))
        asking = threading.Thread(target=load, args=(address, texts, seconds, known, asked))
        asking.start()
        steps = []
        time.sleep(seconds / (2 * len(STEPS)))
        current = 0
        for command in STEPS:
            began = time.monotonic()
            current = 1 - current
            if command == "publish":
                publish(environment, bundles[current])
            else:
                export(environment, "rollback", WHERE)
            switched, version = time.monotonic(), version_of(bundles[current])
            steps.append(Step(command, began, switched, first_answer(asked, version, began)))
            time.sleep(max(0.0, seconds / (len(STEPS) + 1) - (time.monotonic() - began)))
        asking.join()
    return asked, steps


def first_answer(asked: Sequence[Asked], version: str, began: float) -> float:
    """Wait for the first answer from a bundle to a request after `began`, and return when it came."""
    while True:
        times = [each.due + each.milliseconds / 1e3 for each in asked[:] if each.bundle == version and each.due > began]
        if times:
            return min(times)
        if time.monotonic() > began + SWITCHES_WITHIN:
            raise SystemExit(f"the server did not switch to {version}; GET /info of it says why")
        time.sleep(0.01)


def load(address: str, texts: Sequence[str], seconds: float, known: dict[str, set[str]], asked: list[Asked]) -> None:
    """Ask at a steady rate, whether or not earlier requests are answered."""
    connections = threading.local()

    def ask(due: float, text: str) -> None:
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            if not hasattr(connections, "open"):
                connections.open = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
            body = json.dumps({"text": text, "include": ["text"]})
            connections.open.request("POST", "/similar", body, {"content-type": "application/json"})
            reply = connections.open.getresponse()
            content = reply.read()
            took = (time.monotonic() - due) * 1e3
            bundle = reply.headers.get("x-bundle", "")
            found = {result["text"] for result in json.loads(content)["results"]} if reply.status == 200 else set()
            asked.append(Asked(due, took, reply.status, bundle, bool(found) and found <= known.get(bundle, set())))
        except (OSError, http.client.HTTPException, ValueError):
            asked.append(Asked(due, (time.monotonic() - due) * 1e3, 0, "", is_of_one=False))

    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as pool:
        for number in range(int(seconds * RATE)):
            pool.submit(ask, began + number / RATE, texts[number % len(texts)])


def texts_of(bundle: Path) -> Iterator[str]:
    """Yield a bundle's texts."""
    from function.engine.bundle import PASSAGES
    from function.engine.passages import Passages

    passages = Passages(bundle / PASSAGES)
    return (passages.text(row) for row in range(len(passages)))
