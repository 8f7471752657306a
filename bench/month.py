"""A month of operation in minutes: 30 nights of new texts, six of them with a fault, and what callers saw.

Each night 1 % of the texts change, and are indexed and published as in deploy/nightly.yaml. A server and three
functions follow while they answer. As in Lambda, a function is stopped between requests, and each night a new one
replaces one of them. AWS is moto's servers on this machine. Nothing here is a measurement of speed.
"""

import csv
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import boto3

from bench import DATA, PROJECT, WORK
from bench.emulator import free_port
from bench.serve import ServerCommand, proportional_megabytes, running
from bench.tables import make_provenance, report
from bench.work import SEED, read_texts
from tests.stand_ins.deployment import Environment, aws_on_this_machine, fill, send_to_server, small_disk
from tests.stand_ins.faults import Proxy, refuse

ROWS = 1_000  # texts in the index
URL, BUCKET, PREFIX, REGION = "s3://month/search", "month", "search", "eu-central-1"
AWS = {"AWS_ACCESS_KEY_ID": "month", "AWS_SECRET_ACCESS_KEY": "month", "AWS_DEFAULT_REGION": REGION}
KEYS = {"team-a": "a" * 32, "team-b": "b" * 32}  # the key of team-b is revoked
FUNCTIONS = 3
NIGHTS = 30
CHANGED = 0.01  # share of the texts that change in a night
SECONDS_OF_A_FAULT = 6.0  # until it passes, or the operator repairs it
SECONDS_OF_A_DAY = 2.0  # after all have followed
FOLLOW_WITHIN = 90.0  # maximum seconds until all answer from the current version
REVOKED_WITHIN = 65.0  # maximum seconds that a revoked key is accepted: keys are read again each minute
PAUSE = 0.1  # seconds between two requests of a caller
AGREEING = 10  # number of last replies that show what a place serves; the server has two workers
NO_FAULT = "new texts, no fault"
COLUMNS = ("nights", "what happened", "requests", "failures", "oldest texts", "server", "largest function")


class Reply(NamedTuple):
    """What a caller saw: the times of request and reply, the status, the version, and the texts by row."""

    at: float
    until: float
    place: str
    key: str
    status: str
    version: str
    hits: list[tuple[int, str]]


@dataclass
class Operation:
    """What the operator does, and what callers see at each place: the functions and the server."""

    work: Path
    texts: list[str]
    s3: Any = None
    proxy: Any = None  # between S3 and what reads it
    order: random.Random = field(default_factory=lambda: random.Random(SEED))
    options: Sequence[str] = ()  # further ones of `semsearch publish`
    published: dict[str, list[str]] = field(default_factory=dict)  # the texts of each version
    switches: list[tuple[float, str]] = field(default_factory=list)  # when each version became current
    functions: list[Any] = field(default_factory=list)
    # what sends a body with a key to each place, and returns status, version and reply
    places: dict[str, Callable[[dict[str, Any], str], Any]] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)
    revoke: Callable[[], object] = print
    revoked_at: float = float("inf")

    def index(self, *options: object) -> str:
        """Index the texts in the folder `bundle`, and return the version."""
        table, bundle = self.work / "texts.csv", self.work / "bundle"
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("id", "text"), *enumerate(self.texts)])
        shutil.rmtree(bundle, ignore_errors=True)
        self._semsearch("index", table, "--out", bundle, *options)
        version = sha256((bundle / "manifest.json").read_bytes()).hexdigest()
        self.published[version[:12]] = list(self.texts)
        return version

    def index_changes(self) -> str:
        """Change some of the texts and index all of them; return the version."""
        for row in self.order.sample(range(len(self.texts)), round(CHANGED * len(self.texts))):
            self.texts[row] = f"{self.texts[row].partition(' [edition')[0]} [edition {len(self.published)}]"
        return self.index("--update", URL)

    def publish(self) -> None:
        """Publish the folder `bundle`. Then Lambda replaces one of the functions."""
        self.switch("publish", self.work / "bundle", URL, *self.options)
        for function in self.functions[len(self.switches) % FUNCTIONS :][:1]:
            function.is_old = True

    def switch(self, *words: object) -> None:
        """Run `semsearch publish` or `semsearch rollback`, and note when it switched the pointer."""
        self._semsearch(*words)
        pointer = json.load(self.s3.get_object(Bucket=BUCKET, Key=f"{PREFIX}/current.json")["Body"])
        self.switches.append((datetime.fromisoformat(pointer["switched"]).timestamp(), pointer["version"][:12]))

    def _semsearch(self, *words: object) -> None:
        with (self.work / "commands.log").open("a") as log:
            command = [sys.executable, "-m", "semsearch", *map(str, words)]
            subprocess.run(command, check=True, stdout=log, stderr=log)

    def call(self, place: str, is_over: threading.Event) -> None:
        """Send one request after the other until the month is over."""
        order = random.Random(place)
        while not is_over.wait(PAUSE):
            at, key = time.time(), order.choice(list(KEYS))
            words = order.choice(self.texts).split()[:5]
            status, version, content = self.places[place]({"text": " ".join(words)}, KEYS[key])
            hits = []
            if status == "200":
                hits = [(result["index"], result["text"]) for result in json.loads(content)["results"]]
            self.replies.append(Reply(at, time.time(), place, key, status, version, hits))

    def wait_until(self, is_so: Callable[[Sequence[Reply]], bool]) -> None:
        """Wait until it is so of the last replies of each place. Raises SystemExit if it takes too long."""
        began, agree = time.time(), False
        while not agree:
            time.sleep(0.2)
            seen = [reply for reply in self.replies[-2000:] if reply.at > began]
            last = [[reply for reply in seen if reply.place == place][-AGREEING:] for place in self.places]
            agree = all(len(replies) == AGREEING and is_so(replies) for replies in last)
            if time.time() > began + FOLLOW_WITHIN:
                raise SystemExit(f"not all followed within {FOLLOW_WITHIN:.0f} s; {self.work} has the logs")

    def has_followed(self, replies: Sequence[Reply]) -> bool:
        """Return whether all replies are from the current version."""
        return {reply.version for reply in replies} <= {self.switches[-1][1], ""}

    def failure_of(self, reply: Reply) -> str:
        """Return what was wrong with a reply, "" if nothing was."""
        is_revoked = reply.key == "team-b" and reply.until > self.revoked_at
        if is_revoked and reply.status == "401":
            return ""
        if reply.status != "200":
            return reply.status
        if is_revoked and reply.at > self.revoked_at + REVOKED_WITHIN:
            return "200 for a revoked key"
        texts = self.published[reply.version]
        return "" if all(texts[row] == text for row, text in reply.hits) else "200 with a text of another version"

    def age_of(self, reply: Reply) -> float:
        """Return how many seconds before the request the version that answered had been replaced."""
        replaced, current = reply.at, ""
        for at, version in self.switches:
            if at <= reply.at:
                if current == reply.version:
                    replaced = at
                current = version
        return 0.0 if reply.version in ("", current) else reply.at - replaced


# Each of these lets something go wrong when the texts of a night are indexed. The part behind its `yield` repairs it.


def bad_bundle(operation: Operation, version: str) -> Iterator[None]:
    """Index with another model; roll back, and replace the function that started meanwhile with that model."""
    operation.index("--query-prompt", "query: ")
    operation.options = ["--other-model"]
    yield
    operation.options = []
    operation.switch("rollback", URL)
    time.sleep(SECONDS_OF_A_FAULT)
    for function in operation.functions:
        function.is_old = True


def roll_back(operation: Operation, version: str) -> Iterator[None]:
    """Roll back when all have the new texts."""
    yield
    operation.wait_until(operation.has_followed)
    operation.switch("rollback", URL)


def revoke_key(operation: Operation, version: str) -> Iterator[None]:
    """Revoke a key, and wait until all refuse it."""
    yield
    operation.revoked_at = time.time()
    operation.revoke()
    refused = {("team-a", "200"), ("team-b", "401")}
    operation.wait_until(lambda replies: {(reply.key, reply.status) for reply in replies} == refused)


def stop_s3(operation: Operation, version: str) -> Iterator[None]:
    """Let S3 refuse all requests of the functions and of the server."""
    operation.proxy.fail("", refuse(503, "SlowDown"))
    yield
    operation.proxy.faults.clear()


def fill_disk(operation: Operation, version: str) -> Iterator[None]:
    """Leave the server no room for new texts."""
    ballast = fill(operation.work / "disk")
    yield
    ballast.unlink()


def damage_file(operation: Operation, version: str) -> Iterator[None]:
    """Damage a file in S3 before it becomes current; roll back, delete the file and publish again."""
    name = "passages.safetensors"
    content = bytearray((operation.work / "bundle" / name).read_bytes())
    whole = {"sha256": sha256(content).hexdigest()}  # with it, `publish` does not send the file again
    content[len(content) // 2] ^= 1
    key = f"{PREFIX}/bundles/{version}/{name}"
    operation.s3.put_object(Bucket=BUCKET, Key=key, Body=bytes(content), Metadata=whole)
    yield
    operation.switch("rollback", URL)
    operation.s3.delete_object(Bucket=BUCKET, Key=key)
    operation.publish()


FAULTS = {
    5: ("a bundle of another model; rolled back", bad_bundle),
    9: ("all follow; rolled back", roll_back),
    13: ("a key is revoked", revoke_key),
    17: ("S3 answers 503", stop_s3),
    21: ("the server's disk is full", fill_disk),
    25: ("a file is damaged in S3; rolled back", damage_file),
}


def month(*, work: Path = WORK, data: Path = DATA) -> None:
    """What callers see in 30 nights of new texts, six of them with a fault."""
    folder = work.absolute() / "month"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts = read_texts(data, ROWS)
    with ExitStack() as stack:
        stack.enter_context(small_disk(folder / "disk"))
        endpoint = stack.enter_context(aws_on_this_machine())
        os.environ.update(AWS | {"AWS_ENDPOINT_URL": endpoint, "PYTHONPATH": str(PROJECT)})
        operation, server = start(folder, texts.texts, endpoint, stack)
        is_over = threading.Event()
        for place in (*operation.places, "server"):  # it has two workers
            caller = threading.Thread(target=operation.call, args=(place, is_over))
            stack.callback(caller.join)
            caller.start()
        stack.callback(is_over.set)
        nights = {number: pass_night(operation, number, server) for number in range(1, NIGHTS + 1)}
    ordinary = [night for night in nights.values() if night["title"] == NO_FAULT]
    special = [row([night]) for night in nights.values() if night not in ordinary]
    rows = [row(ordinary), *special, row(list(nights.values()))]
    report("month", COLUMNS, rows, {"nights": nights}, make_provenance(texts.description()))


def start(work: Path, texts: Sequence[str], endpoint: str, stack: ExitStack) -> tuple[Operation, int]:
    """Publish the texts, and start the functions and the server; return the operation and the server's process id."""
    s3, secrets = boto3.client("s3"), boto3.client("secretsmanager")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    entries = {name: f"{name}:{sha256(key.encode()).hexdigest()}" for name, key in KEYS.items()}
    arn = secrets.create_secret(Name="keys", SecretString=" ".join(entries.values()))["ARN"]
    operation = Operation(work, list(texts), s3, stack.enter_context(Proxy(endpoint)))
    operation.revoke = partial(secrets.put_secret_value, SecretId="keys", SecretString=entries["team-a"])
    operation.index()
    operation.publish()
    shutil.copytree(work / "bundle", work / "image")  # functions take its model
    variables = {"BUNDLE_DIR": URL, "BUNDLE_POLL_SECONDS": "1", "API_KEYS_ARN": arn, "PYTHONPATH": str(PROJECT)}
    variables["AWS_ENDPOINT_URL_S3"] = operation.proxy.address
    for number in range(FUNCTIONS):
        own = {"AWS_LAMBDA_FUNCTION_NAME": "month", "LOCAL_BUNDLE_DIR": str(work / "image")}
        own["TMPDIR"] = str(work / f"disk-{number}")
        operation.functions.append(Environment(variables | own, work / f"function-{number}.log"))
        operation.places[f"function {number}"] = operation.functions[-1].send
        stack.callback(operation.functions[-1].stop)
    port = free_port()
    command = [sys.executable, "-m", "semsearch", "serve", "--workers", 2, "--port", port]
    server = ServerCommand(port, command, {}, environment=variables | {"TMPDIR": str(work / "disk")})
    operation.places["server"] = partial(send_to_server, port)
    return operation, stack.enter_context(running(server, work / "server.log"))


def pass_night(operation: Operation, number: int, server: int) -> dict[str, Any]:
    """Let a night and its day pass; return what callers saw, ages in seconds and memory in megabytes."""
    before = len(operation.replies)
    version = operation.index_changes()
    title, fault = FAULTS.get(number, (NO_FAULT, None))
    repairing = fault(operation, version) if fault is not None else iter(())
    next(repairing, None)
    operation.publish()
    if fault is not None:
        time.sleep(SECONDS_OF_A_FAULT)
    next(repairing, None)
    operation.wait_until(operation.has_followed)
    time.sleep(SECONDS_OF_A_DAY)
    seen = operation.replies[before:]
    revoked = [reply.at - operation.revoked_at for reply in seen if (reply.key, reply.status) == ("team-b", "200")]
    night = {
        "title": title,
        "number": number,
        "requests": len(seen),
        "failures": Counter(failure for reply in seen if (failure := operation.failure_of(reply))),
        "oldest": max(map(operation.age_of, seen)),
        "revoked_within": max(0.0, *revoked) if fault is revoke_key else 0.0,
        "server": proportional_megabytes(server),
        "function": max(proportional_megabytes(each.process.pid) for each in operation.functions if each.process),
    }
    print(f"night {number}: {night}", flush=True)
    return night


def row(nights: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of one night, of the ordinary nights, or of all."""
    titles = {night["title"] for night in nights}
    failures: Counter[str] = Counter()
    for night in nights:
        failures.update(night["failures"])
    ranges = []
    for place in ("server", "function"):
        megabytes = [round(night[place]) for night in nights]
        ranges.append(" to ".join(map(str, dict.fromkeys((min(megabytes), max(megabytes))))) + " MB")
    return (
        str(nights[0]["number"]) if len(nights) == 1 else f"{len(nights)} nights",
        titles.pop() if len(titles) == 1 else "all",
        f"{sum(night['requests'] for night in nights):,}",
        ", ".join(f"{count} x {failure}" for failure, count in failures.items()) or "0",
        f"{max(night['oldest'] for night in nights):.1f} s",
        *ranges,
    )
