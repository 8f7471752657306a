"""S3 on this machine, a publisher, and a server of what it publishes: each a process of its own.

S3 is moto's server. It and the publisher are other machines in truth, so here they run with the lowest priority.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from bench.folders import PROJECT
from bench.needs import Missing

WHERE = "s3://bench/search"
KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_REGION": "eu-central-1"}
LAST = ("nice", "-n", "19")  # before a command
STARTS_WITHIN = 60.0  # seconds
STORAGE = """
import threading
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
threading.Event().wait()
"""


@contextmanager
def storage(log: int) -> Iterator[dict[str, str]]:
    """Run S3 with an empty bucket, and yield an environment that leads there. log is an open file."""
    if find_spec("moto") is None or find_spec("boto3") is None:
        raise Missing("moto or boto3 is not installed; install them: pip install 'moto[server,s3]' boto3")
    import boto3

    command = [*LAST, sys.executable, "-c", STORAGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
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
            yield os.environ | KEYS | {"AWS_ENDPOINT_URL_S3": endpoint}
        finally:
            process.kill()


def publish(environment: dict[str, str], bundle: Path) -> None:
    """Publish a bundle as users do. Raises CalledProcessError if that fails."""
    export(environment, "publish", bundle, WHERE)


def export(environment: dict[str, str], *words: str | Path) -> None:
    """Run a command of the export. Raises CalledProcessError if it fails."""
    command = [*LAST, sys.executable, "-m", "export", *map(str, words)]
    subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True)


def digest_of(bundle: Path) -> str:
    """Return the version that a bundle has when it is published."""
    from function.engine.bundle import MANIFEST, describe_file

    return describe_file(bundle / MANIFEST).sha256


def version_of(bundle: Path) -> str:
    """Return what the header x-bundle says of a bundle."""
    return digest_of(bundle)[:12]


@contextmanager
def server(environment: dict[str, str], poll_seconds: int, log: int, output: Path) -> Iterator[str]:
    """Run this project's server over what is published, and yield its address. output gets what it prints."""
    command = [sys.executable, "-m", "function", "--port", "0", "--workers", "1"]
    own = environment | {"BUNDLE_DIR": WHERE, "BUNDLE_POLL_SECONDS": str(poll_seconds)}
    with (
        output.open("w") as written,
        subprocess.Popen(command, cwd=PROJECT, env=own, stdout=log, stderr=written) as process,
    ):
        end = time.monotonic() + STARTS_WITHIN
        while "running on " not in (printed := output.read_text()):
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise SystemExit(f"the server did not start; {output} has what it printed")
            time.sleep(0.05)
        try:
            yield printed.partition("running on ")[2].split()[0]
        finally:
            process.terminate()
