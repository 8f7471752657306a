"""A month of operation in minutes: 30 nights of new texts, 18 of them with an incident, and what callers saw.

Each night 1 % of the texts change, and are indexed and published as in deploy/nightly.yaml. Two servers and three
functions follow while they answer. As in Lambda, a function is stopped between requests, and each night a new one
replaces one of them. AWS is moto's servers on this machine. Nothing here is a measurement of speed.
"""

import csv
import json
import os
import random
import shutil
import signal
import socket
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
from bench.serve import ServerCommand, children, proportional_megabytes, running
from bench.tables import make_provenance, report
from bench.work import SEED, read_texts
from semsearch.app.settings import encode_filter
from tests.stand_ins.deployment import (
    FAILED_START,
    Environment,
    aws_on_this_machine,
    fill,
    send_to_server,
    small_disk,
)
from tests.stand_ins.faults import WAIT, Fault, Proxy, delay, refuse

ROWS = 1_000  # texts in the index
URL, BUCKET, PREFIX, REGION = "s3://month/search", "month", "search", "eu-central-1"
AWS = {"AWS_ACCESS_KEY_ID": "month", "AWS_SECRET_ACCESS_KEY": "month", "AWS_DEFAULT_REGION": REGION}
# the key of team-b is revoked, and that of team-c finds only the even rows
KEYS = {"team-a": "a" * 32, "team-b": "b" * 32, "team-c": "c" * 32}
SHELVES = ("even", "odd")  # values of the column "shelf", by row
FILTER = {"shelf": "even"}  # filter of the key of team-c
FUNCTIONS = 3
NIGHTS = 30
CHANGED = 0.01  # share of the texts that change in a night
SECONDS_OF_A_FAULT = 6.0  # until it passes, or the operator repairs it
SECONDS_OF_A_DAY = 2.0  # after all have followed
REMOVED = 5  # number of texts that are removed; a caller that knows of some looks for them every other time
SERVERS = {"server": 2, "server of one worker": 1}  # number of workers of each server
DEATHS = 4  # times that a worker of each server is killed in a night; an even number, for the rollbacks between them
SECONDS_BETWEEN_DEATHS = 7.0  # a server ends if the same worker dies twice within six seconds
SLOW = 2.0  # seconds that each reply of a slow S3 takes
CONNECTIONS = 1024  # maximum connections of a worker
SILENT = 1.1  # number of silent connections, as a multiple of those that the workers accept
# what a caller sees of a worker's death
CUT = {"RemoteDisconnected", "ConnectionResetError", "BrokenPipeError", "IncompleteRead"}
AWAY = {FAILED_START}  # what callers see while S3 answers no one: a function cannot start
SQS_EVENT = {"Records": [{"messageId": "1", "eventSource": "aws:sqs", "body": "a message"}]}
FOLLOW_WITHIN = 90.0  # maximum seconds until all answer from the current version
REVOKED_WITHIN = 65.0  # maximum seconds that a revoked key is accepted: keys are read again each minute
PAUSE = 0.1  # seconds between two requests of a caller
AGREEING = 10  # number of last replies that show what a place serves; a server has up to two workers
NO_INCIDENT = "new texts, no incident"
COLUMNS = (
    "nights",
    "what happened",
    "requests",
    "failures by design",
    "other failures",
    "oldest texts",
    "server",
    "largest function",
)


class Reply(NamedTuple):
    """What a caller saw: the times of request and reply, the status, the version, and the texts by row."""

    at: float
    until: float
    place: str
    key: str
    status: str
    version: str
    hits: list[tuple[int, str]]


class Server(NamedTuple):
    """A server: its main process, its port and the number of its workers."""

    process: int
    port: int
    workers: int


@dataclass
class Operation:
    """What the operator does, and what callers see at each place: the functions and the servers."""

    work: Path
    texts: list[str]
    s3: Any = None
    proxy: Any = None  # between S3 and what reads it
    order: random.Random = field(default_factory=lambda: random.Random(SEED))
    options: Sequence[str] = ()  # further ones of `semsearch publish`
    published: dict[str, list[str]] = field(default_factory=dict)  # the texts of each version
    switches: list[tuple[float, str]] = field(default_factory=list)  # when each version became current
    followed: list[float] = field(default_factory=list)  # when all places served the current version
    column: str = "shelf"  # the one that the filter of a key needs
    removed: list[int] = field(default_factory=list)  # rows
    removed_at: float = float("inf")  # when no place found the removed texts any more
    functions: list[Any] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    # what sends a body with a key to each place, and returns status, version and reply
    places: dict[str, Callable[[dict[str, Any], str], Any]] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)
    revoke: Callable[[], object] = print
    revoked_at: float = float("inf")

    def index(self, *options: object) -> str:
        """Index the texts in the folder `bundle`, and return the version."""
        table, bundle = self.work / "texts.csv", self.work / "bundle"
        with table.open("w", newline="", encoding="utf-8") as file:
            rows = ((row, text, SHELVES[row % 2]) for row, text in enumerate(self.texts))
            csv.writer(file).writerows([("id", "text", self.column), *rows])
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
        """Run `semsearch publish`, `rollback` or `remove`, and note when it switched the pointer."""
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
            searched = self.texts
            if self.removed and order.random() < 0.5:
                searched = [self.texts[row] for row in self.removed]
            words = order.choice(searched).split()[:5]
            status, version, content = self.places[place]({"text": " ".join(words)}, KEYS[key])
            hits = []
            if status == "200":
                hits = [(int(result["id"]), result["text"]) for result in json.loads(content)["results"]]
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
        return {reply.version for reply in replies} - {""} == {self.switches[-1][1]}

    def failure_of(self, reply: Reply) -> str:
        """Return what was wrong with a reply, "" if nothing was."""
        is_revoked = reply.key == "team-b" and reply.until > self.revoked_at
        if is_revoked and reply.status == "401":
            return ""
        if reply.status == "503":
            return f"503 for {reply.key}"
        if reply.status != "200":
            return reply.status
        if is_revoked and reply.at > self.revoked_at + REVOKED_WITHIN:
            return "200 for a revoked key"
        if reply.at > self.removed_at and any(row in self.removed for row, _ in reply.hits):
            return "200 with a removed text"
        replaced = reply.at - self.age_of(reply)
        if any(replaced < at <= reply.at for at in self.followed):
            return "200 from a version that all had left"
        if reply.key == "team-c" and any(SHELVES[row % 2] != FILTER["shelf"] for row, _ in reply.hits):
            return "200 with a text that the key must not find"
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


# Each of these lets something happen when the texts of a night are indexed, and yields the failures that callers see by
# design until all have followed again. The part behind its `yield` runs some seconds after the publish, and repairs it.
Incident = Callable[[Operation, str], Iterator[set[str]]]


def remove_texts(operation: Operation, version: str) -> Iterator[set[str]]:
    """Remove texts. The later tables still have their rows, so that only the removal keeps them from callers."""
    yield set()
    operation.removed = operation.order.sample(range(len(operation.texts)), REMOVED)
    operation.switch("remove", URL, *operation.removed)
    gone = set(operation.removed)
    operation.wait_until(lambda replies: not gone & {row for reply in replies for row, _ in reply.hits})
    time.sleep(SECONDS_OF_A_DAY)  # the last replies may all be from one of two workers
    operation.removed_at = time.time()


def kill_workers(operation: Operation, version: str, fault: Fault | None, by_design: set[str]) -> Iterator[set[str]]:
    """Kill workers while S3 has this fault, if any, each shortly after the pointer has changed."""
    if fault is not None:
        operation.proxy.fail("", fault)
    yield CUT | by_design
    for _ in range(DEATHS):
        operation.switch("rollback", URL)
        time.sleep(operation.order.uniform(0.0, 2.0))  # a poll each second, and what it fetches
        for server in operation.servers:
            os.kill(children(server.process)[0], signal.SIGKILL)  # the one that has lived longest
        time.sleep(SECONDS_BETWEEN_DEATHS)
    operation.proxy.faults.clear()


def bad_bundle(operation: Operation, version: str) -> Iterator[set[str]]:
    """Index with another model; roll back, and replace the function that started meanwhile with that model."""
    operation.index("--query-prompt", "query: ")
    operation.options = ["--other-model"]
    yield set()
    operation.options = []
    operation.switch("rollback", URL)
    time.sleep(SECONDS_OF_A_FAULT)
    for function in operation.functions:
        function.is_old = True


def roll_back(operation: Operation, version: str) -> Iterator[set[str]]:
    """Roll back when all have the new texts."""
    yield set()
    operation.wait_until(operation.has_followed)
    operation.switch("rollback", URL)


def revoke_key(operation: Operation, version: str) -> Iterator[set[str]]:
    """Revoke a key, and wait until all refuse it."""
    yield set()
    operation.revoked_at = time.time()
    operation.revoke()
    refused = {("team-a", "200"), ("team-b", "401"), ("team-c", "200")}
    operation.wait_until(lambda replies: {(reply.key, reply.status) for reply in replies} == refused)


def stop_s3(operation: Operation, version: str, fault: Fault) -> Iterator[set[str]]:
    """Let S3 refuse all requests of the functions and of the servers."""
    operation.proxy.fail("", fault)
    yield AWAY
    operation.proxy.faults.clear()


def lose_pointer(operation: Operation, version: str) -> Iterator[set[str]]:
    """Delete the pointer before the publish, which must refuse; roll back to the version that was current."""
    operation.s3.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/current.json")
    try:
        operation.publish()
    except subprocess.CalledProcessError:
        time.sleep(SECONDS_OF_A_FAULT)
    else:
        raise SystemExit("`semsearch publish` did not notice that the pointer is lost")
    operation.switch("rollback", URL, operation.switches[-1][1])
    yield set()


def rename_column(operation: Operation, version: str) -> Iterator[set[str]]:
    """Rename the column that the filter of a key needs; roll back."""
    operation.column = "room"
    operation.index("--update", URL)
    yield {"503 for team-c"}
    operation.column = "shelf"
    operation.switch("rollback", URL)


def fill_disk(operation: Operation, version: str) -> Iterator[set[str]]:
    """Leave the server no room for new texts."""
    ballast = fill(operation.work / "server")
    yield set()
    ballast.unlink()


def send_queue_event(operation: Operation, version: str) -> Iterator[set[str]]:
    """Send each function the event of a queue, which it must not confirm."""
    yield set()
    for function in operation.functions:
        reply = function.invoke(SQS_EVENT)
        if reply is None or reply.get("errorType") != "QueueError":
            raise SystemExit(f"expected an exception that keeps the messages of a queue, found {reply}")


def damage_file(operation: Operation, version: str) -> Iterator[set[str]]:
    """Damage a file in S3 before it becomes current; roll back, delete the file and publish again."""
    name = "passages.safetensors"
    content = bytearray((operation.work / "bundle" / name).read_bytes())
    whole = {"sha256": sha256(content).hexdigest()}  # with it, `publish` does not send the file again
    content[len(content) // 2] ^= 1
    key = f"{PREFIX}/bundles/{version}/{name}"
    operation.s3.put_object(Bucket=BUCKET, Key=key, Body=bytes(content), Metadata=whole)
    yield AWAY
    operation.switch("rollback", URL)
    operation.s3.delete_object(Bucket=BUCKET, Key=key)
    operation.publish()


def hang_up(operation: Operation, version: str) -> Iterator[set[str]]:
    """Send SIGHUP to the servers, as a session that ends or `systemctl reload` does."""
    yield set()
    for server in operation.servers:
        os.kill(server.process, signal.SIGHUP)


def fill_connections(operation: Operation, version: str) -> Iterator[set[str]]:
    """Open more connections to the servers than they accept, send nothing, and wait until callers get replies."""
    yield set()
    with ExitStack() as stack:
        for server in operation.servers:
            for _ in range(round(SILENT * CONNECTIONS * server.workers)):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        operation.wait_until(operation.has_followed)


OVERLOADED, DENIED = refuse(503, "SlowDown"), refuse(403, "AccessDenied")
INCIDENTS: dict[int, tuple[str, Incident]] = {
    2: (f"{REMOVED} texts are removed", remove_texts),
    4: ("workers are killed", partial(kill_workers, fault=None, by_design=set())),
    5: ("a bundle of another model; rolled back", bad_bundle),
    7: ("workers are killed, S3 is slow", partial(kill_workers, fault=delay(SLOW), by_design=set())),
    9: ("all follow; rolled back", roll_back),
    11: ("workers are killed, S3 answers nothing", partial(kill_workers, fault=delay(WAIT), by_design=AWAY)),
    13: ("a key is revoked", revoke_key),
    15: ("workers are killed, S3 answers 503", partial(kill_workers, fault=OVERLOADED, by_design=AWAY)),
    17: ("S3 answers 503", partial(stop_s3, fault=OVERLOADED)),
    18: ("workers are killed, S3 answers 403", partial(kill_workers, fault=DENIED, by_design=AWAY)),
    19: ("S3 answers 403", partial(stop_s3, fault=DENIED)),
    20: ("`current.json` is lost; rolled back", lose_pointer),
    21: ("the server's disk is full", fill_disk),
    22: ("the column of a key's filter is renamed; rolled back", rename_column),
    24: ("functions get the event of a queue", send_queue_event),
    25: ("a file is damaged in S3; rolled back", damage_file),
    27: ("the servers get SIGHUP", hang_up),
    28: ("silent connections to the servers", fill_connections),
}


def month(*, work: Path = WORK, data: Path = DATA) -> None:
    """What callers see in 30 nights of new texts, 18 of them with an incident."""
    folder = work.absolute() / "month"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts = read_texts(data, ROWS)
    with ExitStack() as stack:
        stack.enter_context(small_disk(folder / "server"))
        endpoint = stack.enter_context(aws_on_this_machine())
        os.environ.update(AWS | {"AWS_ENDPOINT_URL": endpoint, "PYTHONPATH": str(PROJECT)})
        operation = start(folder, texts.texts, endpoint, stack)
        is_over = threading.Event()
        for place in (*operation.places, "server"):  # it has two workers
            caller = threading.Thread(target=operation.call, args=(place, is_over))
            stack.callback(caller.join)
            caller.start()
        stack.callback(is_over.set)
        nights = {number: pass_night(operation, number) for number in range(1, NIGHTS + 1)}
    ordinary = [night for night in nights.values() if night["title"] == NO_INCIDENT]
    special = [row([night]) for night in nights.values() if night not in ordinary]
    rows = [row(list(nights.values())), row(ordinary), *special]
    report("month", COLUMNS, rows, {"nights": nights}, make_provenance(texts.description()))


def start(work: Path, texts: Sequence[str], endpoint: str, stack: ExitStack) -> Operation:
    """Publish the texts, start the functions and the servers, and return the operation."""
    s3, secrets = boto3.client("s3"), boto3.client("secretsmanager")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    entries = {name: f"{name}:{sha256(key.encode()).hexdigest()}" for name, key in KEYS.items()}
    entries["team-c"] += f":{encode_filter(FILTER)}"
    arn = secrets.create_secret(Name="keys", SecretString=" ".join(entries.values()))["ARN"]
    operation = Operation(work, list(texts), s3, stack.enter_context(Proxy(endpoint)))
    left = " ".join(entries[name] for name in KEYS if name != "team-b")
    operation.revoke = partial(secrets.put_secret_value, SecretId="keys", SecretString=left)
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
    for name, workers in SERVERS.items():
        port = free_port()
        command = [sys.executable, "-m", "semsearch", "serve", "--workers", workers, "--port", port]
        command += ["--max-connections", CONNECTIONS]
        server = ServerCommand(port, command, {}, environment=variables | {"TMPDIR": str(work / name)})
        process = stack.enter_context(running(server, work / f"{name}.log"))
        operation.servers.append(Server(process, port, workers))
        operation.places[name] = partial(send_to_server, port)
    return operation


def pass_night(operation: Operation, number: int) -> dict[str, Any]:
    """Let a night and its day pass; return what callers saw, ages in seconds and memory in megabytes."""
    before = len(operation.replies)
    version = operation.index_changes()
    title, incident = INCIDENTS.get(number, (NO_INCIDENT, None))
    repairing = incident(operation, version) if incident is not None else iter(())
    by_design = next(repairing, set[str]())
    operation.publish()
    if incident is not None:
        time.sleep(SECONDS_OF_A_FAULT)
    next(repairing, None)
    operation.wait_until(operation.has_followed)
    time.sleep(SECONDS_OF_A_DAY)
    operation.followed.append(time.time())
    seen = operation.replies[before:]
    revoked = [reply.at - operation.revoked_at for reply in seen if (reply.key, reply.status) == ("team-b", "200")]
    failures = Counter(failure for reply in seen if (failure := operation.failure_of(reply)))
    night = {
        "title": title,
        "number": number,
        "requests": len(seen),
        "by_design": {failure: count for failure, count in failures.items() if failure in by_design},
        "failures": {failure: count for failure, count in failures.items() if failure not in by_design},
        "oldest": max(map(operation.age_of, seen)),
        "slowest": max(reply.until - reply.at for reply in seen if reply.place in SERVERS),
        "revoked_within": max(0.0, *revoked) if incident is revoke_key else 0.0,
        "server": proportional_megabytes(operation.servers[0].process),
        "function": max(proportional_megabytes(each.process.pid) for each in operation.functions if each.process),
    }
    print(f"night {number}: {night}", flush=True)
    return night


def row(nights: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of one night, of the ordinary nights, or of all."""
    titles = {night["title"] for night in nights}
    failures = []
    for kind in ("by_design", "failures"):
        counts = sum((Counter(night[kind]) for night in nights), Counter[str]())
        failures.append(", ".join(f"{count} x {failure}" for failure, count in counts.items()) or "0")
    ranges = []
    for place in ("server", "function"):
        megabytes = [round(night[place]) for night in nights]
        ranges.append(" to ".join(map(str, dict.fromkeys((min(megabytes), max(megabytes))))) + " MB")
    return (
        str(nights[0]["number"]) if len(nights) == 1 else f"{len(nights)} nights",
        titles.pop() if len(titles) == 1 else "all",
        f"{sum(night['requests'] for night in nights):,}",
        *failures,
        f"{max(night['oldest'] for night in nights):.1f} s",
        *ranges,
    )
