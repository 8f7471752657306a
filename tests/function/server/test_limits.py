"""What the connections of a process may use: time, memory, and how many there are. Real sockets and short deadlines."""

import asyncio
import json
import logging
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from function.app import App
from function.server.limits import Limits
from function.settings import Settings
from tests.function.server.raw_http import Reply, connected, read_replies, receive_all, receive_reply
from tests.function.server.running import address_of, serving, started

TYPE = b"POST /similar HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n"
HEAD = TYPE + b"content-length: %d\r\n\r\n"
IN_CHUNKS = TYPE + b"transfer-encoding: chunked\r\n\r\n"
BODY = b'{"text": "an angry goose"}'
REQUEST = HEAD % len(BODY) + BODY
SHORT = Limits(
    large_bodies_bytes=9_000_000,
    seconds_for_head=1.0,
    seconds_for_bytes=1.0,
    least_bytes=1_000,
    seconds_to_linger=0.5,
)
KEY = "0123456789abcdef"
Address = tuple[str, int]


@pytest.fixture(scope="module")
def address(make_app: Callable[..., App]) -> Iterator[Address]:
    """The real app with short deadlines."""
    with serving(make_app(), SHORT) as found:
        yield found


def replies_to(address: Address, *messages: bytes) -> list[list[Reply]]:
    """Send each message on a connection of its own, and return the replies until the server closes it."""
    with ExitStack() as stack:
        callers = [stack.enter_context(connected(address)) for _ in messages]
        for caller, message in zip(callers, messages, strict=True):
            caller.sendall(message)
        return [read_replies(receive_all(caller)) for caller in callers]


def error_of(replies: list[Reply]) -> tuple[int, str]:
    """Return the status and the message of the only reply, which is the connection's last."""
    (reply,) = replies
    assert b"\r\nconnection: close" in reply.head
    return reply.status, json.loads(reply.body)["error"]


def has_reply(caller: socket.socket) -> bool:
    return bool(select.select([caller], [], [], 0)[0])


def test_a_connection_without_a_request_is_closed_without_a_reply(address: Address) -> None:
    assert replies_to(address, b"", b"\r\n", b"\r\n\r\n\r\n") == [[], [], []]


def test_a_head_that_stops_gets_408(address: Address) -> None:
    expected = "head: not whole after 1 s, expected all headers and an empty line; send it again"
    heads = (b"G", HEAD[:40], TYPE, TYPE + b"\r")
    assert [error_of(replies) for replies in replies_to(address, *heads)] == [(408, expected)] * len(heads)


def test_a_body_that_stops_gets_408(address: Address) -> None:
    requests = (
        HEAD % 100,
        HEAD % 100 + BODY,
        HEAD % 300_000 + b" " * 200_000,
        IN_CHUNKS,
        IN_CHUNKS + b"5;x\r\n{",
        REQUEST[:-1],
    )
    found = [error_of(replies) for replies in replies_to(address, *requests)]
    expected = "body: stopped after {} bytes, expected its end or at least 1000 bytes more every 1 s; send it again"
    assert found == [(408, expected.format(length)) for length in (0, len(BODY), 200_000, 0, 1, len(BODY) - 1)]


def test_bytes_one_by_one_do_not_extend_a_deadline(address: Address) -> None:
    with connected(address) as head, connected(address) as body:
        body.sendall(HEAD % 1_000_000)
        head.sendall(b"GET / HTTP/1.1\r\nx: ")
        end = time.monotonic() + 20
        while not (has_reply(head) and has_reply(body)) and time.monotonic() < end:
            for caller in (head, body):
                if not has_reply(caller):
                    caller.sendall(b" ")
            time.sleep(0.02)
        assert [error_of(read_replies(receive_all(caller)))[0] for caller in (head, body)] == [408, 408]


def test_a_slow_body_is_read_while_enough_of_it_comes(address: Address) -> None:
    body = BODY + b" " * 8_000
    with connected(address) as caller:
        caller.sendall(HEAD % len(body))
        for start in range(0, len(body), 500):  # some 6,000 bytes a second
            caller.sendall(body[start : start + 500])
            time.sleep(0.08)
        assert receive_reply(caller).status == 200


def test_the_deadline_of_a_head_begins_with_the_last_reply(address: Address) -> None:
    with connected(address) as caller:
        for _ in range(4):
            caller.sendall(REQUEST)
            assert receive_reply(caller).status == 200
            time.sleep(0.4)
        caller.sendall(TYPE)
        assert error_of(read_replies(receive_all(caller)))[0] == 408


def test_a_head_without_an_end_gets_431(address: Address) -> None:
    endless = [b"GET /" + b"a" * 80_000, TYPE + b"x: " + b"y" * 80_000, TYPE + b"x: y\r\n" * 15_000]
    whole = [b"GET /" + b"a" * 66_000 + b" HTTP/1.1\r\nhost: h\r\n\r\n", TYPE + b"x: y\r\n" * 22_000 + b"\r\n"]
    trailers = IN_CHUNKS + b"1\r\na\r\n0\r\n" + b"x: y\r\n" * 50_000
    extension = IN_CHUNKS + b"1;" + b"x" * 300_000
    found = replies_to(address, *endless, *whole, trailers, extension)
    assert [error_of(replies)[0] for replies in found] == [431] * 7


@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"])
def test_a_body_that_is_too_large_is_refused_before_it_is_sent(address: Address, expect: bytes) -> None:
    head = TYPE + expect + b"content-length: 6291457\r\n\r\n"
    (replies,) = replies_to(address, head)
    assert error_of(replies) == (413, "body: 6291457 bytes, at most 6291456; send fewer or shorter texts")


def test_a_caller_that_sends_all_of_a_refused_body_first_still_gets_the_reply(address: Address) -> None:
    large = 8_000_000
    for sent in (HEAD % large + b" " * large, IN_CHUNKS + b"%x\r\n" % large + b" " * large + b"\r\n0\r\n\r\n"):
        (replies,) = replies_to(address, sent + REQUEST)
        assert error_of(replies)[0] == 413


def test_refusals_are_logged_with_their_error(address: Address, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="tests")
    replies_to(address, HEAD % 6_291_457)
    replies_to(address, b"nonsense\r\n\r\n")
    lines = [vars(record) for record in caplog.records if record.name == "tests"]
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("POST", "/similar", 413),
        ("", "", 400),
    ]
    assert "6291457 bytes" in lines[0]["error"]
    assert lines[1]["error"].startswith("request: cannot be read (")


def test_who_has_no_key_is_refused_before_the_body_is_sent(make_app: Callable[..., App]) -> None:
    with serving(make_app(settings=Settings(api_keys=(KEY,))), SHORT) as address:
        found = replies_to(address, HEAD % 1_000_000, HEAD % 1_000_000 + b" " * 1_000_000 + REQUEST)
    assert [error_of(replies)[0] for replies in found] == [401, 401]


def test_large_bodies_share_a_limit_and_small_ones_are_always_read(make_app: Callable[..., App]) -> None:
    start, end = HEAD % 3_000_000 + b" " * 2_900_000, BODY + b" " * (100_000 - len(BODY))
    limits = Limits(large_bodies_bytes=9_000_000)
    with serving(make_app(), limits) as address, ExitStack() as stack:
        callers = [stack.enter_context(connected(address)) for _ in range(4)]
        for caller in callers:
            caller.sendall(start)
        ((refused,), _, _) = select.select(callers, [], [], 30)  # whichever had the last of the 9 MB
        (reply,) = read_replies(receive_all(refused))
        assert reply.status == 429
        assert b"\r\nretry-after: 1" in reply.head
        first, second, third = (caller for caller in callers if caller is not refused)
        first.sendall(end)
        assert receive_reply(first).status == 200
        first.sendall(HEAD % 60_000 + BODY + b" " * (60_000 - len(BODY)))
        assert receive_reply(first).status == 200
        second.close()
        for _ in range(4):  # the bytes of the answered, the refused and the closed one are free again
            first.sendall(HEAD % 5_900_000 + b" " * (5_900_000 - len(BODY)) + BODY)
            assert receive_reply(first).status == 200
        third.sendall(end)
        assert receive_reply(third).status == 200


def test_connections_above_the_limit_get_429_and_above_twice_the_limit_nothing(
    make_app: Callable[..., App],
) -> None:
    with serving(make_app(), Limits(connections=20)) as address, ExitStack() as stack:
        callers = [stack.enter_context(connected(address)) for _ in range(50)]
        time.sleep(0.1)  # all are accepted
        for caller in callers[:20]:
            caller.sendall(REQUEST)
            assert receive_reply(caller).status == 200
        refused = [error_of(read_replies(receive_all(caller))) for caller in callers[20:40]]
        assert [status for status, _ in refused] == [429] * 20
        assert (
            refused[0][1] == "connection: this one would be number 21, expected 20 at most in each process; try again"
        )
        assert [receive_all(caller) for caller in callers[40:]] == [b""] * 10


def test_requests_that_wait_on_one_connection_are_limited(address: Address) -> None:
    (replies,) = replies_to(address, REQUEST * 100)
    assert [reply.status for reply in replies] == [200] * 33 + [429]


async def slow_reply(scope: Scope, receive: Receive, send: Send) -> None:
    body = b""
    while (message := await receive())["more_body"]:
        body += message["body"]
    await asyncio.sleep(0 if body else 2)
    await Response(str(scope.get("refusal_status", 200)))(scope, receive, send)


def test_time_in_which_the_server_itself_does_not_read_does_not_count() -> None:
    with serving(slow_reply, SHORT) as address, connected(address) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        caller.sendall(HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") % 5_000_000)
        sender = Thread(target=caller.sendall, args=(b" " * 5_000_000,))  # most is read after the first reply
        sender.start()
        assert [reply.body for reply in read_replies(receive_all(caller))] == [b"200", b"200"]
        sender.join()


async def large_reply(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await Response(b"x" * 30_000_000)(scope, receive, send)


def test_a_caller_that_does_not_read_its_reply_loses_the_connection() -> None:
    with serving(large_reply, SHORT) as address, connected(address) as stalled, connected(address) as slow:
        for caller in (stalled, slow):
            caller.sendall(REQUEST)
        received = 0
        for _ in range(20):
            received += len(slow.recv(1_000_000))
            time.sleep(0.06)
        assert len(receive_all(stalled)) < 30_000_000
        assert received + len(receive_all(slow)) > 30_000_000


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_memory_of_large_bodies_goes_back_to_the_system(bundle: Path) -> None:
    sent = (
        HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n") % 6_000_000 + BODY + b" " * (6_000_000 - len(BODY))
    )
    with started(bundle) as server:
        url = httpx.URL(address_of(server))
        assert url.port is not None
        address = url.host, url.port
        replies_to(address, REQUEST.replace(b"host: h", b"connection: close\r\nhost: h"))
        before = resident_bytes(server.pid)
        with ThreadPoolExecutor(30) as threads:  # at once: more than the limit of 64 MB
            statuses = [reply.status for ((reply,),) in threads.map(lambda _: replies_to(address, sent), range(60))]
        assert set(statuses) <= {200, 429}
        assert 200 in statuses
        end = time.monotonic() + 20
        while resident_bytes(server.pid) > before + 8_000_000 and time.monotonic() < end:
            time.sleep(0.1)
        assert resident_bytes(server.pid) < before + 8_000_000
