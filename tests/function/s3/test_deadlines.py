"""S3 that answers byte by byte: each answer has a deadline, from connecting to its last byte, and polls go on."""

import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from function.aws import credentials
from function.aws.deadline import TimedConnection
from function.engine.bundle import VectorsInfo
from function.s3 import objects
from function.s3.objects import Answer, Objects, RemoteError
from function.s3vectors import client as vectors_client
from function.s3vectors.client import VectorsClient, VectorsError
from tests.function.s3.asking import Behind, Start, ask
from tests.stand_ins.faults import Exchange, Fault, Proxy
from tests.stand_ins.fixtures import Publish

PATIENCE = 20  # seconds until a test takes something for stuck
PAUSE = 0.02  # seconds between two bytes: far less than TIMEOUT
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}

Serve = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "LONGEST", 0.5)
    monkeypatch.setattr(objects, "TRIES", 1)


def trickle(connection: socket.socket, content: bytes, more: bytes) -> None:
    """Send `content`, then `more` again and again, byte by byte, until the other side hangs up."""
    connection.sendall(content)
    with suppress(OSError):
        for byte in cycle(more):
            connection.sendall(bytes([byte]))
            time.sleep(PAUSE)


def slow(content: bytes, more: bytes) -> Fault:
    def answer(exchange: Exchange) -> None:
        trickle(exchange.connection, content, more)
        exchange.close_connection = True

    return answer


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
SLOW: dict[str, Fault] = {
    "status line": slow(b"", b"H"),
    "headers": slow(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    "one header": slow(b"HTTP/1.1 200 OK\r\nx: ", b"y"),
    "continue": slow(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": slow(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b"{"),
    "body until the end": slow(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", b"{"),
    "chunks": slow(CHUNKED, b"1\r\n{\r\n"),
    "the length of a chunk": slow(CHUNKED, b"0"),
    "trailers": slow(CHUNKED + b"0\r\n", b"x: y\r\n"),
    "error": slow(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 100000\r\n\r\n", b"<"),
    "redirect": slow(b"HTTP/1.1 307 Temporary Redirect\r\ncontent-length: 100000\r\n\r\n", b"<"),
    "unchanged": slow(b"HTTP/1.1 304 Not Modified\r\n", b"x: y\r\n"),
}


def in_time(work: Callable[[], Any]) -> None:
    """Run something that must end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_an_answer_that_never_ends_is_an_error_and_the_next_poll_switches(behind: Behind, proxy: Proxy) -> None:
    switch, client, old, new = behind
    proxy.fail("current.json", SLOW["headers"], times=1)
    in_time(switch.poll)
    error = client.get("/info").json()["bundle"]["error"]
    assert "current.json: took more than 0.5 s, 1 times; is 127.0.0.1:" in error
    assert ask(client)[0] == old[:12]
    proxy.fail("index.safetensors", slow(b"HTTP/1.1 206 Partial Content\r\n", b"x: y\r\n"), times=1)
    in_time(switch.poll)
    assert "index.safetensors: took more than 0.5 s" in str(switch.status.error)
    switch.poll()
    assert ask(client)[0] == new[:12]
    assert client.get("/info").json()["bundle"]["error"] is None


@pytest.mark.parametrize("fault", SLOW.values(), ids=SLOW)
def test_each_part_of_an_answer_is_under_the_deadline(proxy: Proxy, fault: Fault) -> None:
    proxy.fail("current.json", fault)
    message = refused_pointer(KEYS | {"AWS_ENDPOINT_URL_S3": proxy.address})
    assert "current.json: took more than 0.5 s, 1 times; is 127.0.0.1:" in message


ODD: dict[str, tuple[bytes, str | None]] = {
    "chunked": (CHUNKED + b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", None),
    "until the end": (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello", None),
    "bytes after it": (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhellogarbage", None),
    "no number as its length": (b"HTTP/1.1 200 OK\r\ncontent-length: many\r\nconnection: close\r\n\r\nhello", None),
    "chunks of no length": (CHUNKED + b"x\r\n", "IncompleteRead"),
    "a chunk of negative length": (CHUNKED + b"-1\r\n", "IncompleteRead|Negative|negative"),
    "too many headers": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 200, "more than 100 headers"),
    "a long status line": (b"H" * 100_000, "more than 65536 bytes"),
    "no HTTP": (b"SSH-2.0-x\r\n\r\n", "SSH-2.0"),
    "nothing": (b"", "without response"),
}


@pytest.mark.parametrize(("content", "message"), ODD.values(), ids=ODD)
def test_an_odd_answer_is_read_or_told_and_the_next_one_is_read(
    proxy: Proxy, content: bytes, message: str | None
) -> None:
    objects_there = Objects("s3://bucket/x", KEYS | {"AWS_ENDPOINT_URL_S3": proxy.address})
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"

    def send(what: bytes) -> Fault:
        def answer(exchange: Exchange) -> None:
            exchange.connection.sendall(what)
            exchange.close_connection = True

        return answer

    proxy.fail("current.json", send(content), times=1)
    proxy.fail("current.json", send(whole))
    if message is None:
        assert objects_there.read("current.json") == Answer(b"hello", "")
    else:
        with pytest.raises(RemoteError, match=message):
            objects_there.read("current.json")
    objects_there.close()
    assert objects_there.read("current.json") == Answer(b"hello", "")


def test_an_answer_that_is_longer_than_a_pointer_can_be_is_refused(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bundle)
    switch, _ = start()
    monkeypatch.setattr(objects, "LARGEST_DOCUMENT", 1000)
    large = b"{" * 2000
    proxy.fail("current.json", lambda exchange: exchange.answer(200, {}, large))
    switch.poll()
    assert "current.json: has more than 1000 bytes" in str(switch.status.error)


@pytest.fixture
def serve() -> Iterator[Callable[[Serve], int]]:
    """Return what listens on a free port and lets a function handle each connection; it returns the port."""
    listeners: list[socket.socket] = []

    def listen(handle: Serve) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=handle_one, args=(connection,), daemon=True).start()

        def handle_one(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                handle(connection)

        threading.Thread(target=accept, daemon=True).start()
        return int(listener.getsockname()[1])

    yield listen
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def refusal(ask: Callable[[], object]) -> str:
    """Return the error of a request, which must come in time."""
    messages: list[str] = []

    def read() -> None:
        try:
            ask()
        except (RemoteError, VectorsError) as error:
            messages.append(str(error))

    in_time(read)
    (message,) = messages
    return message


def refused_pointer(environment: dict[str, str]) -> str:
    """Return the error of reading a pointer with this environment."""
    return refusal(lambda: Objects("s3://bucket/x", environment).read("current.json"))


def test_a_tls_handshake_that_never_ends_is_an_error(serve: Callable[[Serve], int]) -> None:
    # a record of 16 KB with a handshake message
    port = serve(lambda connection: trickle(connection, b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc", b"\x03"))
    message = refused_pointer(KEYS | {"AWS_ENDPOINT_URL_S3": f"https://127.0.0.1:{port}"})
    assert "current.json: took more than 0.5 s, 1 times" in message


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate of `localhost` with its key, which this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "certificate.pem"
    content = made.public_bytes(serialization.Encoding.PEM)
    format_, no_password = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(content + key.private_bytes(serialization.Encoding.PEM, format_, no_password))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def test_over_tls_an_answer_that_never_ends_is_an_error_and_a_whole_one_is_read(
    serve: Callable[[Serve], int], certificate: Path
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    answers = chain([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\netag: x\r\n\r\nhello"], cycle([None]))

    def handle(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            secure.recv(10_000)
            whole = next(answers)
            if whole is None:
                trickle(secure, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n")
            else:
                secure.sendall(whole)

    environment = {"AWS_ENDPOINT_URL_S3": f"https://localhost:{serve(handle)}"}
    answer = Objects("s3://bucket/x", KEYS | environment).read("current.json")
    assert answer is not None
    assert (answer.content, answer.etag) == (b"hello", "x")
    assert "current.json: took more than 0.5 s, 1 times" in refused_pointer(KEYS | environment)


def test_a_host_with_many_addresses_that_do_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to a listener whose queue is full wait, as those to a machine that is down do."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 1000
        monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: found)
        message = refused_pointer(KEYS | {"AWS_ENDPOINT_URL_S3": f"http://s3.test:{address[1]}"})
        for each in waiting:
            each.close()
    assert "current.json: took more than 0.5 s, 1 times; is s3.test:" in message


def test_credentials_that_never_arrive_are_an_error(
    serve: Callable[[Serve], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "SECONDS", 0.5)
    port = serve(lambda connection: trickle(connection, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"))
    where = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{port}/credentials"}
    assert "took more than 0.5 s" in refused_pointer(where)


def test_an_answer_of_s3_vectors_that_never_ends_is_an_error(
    serve: Callable[[Serve], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors_client, "SECONDS", 0.5)
    port = serve(lambda connection: trickle(connection, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"))
    where = KEYS | {"AWS_ENDPOINT_URL_S3VECTORS": f"http://127.0.0.1:{port}"}
    client = VectorsClient(VectorsInfo("b", "i", "eu-central-1", "k"), where)
    assert "took more than 0.5 s" in refusal(lambda: client.query(np.zeros(4, np.float32), 1))


def test_a_connection_serves_many_answers(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[object] = []
    connect = TimedConnection.connect

    def count(connection: TimedConnection) -> None:
        connected.append(connection)
        connect(connection)

    monkeypatch.setattr(TimedConnection, "connect", count)
    monkeypatch.setattr(objects, "LONGEST", 30.0)
    answers: list[Fault] = [
        lambda exchange: exchange.answer(200, {}, b"hello"),
        lambda exchange: exchange.connection.sendall(CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"),
        lambda exchange: exchange.answer(304, {}, b""),
        lambda exchange: exchange.answer(200, {}, b""),
        lambda exchange: exchange.answer(206, {}, b"hello"),
        lambda exchange: exchange.answer(200, {}, b"bye"),
    ]
    for answer in answers:
        proxy.fail("current.json", answer, times=1)
    there = Objects("s3://bucket/x", KEYS | {"AWS_ENDPOINT_URL_S3": proxy.address})
    contents = [there.read("current.json"), there.read("current.json"), there.read("current.json", "x")]
    assert contents == [Answer(b"hello", ""), Answer(b"hello", ""), None]
    assert there.read("current.json") == Answer(b"", "")
    with tempfile.TemporaryFile() as file:
        there.copy_part("current.json", 0, 5, file.fileno())
    assert there.read("current.json") == Answer(b"bye", "")
    assert len(connected) == 1
    there.close()
