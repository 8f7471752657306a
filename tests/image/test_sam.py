"""`sam build`, `sam local invoke` and `sam local start-api`, as people use them: the answers are those of the app.

SAM exits 0 whatever the function did, so what it printed is what counts.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cfnlint.decode import cfn_yaml

from tests.image.docker import docker, run
from tests.image.sources import REQUESTS, STATUS
from tests.project import ROOT

TEMPLATE = ROOT / "template.yaml"
GATEWAY = ("no route", "another method")  # refused before the function is asked
ASKED = [name for name in REQUESTS if name not in GATEWAY]
RELEASE = "1a2b3c4"


@pytest.fixture(scope="module")
def sam() -> Iterator[Callable[..., str]]:
    """Return a function that runs sam, without a request to AWS, and returns its standard output."""
    if shutil.which("sam") is None:
        pytest.skip("there is no sam command on this machine; pip install aws-sam-cli brings it")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        yield lambda *arguments: run("sam", *arguments)


SETTINGS = {
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",  # otherwise sam looks for credentials there
    "SAM_CLI_TELEMETRY": "0",
}


@pytest.fixture(scope="module")
def built(sam: Callable[..., str], image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built template; the image's layers are those that `make image` left."""
    folder = tmp_path_factory.mktemp("sam")
    overrides = ("--parameter-overrides", f"Release={RELEASE}")
    printed = sam("build", "--template", str(TEMPLATE), "--build-dir", str(folder), *overrides)
    assert "Build Succeeded" in printed
    return folder / "template.yaml"


def test_the_template_is_valid(sam: Callable[..., str]) -> None:
    assert "is a valid SAM Template" in sam("validate", "--lint", "--template", str(TEMPLATE))


def test_the_image_tells_its_processor_and_the_release_that_sam_was_told(built: Path) -> None:
    image = cfn_yaml.load(str(built))["Resources"]["Function"]["Properties"]["ImageUri"]
    found = json.loads(docker("image", "inspect", "--format", "{{json .}}", image))
    assert found["Architecture"] == "amd64"
    assert found["Config"]["Labels"]["org.opencontainers.image.revision"] == RELEASE


def test_an_event_is_answered_as_outside(sam: Callable[..., str], built: Path, answer: Callable[[Any], Any]) -> None:
    path = ROOT / "deploy" / "events" / "http-api.json"
    found = json.loads(sam("local", "invoke", "--template", str(built), "--event", str(path)))
    (wanted,) = answer([json.loads(path.read_text(encoding="utf-8"))])
    assert found["statusCode"] == wanted["statusCode"] == 200
    assert found["body"] == wanted["body"]


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def api_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file to which `sam local start-api` prints, the function's lines among its own."""
    return tmp_path_factory.mktemp("api") / "log"


@pytest.fixture(scope="module")
def api(built: Path, api_log: Path) -> Iterator[str]:
    """The URL of `sam local start-api`, which keeps one container for all requests."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = ["sam", "local", "start-api", "--template", str(built), "--port", str(port), "--warm-containers", "LAZY"]
    with api_log.open("w") as file:
        process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=file, env=os.environ)
    try:
        while not listens(port):
            assert process.poll() is None, api_log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def send(url: str, method: str, body: str | None) -> tuple[int, str, str]:
    """Ask with httpx; return status, content type and body."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        reply = client.request(method, url, content=body, headers={"content-type": "application/json"})
    return reply.status_code, reply.headers["content-type"], reply.text


@pytest.mark.parametrize("name", ASKED)
def test_a_request_is_answered_as_outside(
    api: str,
    expected: dict[tuple[str, str], dict[str, Any]],
    comparable: Callable[[str], object],
    name: str,
) -> None:
    method, path, body = REQUESTS[name]
    status, content_type, text = send(api + path, method, body)
    wanted = expected["http-api", name]
    assert status == wanted["statusCode"] == STATUS[name]
    assert content_type == wanted["headers"]["content-type"]
    assert comparable(text) == comparable(wanted["body"])
