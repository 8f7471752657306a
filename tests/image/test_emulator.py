"""The image under Lambda's own emulator, locked up as in Lambda: it answers as the same code does outside of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.function.events.event_makers import Event
from tests.image.docker import LIKE_LAMBDA, docker
from tests.image.sources import REQUESTS, SOURCES, STATUS, comparable, last_line

Reply = dict[str, Any]

# Runs in the container, because nothing gets in from outside: there is no network
SEND = """
import json, socket, sys, time, urllib.request
while True:
    with socket.socket() as one:
        if one.connect_ex(("127.0.0.1", 8080)) == 0:
            break
    time.sleep(0.1)
replies = []
for event in json.load(sys.stdin):
    url = "http://127.0.0.1:8080/2015-03-31/functions/function/invocations"
    request = urllib.request.Request(url, json.dumps(event).encode())
    with urllib.request.urlopen(request, timeout=60) as reply:
        replies.append(json.load(reply))
print(json.dumps(replies))
"""


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[str]:
    """The image as it starts by itself, in Lambda's conditions."""
    with started(image) as name:
        yield name


@contextmanager
def started(image: str, *options: str) -> Iterator[str]:
    name = docker("run", "--detach", *LIKE_LAMBDA, *options, image).strip()
    yield name
    docker("rm", "--force", name)


def send(container: str, events: list[Event]) -> list[Reply]:
    """Send events to the emulator one after the other and give the function's replies."""
    replies: list[Reply] = last_line(docker("exec", "-i", container, "python3", "-c", SEND, text=json.dumps(events)))
    return replies


@pytest.fixture(scope="module")
def inside(container: str, events: list[Event]) -> dict[tuple[str, str], Reply]:
    """The image's reply to each request from each source."""
    keys = [(source, name) for source in SOURCES for name in REQUESTS]
    return dict(zip(keys, send(container, events), strict=True))


def headers(reply: Reply) -> dict[str, str]:
    """Return a reply's headers but for those that differ in each reply, whichever form they have."""
    found = reply.get("headers") or {name: value for name, (value,) in reply["multiValueHeaders"].items()}
    differing = ("server-timing", "content-length", "x-request-id")
    return {name: value for name, value in found.items() if name not in differing}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", REQUESTS)
def test_the_image_answers_as_the_code_does_outside(
    inside: dict[tuple[str, str], Reply], expected: dict[tuple[str, str], Reply], source: str, name: str
) -> None:
    found, wanted = inside[source, name], expected[source, name]
    assert found["statusCode"] == wanted["statusCode"] == STATUS[name]
    assert found.keys() == wanted.keys()
    assert headers(found) == headers(wanted)
    assert comparable(found["body"]) == comparable(wanted["body"])


def test_it_lives_through_all_of_it_in_the_memory_it_was_given(
    container: str, inside: dict[tuple[str, str], Reply]
) -> None:
    state = json.loads(docker("inspect", "--format", "{{json .State}}", container))
    assert (state["Running"], state["OOMKilled"]) == (True, False)
    assert '"message":"cold start"' in docker("logs", container)
    assert docker("logs", container).count('"message":"cold start"') == 1  # a crash would be followed by another
