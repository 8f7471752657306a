"""Publish and switch: a server under a steady load takes five newer bundles from S3 and two older ones back.

S3 is moto's server on this machine, so it takes processor time from the server that is measured.
"""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.bundles import make_bundle
from bench.data import add_data_argument
from bench.folders import PROJECT
from bench.provenance import make_provenance
from bench.report import report
from bench.texts import Texts, read_texts

WRITES: tuple[str, ...] = ("switching",)
MEASURES: tuple[str, ...] = ("function", "export/publishing", "requirements.txt")
ROWS = 30_000
STEPS = ("publish", "publish", "publish", "rollback", "publish", "rollback", "publish")
RATE = 50  # requests a second
POLL_SECONDS = 1
CALLERS = 16  # threads that ask
WHERE = "s3://bench/search"
STARTS_WITHIN = 60.0  # seconds
KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "eu-central-1"}


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
    report("switching", ("", "measured"), rows, details, make_provenance(str(options.data)))
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
        endpoint = stack.enter_context(storage(log.fileno()))
        environment = os.environ | KEYS | {"AWS_ENDPOINT_URL_S3": endpoint}
        publish(environment, bundles[0])
        address = stack.enter_context(server(environment, log.fileno(), work / "switching-server.log"))
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
            while not any(each.bundle == version and each.due > began for each in asked):
                time.sleep(0.01)
            first = min(
                each.due + each.milliseconds / 1e3 for each in asked if each.bundle == version and each.due > began
            )
            steps.append(Step(command, began, switched, first))
            time.sleep(max(0.0, seconds / (len(STEPS) + 1) - (time.monotonic() - began)))
        asking.join()
    return asked, steps


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


def version_of(bundle: Path) -> str:
    """Return what the header x-bundle says of a bundle."""
    from function.engine.bundle import MANIFEST, describe_file

    return describe_file(bundle / MANIFEST).sha256[:12]


def publish(environment: dict[str, str], bundle: Path) -> None:
    """Publish a bundle as users do."""
    export(environment, "publish", bundle, WHERE)


def export(environment: dict[str, str], *words: str | Path) -> None:
    """Run a command of the export. Raises CalledProcessError if it fails."""
    command = [sys.executable, "-m", "export", *map(str, words)]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True)


@contextmanager
def storage(log: int) -> Iterator[str]:
    """Run moto's server with an empty bucket, and yield its address."""
    import boto3

    script = "from moto.server import ThreadedMotoServer as S; s = S('127.0.0.1', 0, verbose=False); s.start(); "
    script += "print(s.get_host_and_port()[1], flush=True); import threading; threading.Event().wait()"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=log, text=True) as process:
        try:
            assert process.stdout is not None
            endpoint = f"http://127.0.0.1:{process.stdout.readline().strip()}"
            client = boto3.client(
                "s3",
                endpoint_url=endpoint,
                region_name=KEYS["AWS_REGION"],
                aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
            )
            client.create_bucket(Bucket="bench", CreateBucketConfiguration={"LocationConstraint": KEYS["AWS_REGION"]})
            client.close()
            yield endpoint
        finally:
            process.kill()


@contextmanager
def server(environment: dict[str, str], log: int, output: Path) -> Iterator[str]:
    """Run this project's server over the published bundle, and yield its address."""
    command = [sys.executable, "-m", "function", "--port", "0", "--workers", "1"]
    own = environment | {"BUNDLE_DIR": WHERE, "BUNDLE_POLL_SECONDS": str(POLL_SECONDS)}
    with (
        output.open("w") as written,
        subprocess.Popen(command, cwd=PROJECT, env=own, stdout=log, stderr=written) as process,
    ):
        end = time.monotonic() + STARTS_WITHIN
        while "running on " not in (printed := output.read_text()):
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the server did not start; {output} has what it printed")
            time.sleep(0.05)
        try:
            yield printed.partition("running on ")[2].split()[0]
        finally:
            process.terminate()
