"""A function whose bundle is in S3: its start, its switches, and what it does on a bad day."""

import gc
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from export.publishing.store import Store
from function import server
from function.app import create_app
from function.aws.endpoint import Endpoint
from function.engine.bundle import MANIFEST, BundleError, ModelInfo, read_manifest
from function.engine.embedder import Embedder
from function.s3 import fetch as fetching
from function.s3 import folders, objects
from function.s3.switch import Switch
from function.settings import Settings
from function.startup import ColdStart
from tests.conftest import InProcess
from tests.publishing.faults import Fault, Proxy, change, cut, dawdle, refuse, shorten

Publish = Callable[[Path], str]
Start = Callable[..., tuple[Switch, httpx.Client]]
NOWHERE = Path("/nowhere")
ROOT = Path(__file__).parents[2]
START_AND_END = """
import os
from pathlib import Path
from function.s3.switch import Switch
switch = Switch(os.environ["URL"], Path("/nowhere"), 60, os.environ, by_requests=False)
switch.fetch()
bundle = switch.load()
print((bundle.folder / "manifest.json").is_file())
"""
FAULTS: dict[str, tuple[Fault, str]] = {
    "cut": (cut, "ended after"),
    "503": (refuse(503, "SlowDown"), "503 SlowDown"),
    "slow": (dawdle, "timed out"),
    "short": (shorten, "ended after|end of message|bytes"),
    "forbidden": (refuse(403, "AccessDenied"), "403 AccessDenied; publish a bundle there, or allow s3:GetObject"),
    "gone": (refuse(404, "NoSuchKey"), "404 NoSuchKey; publish a bundle there"),
}
WRONG: dict[str, tuple[Fault, str]] = {"wrong bytes": (change, "is damaged: SHA-256")}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PAUSE", 0.0)


@pytest.fixture
def start(url: str, environment: dict[str, str]) -> Start:
    """Return what starts a function from S3, and a client of it. Requests do not start polls: the tests do."""

    def started(local: Path = NOWHERE, *, by_requests: bool = False, seconds: float = 0.0) -> Any:
        switch = Switch(url, local, seconds, environment, by_requests)
        switch.fetch()
        bundle = switch.load()
        cold_start = ColdStart(lambda phases: None)
        cold_start.end({})
        app = create_app(bundle, Settings(), logging.getLogger("tests"), cold_start, switch=switch)
        return switch, httpx.Client(transport=InProcess(app), base_url="http://tests")

    return started


def ask(client: httpx.Client, **fields: Any) -> tuple[str, str]:
    """Return the version that answered and the edition that the answer is from."""
    reply = client.post("/similar", json={"text": "angry goose", "num_results": 3} | fields)
    assert reply.status_code == 200, reply.text
    found = {"".join(re.findall(r"Edition \d", text["text"])) for text in reply.json()["results"]}
    assert len(found) == 1
    return reply.headers["x-bundle"], found.pop()


def left(environment: dict[str, str]) -> list[str]:
    """Return the names in the folder for what is fetched, apart from locks."""
    (folder,) = Path(environment["TMPDIR"]).iterdir()
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


def test_a_function_serves_the_bundle_that_the_pointer_names(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str]
) -> None:
    publish(bundles[0])
    version = publish(bundles[1])
    _, client = start()
    assert ask(client) == (version[:12], "Edition 1")
    (folder,) = left(environment)
    fetched = next(Path(environment["TMPDIR"]).iterdir()) / folder
    assert {path.name: path.read_bytes() for path in fetched.iterdir()} == {
        path.name: path.read_bytes() for path in bundles[1].iterdir()
    }
    shown = client.get("/info").json()["bundle"]
    assert (shown["version"], shown["switches"], shown["error"]) == (version, 0, None)


def test_files_come_in_parts_that_are_put_together(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PART", 1000)
    publish(bundle)
    _, client = start()
    ask(client)
    size = (bundle / "index.safetensors").stat().st_size
    ranges = [asked for path, asked, _ in proxy.asked if path.endswith("index.safetensors")]
    assert sorted(ranges, key=lambda found: int(str(found)[6:].split("-")[0])) == [
        f"bytes={begin}-{min(begin + 1000, size) - 1}" for begin in range(0, size, 1000)
    ]


def test_a_model_that_is_here_already_is_not_fetched(
    start: Start, publish: Publish, bundles: list[Path], proxy: Proxy
) -> None:
    publish(bundles[1])
    _, client = start(bundles[0])
    assert ask(client)[1] == "Edition 1"
    fetched = {path.rpartition("/")[2] for path, _, _ in proxy.asked}
    assert "index.safetensors" in fetched
    assert not {"model.ort", "tokenizer.txt"} & fetched


def test_a_model_that_opens_slowly_is_open_before_its_folder_is_renamed(
    start: Start, publish: Publish, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    opened = []
    open_now = Embedder.open

    def open_late(folder: Path, model: ModelInfo) -> Embedder:
        time.sleep(0.3)  # the rest is fetched meanwhile
        opened.append(folder)
        return open_now(folder, model)

    monkeypatch.setattr(Embedder, "open", open_late)
    _, client = start()
    assert ask(client)[1] == ""
    assert [folder.suffix for folder in opened] == [".part"]


def test_a_poll_switches_to_a_newer_bundle_and_back_and_removes_the_older(
    start: Start, publish: Publish, store: Store, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start()
    versions.append(publish(bundles[1]))
    assert ask(client)[0] == versions[0][:12]
    switch.poll()
    assert ask(client) == (versions[1][:12], "Edition 1")
    assert ask(client, mode="hybrid") == (versions[1][:12], "Edition 1")
    assert ask(client, filter={"chapter": 15})[0] == versions[1][:12]
    assert left(environment) == [versions[1]]
    store.switch(versions[0], store.pointer())
    switch.poll()
    assert ask(client) == (versions[0][:12], "")
    assert left(environment) == [versions[0]]
    assert [path for path, _, _ in proxy.asked].count(
        f"/{'/'.join(store.url.split('/')[2:])}/bundles/{versions[1]}/model.ort"
    ) == 0
    assert switch.status.switches == 2


def test_a_pointer_that_has_not_changed_costs_one_conditional_request(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy
) -> None:
    publish(bundle)
    switch, _ = start()
    proxy.asked.clear()
    switch.poll()
    ((path, _, condition),) = proxy.asked
    assert path.endswith("/current.json")
    assert condition


def test_the_files_of_ended_requests_make_room_before_the_next_bundle_is_fetched(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [publish(bundles[0])]
    switch, _ = start()
    of_request = switch.served
    versions.append(publish(bundles[1]))
    switch.poll()
    assert left(environment) == sorted(versions)
    del of_request
    publish(bundles[2])
    there: list[list[str]] = []
    usage = shutil.disk_usage("/tmp")

    def look(path: Path) -> object:
        there.append(left(environment))
        return usage

    monkeypatch.setattr(shutil, "disk_usage", look)
    switch.poll()
    assert versions[0] not in there[0]
    assert versions[1] in there[0]


def test_no_connection_stays_open_between_polls(
    start: Start, publish: Publish, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    switch, _ = start()
    connections = []
    connect = Endpoint.connect

    def remember(endpoint: Endpoint, seconds: float) -> HTTPConnection:
        connections.append(connect(endpoint, seconds))
        return connections[-1]

    monkeypatch.setattr(Endpoint, "connect", remember)
    switch.poll()
    switch.poll()
    assert [connection.sock for connection in connections] == [None, None]


def test_a_request_that_has_begun_ends_with_the_bundle_it_began_with(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start()
    versions.append(publish(bundles[1]))
    execution = switch._execution
    assert execution is not None
    tokenize = execution.tokenize

    async def tokenize_and_switch(*arguments: Any, **options: Any) -> Any:
        found = await tokenize(*arguments, **options)
        switch.poll()
        return found

    monkeypatch.setattr(execution, "tokenize", tokenize_and_switch)
    # the keywords are opened late, from a folder that is not the current one any more
    assert ask(client, mode="hybrid", filter={"chapter": 15}) == (versions[0][:12], "")
    assert ask(client) == (versions[1][:12], "Edition 1")
    gc.collect()
    assert left(environment) == [versions[1]]


def test_a_request_whose_body_comes_after_a_switch_is_answered_by_the_bundle_it_began_with(
    start: Start, publish: Publish, bundles: list[Path]
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start()
    versions.append(publish(bundles[1]))
    app = client._transport.app  # type: ignore[attr-defined] # InProcess

    async def switch_before_the_body(scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_late() -> Message:
            switch.poll()
            return await receive()

        await app(scope, receive_late, send)

    late = httpx.Client(transport=InProcess(switch_before_the_body), base_url="http://tests")
    assert ask(late) == (versions[0][:12], "")
    assert switch.served.version == versions[1]
    assert ask(late) == (versions[1][:12], "Edition 1")


def test_requests_do_not_wait_for_a_switch(start: Start, publish: Publish, bundles: list[Path], proxy: Proxy) -> None:
    versions = [publish(bundles[0])]
    _, client = start(by_requests=True)
    versions.append(publish(bundles[1]))
    proxy.may_pass.clear()  # S3 does not answer
    for _ in range(3):
        assert ask(client)[0] == versions[0][:12]
    (poll,) = [thread for thread in threading.enumerate() if thread.name == "poll"]
    proxy.may_pass.set()
    poll.join(30)
    assert ask(client)[0] == versions[1][:12]


def test_no_poll_is_started_before_it_is_due(start: Start, publish: Publish, bundle: Path, proxy: Proxy) -> None:
    publish(bundle)
    _, client = start(by_requests=True, seconds=3600)
    proxy.asked.clear()
    ask(client)
    assert not proxy.asked
    assert not [thread for thread in threading.enumerate() if thread.name == "poll"]


@pytest.mark.parametrize("where", ["current.json", "manifest.json", "index.safetensors"])
@pytest.mark.parametrize(("fault", "message"), FAULTS.values(), ids=FAULTS)
def test_what_s3_does_wrong_is_told_and_the_old_bundle_serves_on(
    start: Start,
    publish: Publish,
    bundles: list[Path],
    environment: dict[str, str],
    proxy: Proxy,
    where: str,
    fault: Fault,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start()
    versions.append(publish(bundles[1]))
    if fault is dawdle:
        monkeypatch.setattr(objects, "TIMEOUT", 0.1)
    if where == "current.json" and fault is shorten:
        message = "publish a bundle there again"  # it is whole for all one knows
    elif where == "manifest.json" and fault is shorten:
        message = "is damaged, its SHA-256"
    proxy.fail(where, fault)
    switch.poll()
    assert switch.status.error is not None
    with pytest.raises(RuntimeError, match=message):
        raise RuntimeError(switch.status.error)
    assert client.get("/info").json()["bundle"]["error"] == switch.status.error
    assert ask(client) == (versions[0][:12], "")
    assert left(environment) == [versions[0]]


@pytest.mark.parametrize("fault", [cut, refuse(503, "SlowDown"), refuse(500, "InternalError")])
def test_what_goes_wrong_once_is_asked_for_again(
    start: Start, publish: Publish, bundles: list[Path], proxy: Proxy, fault: Fault
) -> None:
    publish(bundles[0])
    switch, client = start()
    version = publish(bundles[1])
    for where in ("current.json", "manifest.json", "index.safetensors"):
        proxy.fail(where, fault, times=2)
    switch.poll()
    assert switch.status.error is None
    assert ask(client)[0] == version[:12]


def test_after_a_failure_the_next_poll_switches(
    start: Start, publish: Publish, bundles: list[Path], proxy: Proxy
) -> None:
    publish(bundles[0])
    switch, client = start()
    version = publish(bundles[1])
    proxy.fail("index.safetensors", refuse(403, "AccessDenied"))
    switch.poll()
    assert switch.status.failures == 1
    proxy.faults.clear()
    switch.poll()
    assert switch.status.error is None
    assert ask(client)[0] == version[:12]


@pytest.mark.parametrize("name", ["manifest.json", "index.safetensors", "keywords.safetensors"])
def test_wrong_bytes_are_refused_once(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], proxy: Proxy, name: str
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start()
    publish(bundles[1])
    proxy.fail(name, change)
    switch.poll()
    assert f"{name}: is damaged" in str(switch.status.error) or f"{name} is damaged" in str(switch.status.error)
    assert ask(client)[0] == versions[0][:12]
    assert left(environment) == [versions[0]]
    proxy.asked.clear()
    switch.poll()
    assert len(proxy.asked) == 1
    assert switch.status.failures == 1
    assert switch.status.error


def test_a_pointer_to_nothing_is_refused(
    start: Start, publish: Publish, bundles: list[Path], store: Store, environment: dict[str, str]
) -> None:
    version = publish(bundles[0])
    switch, client = start()
    store.switch("ab" * 32, store.pointer())
    switch.poll()
    assert "NoSuchKey" in str(switch.status.error)
    assert ask(client)[0] == version[:12]
    assert left(environment) == [version]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 3}, "format_version is 3, this code reads 4"),
        ({"model": {"prompts": {"query": "query: "}}}, "model is tests/mean-of-words or was exported otherwise"),
        ({"index": None}, "holds a model and no texts"),
        ({"index": {"rows": 199}}, "rows of the index, rows of the passages and dim are"),
        ({"files": {"../x": {"bytes": 1, "sha256": "0" * 64}}}, "which is not a file's name"),
    ],
)
def test_a_bundle_that_this_function_cannot_serve_is_refused(
    start: Start,
    publish: Publish,
    bundle: Path,
    bundle_copy: Path,
    environment: dict[str, str],
    changes: dict[str, Any],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    version = publish(bundle)
    switch, client = start()
    fields = json.loads((bundle_copy / MANIFEST).read_text())
    for name, value in changes.items():
        fields[name] = fields[name] | value if isinstance(value, dict) else value
    (bundle_copy / MANIFEST).write_text(json.dumps(fields))
    # a publisher of another release would send it; this one refuses
    monkeypatch.setattr("export.publishing.store.open_bundle", lambda folder: read_manifest(bundle))
    publish(bundle_copy)
    switch.poll()
    assert message in str(switch.status.error)
    assert ask(client)[0] == version[:12]
    assert left(environment) == [version]
    switch.poll()
    assert switch.status.failures == 1  # it is not fetched again


def test_a_bundle_with_no_room_for_it_is_refused_until_there_is(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [publish(bundles[0])]
    switch, client = start()
    versions.append(publish(bundles[1]))
    usage = shutil.disk_usage("/tmp")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
        switch.poll()
    assert "MB to fetch" in str(switch.status.error)
    assert "give the function more ephemeral storage" in str(switch.status.error)
    assert ask(client)[0] == versions[0][:12]
    assert left(environment) == [versions[0]]
    switch.poll()
    assert ask(client)[0] == versions[1][:12]


def test_a_server_whose_bundle_cannot_be_fetched_ends_in_one_line(
    keys: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert server.main(["--bundle", "s3://bucket/prefix", "--port", "0", "--workers", "1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: s3://bucket/prefix/current.json: ")
    assert line.endswith(", 4 times; is 127.0.0.1:1 up?")


@pytest.mark.parametrize(("fault", "message"), (FAULTS | WRONG).values(), ids=FAULTS | WRONG)
def test_a_start_that_cannot_fetch_fails_and_leaves_nothing(
    start: Start,
    publish: Publish,
    bundle: Path,
    environment: dict[str, str],
    proxy: Proxy,
    fault: Fault,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault is dawdle:
        monkeypatch.setattr(objects, "TIMEOUT", 0.1)
    publish(bundle)
    proxy.fail("passages.safetensors", fault)
    with pytest.raises(BundleError, match=message):
        start()
    assert left(environment) == []


def test_two_processes_share_what_is_fetched_and_the_last_one_removes_it(
    start: Start, publish: Publish, bundles: list[Path], environment: dict[str, str], proxy: Proxy
) -> None:
    versions = [publish(bundles[0])]
    first, _ = start()
    proxy.asked.clear()
    second, client = start()
    assert [path.rpartition("/")[2] for path, _, _ in proxy.asked] == ["current.json"]
    versions.append(publish(bundles[1]))
    first.poll()
    assert left(environment) == sorted(versions)
    assert ask(client, mode="keyword")[0] == versions[0][:12]
    second.poll()
    gc.collect()
    assert left(environment) == [versions[1]]


def test_a_process_that_ends_removes_what_it_fetched(
    publish: Publish, bundle: Path, url: str, environment: dict[str, str]
) -> None:
    publish(bundle)
    variables = os.environ | environment | {"URL": url}
    done = subprocess.run(
        [sys.executable, "-c", START_AND_END], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
    (folder,) = Path(environment["TMPDIR"]).iterdir()
    assert list(folder.iterdir()) == []


def test_a_folder_of_others_is_not_used(environment: dict[str, str], tmp_path: Path) -> None:
    folder = folders.own_folder(environment)
    folder.chmod(0o777)
    with pytest.raises(BundleError, match="others may write there"):
        folders.own_folder(environment)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(BundleError, match="others may write there"):
        folders.own_folder(environment)


def test_every_reply_names_its_bundle(start: Start, publish: Publish, bundle: Path) -> None:
    version = publish(bundle)
    _, client = start()
    for reply in (client.get("/info"), client.get("/nothing"), client.post("/similar", json={}), client.get("/health")):
        assert reply.headers["x-bundle"] == version[:12]
    schema = client.get("/openapi.json").json()
    assert "chapter" in schema["components"]["schemas"]["Filter"]["properties"]


def test_a_folder_is_served_without_the_header(client: httpx.Client) -> None:
    assert "x-bundle" not in client.get("/health").headers
    assert "bundle" not in client.get("/info").json()
