"""A month of operation in minutes: 30 nights of new texts, six of them with a fault, and what callers saw.

Each night 1 % of the texts change, and are indexed and published as in deploy/nightly.yaml. A server and three
functions follow while they answer. As in Lambda, a function is stopped between requests, and each night a new one
replaces one of them, when the new texts are current. AWS is moto's servers on this machine. Nothing here is a
measurement of speed.
"""

import argparse
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
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bench.emulator import free_port
from bench.report import PROJECT, console, make_provenance, report
from bench.serve import ServerCommand, proportional_megabytes, running
from bench.texts import add_data_argument, read_texts

BUCKET, PREFIX, REGION = "month", "search", "eu-central-1"
URL = f"s3://{BUCKET}/{PREFIX}"
AWS = {"AWS_ACCESS_KEY_ID": "month", "AWS_SECRET_ACCESS_KEY": "month", "AWS_DEFAULT_REGION": REGION}
KEYS = {"team-a": "a" * 32, "team-b": "b" * 32}  # the key of team-b is revoked
FUNCTIONS = 3
CHANGED = 0.01  # share of the texts that change in a night
SECONDS_OF_A_FAULT = 6.0  # until it passes, or the operator repairs it
SECONDS_OF_A_DAY = 2.0  # after all have followed
FOLLOW_WITHIN = 90.0  # maximum seconds until all answer from the current version
REVOKED_WITHIN = 65.0  # maximum seconds that a revoked key is accepted: keys are read again each minute
PAUSE = 0.1  # seconds between two requests of a caller
AGREEING = 10  # number of last replies that show what a place serves; the server has two workers
SEED = 13
COLUMNS = ("nights", "what happened", "requests", "failures", "oldest texts", "server", "largest function")

Send = Callable[[dict[str, Any], str], Any]  # takes a body and a key; returns status, version and reply


class Reply(NamedTuple):
    """What a caller saw: the times of request and reply, the status, the version, and the texts by row."""

    at: float
    until: float
    place: str
    key: str
    status: str
    version: str
    hits: list[tuple[int, str]]


class Month:
    """What the operator does, and what callers see at each place: the functions and the server."""

    def __init__(self, work: Path, texts: Sequence[str], s3: Any, proxy: Any) -> None:
        """Publish nothing yet."""
        self.work, self.texts, self.s3, self.proxy = work, list(texts), s3, proxy
        self.order = random.Random(SEED)
        self.published: dict[str, list[str]] = {}  # the texts of each version
        self.switches: list[tuple[float, str]] = []  # when each version became current
        self.functions: list[Any] = []
        self.places: dict[str, Send] = {}
        self.replies: list[Reply] = []
        self.revoke: Callable[[], object] = lambda: None
        self.revoked_at = float("inf")

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
        self.switch("publish", self.work / "bundle", URL)
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
            if at > self.revoked_at + 2 * REVOKED_WITHIN:
                key = "team-a"
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
                found = [Counter((reply.status, reply.version) for reply in replies) for replies in last]
                raise SystemExit(f"not all followed within {FOLLOW_WITHIN:.0f} s: {found}; {self.work} has the logs")

    def wait_until_followed(self) -> None:
        """Wait until all answer from the current version."""
        self.wait_until(lambda replies: {reply.version for reply in replies} <= {self.switches[-1][1], ""})

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


def publish_changes(month: Month) -> None:
    """Publish new texts, and do nothing else."""
    month.index_changes()
    month.publish()


def publish_bad_bundle(month: Month) -> None:
    """Publish a bundle of another model, roll back, and replace the function that started meanwhile with that model."""
    month.index("--query-prompt", "query: ")
    month.publish()
    time.sleep(SECONDS_OF_A_FAULT)
    month.switch("rollback", URL)
    time.sleep(SECONDS_OF_A_FAULT)
    for function in month.functions:
        function.is_old = True


def roll_back(month: Month) -> None:
    """Roll back when all have the new texts."""
    publish_changes(month)
    month.wait_until_followed()
    month.switch("rollback", URL)


def revoke_key(month: Month) -> None:
    """Revoke a key, and wait until all refuse it."""
    publish_changes(month)
    month.revoked_at = time.time()
    month.revoke()
    refused = {("team-a", "200"), ("team-b", "401")}
    month.wait_until(lambda replies: {(reply.key, reply.status) for reply in replies} == refused)


def stop_s3(month: Month) -> None:
    """Let S3 refuse all requests of the functions and of the server."""
    from tests.stand_ins.faults import refuse

    month.index_changes()
    month.proxy.fail("", refuse(503, "SlowDown"))
    month.publish()
    time.sleep(SECONDS_OF_A_FAULT)
    month.proxy.faults.clear()


def fill_disk(month: Month) -> None:
    """Leave the server no room for new texts."""
    from tests.stand_ins.deployment import fill

    month.index_changes()
    ballast = fill(month.work / "disk")
    month.publish()
    time.sleep(SECONDS_OF_A_FAULT)
    ballast.unlink()


def damage_file(month: Month) -> None:
    """Damage a file in S3 before it becomes current; roll back, delete the file and publish again."""
    version, name = month.index_changes(), "passages.safetensors"
    content = bytearray((month.work / "bundle" / name).read_bytes())
    content[len(content) // 2] ^= 1
    key = f"{PREFIX}/bundles/{version}/{name}"
    month.s3.put_object(Bucket=BUCKET, Key=key, Body=bytes(content))  # `publish` finds it there
    month.publish()
    time.sleep(SECONDS_OF_A_FAULT)
    month.switch("rollback", URL)
    month.s3.delete_object(Bucket=BUCKET, Key=key)
    month.publish()


NIGHTS = dict.fromkeys(range(1, 31), ("new texts, no fault", publish_changes)) | {
    5: ("a bundle of another model; rolled back", publish_bad_bundle),
    9: ("all follow; rolled back", roll_back),
    13: ("a key is revoked", revoke_key),
    17: ("S3 answers 503", stop_s3),
    21: ("the server's disk is full", fill_disk),
    25: ("a file is damaged in S3; rolled back", damage_file),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=1_000, help="texts in the index")


def run(options: argparse.Namespace) -> int:
    """Let the month pass, and report."""
    from tests.stand_ins.deployment import aws_on_this_machine, small_disk

    work = options.work.absolute() / "month"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    texts = read_texts(options.data, options.rows)
    with ExitStack() as stack:
        stack.enter_context(small_disk(work / "disk"))
        endpoint = stack.enter_context(aws_on_this_machine())
        os.environ.update(AWS | {"AWS_ENDPOINT_URL": endpoint, "PYTHONPATH": str(PROJECT)})
        month, server = start(work, texts.texts, endpoint, stack)
        is_over = threading.Event()
        callers = [threading.Thread(target=month.call, args=(place, is_over)) for place in (*month.places, "server")]
        for caller in callers:
            stack.callback(caller.join)
            caller.start()
        stack.callback(is_over.set)
        nights = [pass_night(month, number, server) for number in NIGHTS]
    ordinary = [night for night in nights if night["happen"] == publish_changes.__name__]
    special = [night for night in nights if night not in ordinary]
    rows = [row(ordinary), *(row([night]) for night in special), row(nights)]
    details = {str(night["number"]): night for night in nights}
    report("month", COLUMNS, rows, {"nights": details}, make_provenance(texts.description()), by_class=False)
    return 0


def start(work: Path, texts: Sequence[str], endpoint: str, stack: ExitStack) -> tuple[Month, int]:
    """Publish the texts, and start the functions and the server; return the month and the server's process id."""
    import boto3

    from tests.stand_ins.deployment import Environment, send_to_server
    from tests.stand_ins.faults import Proxy

    proxy = stack.enter_context(Proxy(endpoint))
    s3, secrets = boto3.client("s3"), boto3.client("secretsmanager")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    entries = {name: f"{name}:{sha256(key.encode()).hexdigest()}" for name, key in KEYS.items()}
    arn = secrets.create_secret(Name="keys", SecretString=" ".join(entries.values()))["ARN"]
    month = Month(work, texts, s3, proxy)
    month.revoke = partial(secrets.put_secret_value, SecretId="keys", SecretString=entries["team-a"])
    month.index()
    month.publish()
    shutil.copytree(work / "bundle", work / "image")  # functions take its model
    variables = {"BUNDLE_DIR": URL, "BUNDLE_POLL_SECONDS": "1", "API_KEYS_ARN": arn, "PYTHONPATH": str(PROJECT)}
    variables["AWS_ENDPOINT_URL_S3"] = proxy.address
    for number in range(FUNCTIONS):
        own = {"AWS_LAMBDA_FUNCTION_NAME": "month", "LOCAL_BUNDLE_DIR": str(work / "image")}
        own["TMPDIR"] = str(work / f"disk-{number}")
        month.functions.append(Environment(variables | own, work / f"function-{number}.log"))
        month.places[f"function {number}"] = month.functions[-1].send
        stack.callback(month.functions[-1].stop)
    port = free_port()
    command = [sys.executable, "-m", "semsearch", "serve", "--workers", 2, "--port", port]
    server = ServerCommand(port, command, {}, environment=variables | {"TMPDIR": str(work / "disk")})
    month.places["server"] = partial(send_to_server, port)
    return month, stack.enter_context(running(server, work / "server.log"))


def pass_night(month: Month, number: int, server: int) -> dict[str, Any]:
    """Let a night and its day pass; return what callers saw, ages in seconds and memory in megabytes."""
    before = len(month.replies)
    title, happen = NIGHTS[number]
    happen(month)
    month.wait_until_followed()
    time.sleep(SECONDS_OF_A_DAY)
    seen = month.replies[before:]
    revoked = [reply.at - month.revoked_at for reply in seen if (reply.key, reply.status) == ("team-b", "200")]
    night = {
        "number": number,
        "title": title,
        "happen": happen.__name__,
        "requests": len(seen),
        "failures": Counter(failure for reply in seen if (failure := month.failure_of(reply))),
        "oldest": max(map(month.age_of, seen)),
        "revoked_within": max(0.0, *revoked) if happen is revoke_key else 0.0,
        "server": proportional_megabytes(server),
        "function": max(proportional_megabytes(each.process.pid) for each in month.functions if each.process),
    }
    console.print(f"night {number}: {night}")
    return night


def row(nights: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return the cells of one night, of the ordinary nights, or of all."""
    titles = {night["title"] for night in nights}
    name = str(nights[0]["number"]) if len(nights) == 1 else f"{len(nights)} nights"
    failures: Counter[str] = Counter()
    for night in nights:
        failures.update(night["failures"])
    cells = [name, titles.pop() if len(titles) == 1 else "all", f"{sum(night['requests'] for night in nights):,}"]
    cells.append(", ".join(f"{count} x {failure}" for failure, count in failures.items()) or "0")
    cells.append(f"{max(night['oldest'] for night in nights):.1f} s")
    for place in ("server", "function"):
        megabytes = sorted(round(night[place]) for night in nights)
        cells.append(f"{megabytes[0]} MB" if len(nights) == 1 else f"{megabytes[0]} to {megabytes[-1]} MB")
    return tuple(cells)
