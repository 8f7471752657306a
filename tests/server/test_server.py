"""semsearch serve: the same app over real HTTP, started and stopped as an operator would."""

import json
import os
import re
import resource
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from semsearch.app.app import App
from semsearch.app.settings import Settings
from semsearch.commands.main import dispatch
from semsearch.server import workers
from semsearch.server.asgi import make_app
from tests.project import needs_linux
from tests.server.running import WAIT, address_of, drain, eventually, metrics_of, started


def test_it_answers_and_logs_in_utf_8_until_it_is_told_to_stop(bundle_copy: Path, client: httpx.Client) -> None:
    body = {"text": "an angry goose"} | {"filter": {"chapter": 5}}
    with started(bundle_copy, environment=os.environ | {"PYTHONIOENCODING": "ascii"}) as server:
        assert server.stdout is not None
        first = server.stdout.readline()
        with httpx.Client(base_url=address_of(server), trust_env=False, timeout=WAIT) as over_http:
            shutil.rmtree(bundle_copy)  # what it has opened is enough
            assert over_http.post("/similar", json=body).json() == client.post("/similar", json=body).json()
            reply = over_http.get("/żółw")
        server.send_signal(signal.SIGINT)
        output, _ = server.communicate(timeout=WAIT)
    assert server.returncode == 0
    assert "Traceback" not in output
    assert '"message":"start"' in first
    assert '"message":"start"' not in output
    assert "init-" not in reply.headers["server-timing"]  # no request waited for the start
    assert '"message":"request"' in output
    assert '"path":"/żółw"' in output


@pytest.mark.parametrize(
    ("arguments", "environment", "error"),
    [
        ([], {"MAX_BODY_BYTES": "lots"}, "MAX_BODY_BYTES: 'lots', expected a whole number"),
        ([], {"BUNDLE_DIR": "/none"}, "/none: is not a folder"),
        (["/other"], {"BUNDLE_DIR": "/none"}, "/other: is not a folder"),
        # before the bundle is even looked for
        (["/none", "--host=0.0.0.0", "--port=0"], {}, "--host 0.0.0.0: other machines could send requests"),
        (["/none", "--host=0.0.0.0", "--port=0", "--open"], {}, "/none: is not a folder"),
        (["/none", "--host=no.such.host.invalid", "--port=0"], {}, "no.such.host.invalid:0: the host is not known"),
        (["/none", "--host=192.0.2.1", "--port=0"], {}, "192.0.2.1:0: cannot be listened on"),
    ],
)
def test_a_server_that_cannot_start_ends_with_1_and_the_reason(
    arguments: list[str],
    environment: dict[str, str],
    error: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert dispatch(["serve", *arguments]) == 1
    assert capsys.readouterr().err.startswith(f"error: {error}")


def test_a_port_that_there_is_not_ends_it_with_2_and_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["serve", "--port=65536"]) == 2
    found = capsys.readouterr().err
    assert '"65536"' in found
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


@needs_linux("/proc")
def test_a_server_can_have_more_connections_than_its_shell_allows_open_files(bundle: Path) -> None:
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, most), most))
    try:
        with started(bundle) as server:
            address_of(server)
            limits = Path(f"/proc/{server.pid}/limits").read_text()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    found = re.search(r"Max open files +(\d+) +(\d+)", limits)  # granian raises the first
    assert found is not None
    assert found[1] == found[2] != "512"


def test_a_system_that_cannot_fork_refuses_several_workers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(workers, "CAN_FORK", False)
    assert dispatch(["serve", "/none", "--port=0", "--workers=2"]) == 2
    expected = "expected 1 on this system, whose libraries fail in a forked process; use its cores with --threads 2"
    assert capsys.readouterr().err == f"error: --workers: found 2, {expected}\n"


WITHOUT_FORK = """
import os
from semsearch.commands.main import main
from semsearch.server import workers
workers.CAN_FORK = False
os.fork = None
main()
"""


def test_a_system_that_cannot_fork_is_served_by_one_process_which_answers_what_it_has_accepted(bundle: Path) -> None:
    with started(bundle, "--threads", "2", program=("-c", WITHOUT_FORK)) as server:
        address = httpx.URL(address_of(server))
        printed = drain(server)
        first = httpx.post(f"{address}/predict", json={"text": "an angry goose"}, trust_env=False, timeout=WAIT)
        assert first.status_code == 200
        assert eventually(lambda: metrics_of(str(address))["requests_total", "/predict", "200"] == 1)
        with socket.create_connection((address.host, address.port), WAIT) as caller:
            head = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            caller.sendall(head + b"content-length: 17\r\n\r\n")
            assert eventually(lambda: metrics_of(str(address))["requests_total", "/metrics", "200"] > 1)
            server.send_signal(signal.SIGTERM)
            caller.sendall(b'{"text": "goose"}')
            assert caller.recv(15) == b"HTTP/1.1 200 OK"
        assert server.wait(WAIT) == 0
    assert "Traceback" not in "".join(printed)


def test_all_routes_are_there_before_a_server_makes_workers(bundle: Path) -> None:
    made = make_app(Settings(bundle_dir=bundle), 1, 1)
    app = made.app
    assert isinstance(app, App)
    assert made.reloader is not None
    assert {"columns", "keywords"} <= vars(made.reloader.served.bundle).keys()  # they are open
    assert "/mcp" in {route.path for route in app.fastapi.routes if isinstance(route, Route)}


PAGE = "https://app.example"


@pytest.fixture(scope="module")
def address(bundle: Path) -> Iterator[httpx.URL]:
    """The address of a server with options for other pages and hosts."""
    hosts = ("--allowed-host", "search.example.com", "--allowed-host", "search.example.org")
    with started(bundle, "--cors-origins", PAGE, *hosts) as server:
        address = httpx.URL(address_of(server))
        drain(server)
        yield address


def test_it_takes_origins_and_hosts_as_options(address: httpx.URL) -> None:
    with httpx.Client(base_url=address, trust_env=False, timeout=WAIT) as client:
        for host, status in (("search.example.org", 200), ("search.example.com", 200), ("rebound.example", 421)):
            assert client.get("/info", headers={"host": host}).status_code == status
        assert client.get("/metrics", headers={"host": "rebound.example"}).status_code == 421
        asking = {"origin": PAGE, "access-control-request-method": "POST"}
        assert client.options("/similar", headers=asking).headers["access-control-allow-origin"] == PAGE
        assert client.get("/info", headers={"origin": PAGE}).headers["access-control-allow-origin"] == PAGE


def test_a_body_that_is_too_large_is_refused_before_it_is_sent_and_clients_read_the_reply(address: httpx.URL) -> None:
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


def test_a_caller_that_hangs_up_is_dropped_and_counted(address: httpx.URL) -> None:
    body = json.dumps({"text": ["an angry goose sold forty apples at the market"] * 2_000}).encode()
    head = f"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"

    def is_counted_after_hanging_up() -> bool:
        with socket.create_connection((address.host, address.port), WAIT) as caller:
            caller.sendall(head.encode() + b"\r\n\r\n" + body)
        return metrics_of(str(address))["callers_left_total",] >= 1

    assert eventually(is_counted_after_hanging_up)
