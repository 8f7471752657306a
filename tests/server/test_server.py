"""semsearch serve: the same app over real HTTP, started and stopped as an operator would."""

import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from semsearch.app.app import App
from semsearch.app.settings import Settings
from semsearch.commands.main import dispatch
from semsearch.indexing.corpus import Corpus
from semsearch.server.workers import make_app
from tests.project import ROOT
from tests.server.running import WAIT, address_of, drain, started


@pytest.fixture
def server(bundle: Path) -> Iterator[subprocess.Popen[str]]:
    """A server on a port that the system chooses; killed at the end if the test did not stop it."""
    with started(bundle) as process:
        yield process


def test_it_answers_over_http_and_stops_when_told_to(
    server: subprocess.Popen[str], client: httpx.Client, corpus: Corpus
) -> None:
    with httpx.Client(base_url=address_of(server), trust_env=False, timeout=WAIT) as over_http:
        assert over_http.get("/health").json() == {"status": "ok"}
        found = over_http.post("/similar", json={"text": corpus.texts[64]})
        assert found.status_code == 200
        assert found.json() == client.post("/similar", json={"text": corpus.texts[64]}).json()
    server.send_signal(signal.SIGTERM)
    assert server.wait(timeout=WAIT) == 0


def test_it_searches_the_bundle_it_has_opened_after_the_folder_was_replaced(
    bundle_copy: Path, client: httpx.Client
) -> None:
    body = {"text": "an angry goose"} | {"filter": {"chapter": 5}}
    with started(bundle_copy) as server:
        address = address_of(server)
        shutil.rmtree(bundle_copy)
        reply = httpx.post(f"{address}/similar", json=body, trust_env=False, timeout=WAIT)
    assert reply.status_code == 200
    assert reply.json() == client.post("/similar", json=body).json()


def test_it_logs_each_request_as_a_line_of_json_and_stops_without_a_trace(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    first = server.stdout.readline()
    reply = httpx.get(f"{address_of(server)}/health", trust_env=False, timeout=WAIT)
    server.send_signal(signal.SIGINT)
    output, _ = server.communicate(timeout=WAIT)
    assert server.returncode == 0
    assert "Traceback" not in output
    assert '"message":"start"' in first
    assert '"message":"start"' not in output
    assert "init-" not in reply.headers["server-timing"]  # no request waited for the start
    assert '"message":"request"' in output
    assert '"path":"/health"' in output


def test_a_wrong_bundle_ends_it_with_1_and_the_reason(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "semsearch", "serve", str(tmp_path / "none")]
    failed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    reason = (
        f"{tmp_path / 'none'}: is not a folder; make a bundle with `semsearch index PATH --out {tmp_path / 'none'}`"
    )
    assert (failed.returncode, failed.stdout, failed.stderr) == (1, "", f"error: {reason}\n")


def test_a_wrong_setting_ends_it_with_1_and_the_reason(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAX_BODY_BYTES", "lots")
    assert dispatch(["serve", str(bundle)]) == 1
    assert capsys.readouterr().err.startswith("error: MAX_BODY_BYTES: 'lots', expected a whole number")


def test_the_bundle_of_the_environment_is_served_unless_another_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUNDLE_DIR", str(tmp_path / "from-environment"))
    assert dispatch(["serve"]) == 1
    assert "from-environment: is not a folder" in capsys.readouterr().err
    assert dispatch(["serve", str(tmp_path / "from-option")]) == 1
    assert "from-option: is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["65536", "http"])
def test_a_port_that_there_is_not_ends_it_with_2_and_the_ports_there_are(
    capsys: pytest.CaptureFixture[str], port: str
) -> None:
    assert dispatch(["serve", f"--port={port}"]) == 2
    assert "Invalid value" in (found := capsys.readouterr().err)
    assert f'"{port}"' in found
    assert "--port" in found


def test_a_port_in_use_is_refused_before_the_bundle_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert dispatch(["serve", str(tmp_path / "none"), f"--port={port}"]) == 1  # the bundle is not even looked for
    found = capsys.readouterr().err
    expected = "another program listens there; choose another port with --port, or 0 for one that is free"
    assert found == f"error: 127.0.0.1:{port}: {expected}\n"


@pytest.mark.parametrize(
    ("host", "expected"), [("no.such.host.invalid", "the host is not known"), ("192.0.2.1", "cannot be listened on")]
)
def test_an_address_of_no_use_is_refused(host: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["serve", f"--host={host}", "--port=0"]) == 1
    assert capsys.readouterr().err.startswith(f"error: {host}:0: {expected}")


def test_all_routes_are_there_before_a_server_makes_workers(bundle: Path) -> None:
    app = make_app(Settings(bundle_dir=bundle), 1, 1).app
    assert isinstance(app, App)
    assert "/mcp" in {route.path for route in app.fastapi.routes if isinstance(route, Route)}


def test_a_body_that_is_too_large_is_refused_before_it_is_sent_and_clients_read_the_reply(
    server: subprocess.Popen[str],
) -> None:
    address = httpx.URL(address_of(server))
    drain(server)
    with socket.create_connection((address.host, address.port), WAIT) as caller:
        caller.sendall(
            b"POST /similar HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"expect: 100-continue\r\ncontent-length: 7000000\r\n\r\n"
        )
        assert caller.recv(12) == b"HTTP/1.1 413"
    large = b" " * 30_000_000
    for content in (large, iter([large[:1_000_000]] * 30)):  # with its length, and in chunks
        reply = httpx.post(f"{address}/similar", content=content, trust_env=False, timeout=WAIT)
        assert reply.status_code == 413
