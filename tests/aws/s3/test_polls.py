"""How long ago a poll ended well, and when somebody is told that polls fail, on a clock that the tests turn by hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from semsearch.app.reloading import reloader as reloader_module
from semsearch.app.reloading import s3 as s3_module
from semsearch.app.reloading.s3 import BundleReloader
from semsearch.aws.s3 import objects
from tests.aws.s3.asking import Behind, Start, ask
from tests.aws.s3.test_refused import publish_manifest
from tests.aws.s3.test_switch import polls
from tests.server.running import eventually
from tests.stand_ins.faults import Proxy, crawl, refuse
from tests.stand_ins.fixtures import Publish

SWITCH, LOOK = "bundle switch failed", "bundle look failed"


class Clock:
    """The seconds that the function sees."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(reloader_module, "time", clock)
    monkeypatch.setattr(s3_module, "monotonic", clock)
    return clock


class Sent(NamedTuple):
    """The metrics of one poll."""

    seconds: float  # since a poll ended well
    look: float  # LookFailed
    switch: float  # SwitchFailed


class Function(NamedTuple):
    """A function that serves the first of the bundles."""

    switch: BundleReloader
    client: httpx.Client
    poll: Callable[[float], Sent]  # polls after some seconds, and returns the metrics of the poll


Begin = Callable[[int], Function]


@pytest.fixture
def begin(
    start: Start, publish: Publish, bundles: list[Path], clock: Clock, capsys: pytest.CaptureFixture[str]
) -> Begin:
    """Return what starts a function that polls once in some seconds."""

    def begin_with(seconds: int) -> Function:
        publish(bundles[0])
        switch, client = start(by_requests=True, seconds=seconds)

        def poll(after: float) -> Sent:
            clock.now += after
            capsys.readouterr()
            switch.poll()
            (line,) = capsys.readouterr().out.splitlines()
            found: dict[str, list[float]] = json.loads(line)
            return Sent(*(found[name][0] for name in ("SecondsSinceLook", "LookFailed", "SwitchFailed")))

        return Function(switch, client, poll)

    return begin_with


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return the levels and the messages of the log."""
    return [(record.levelname, record.message) for record in caplog.records if record.name == "tests"]


def test_a_bundle_that_is_refused_is_logged_at_each_poll_and_reported_when_that_has_lasted_until_another_one_is_current(
    begin: Begin, publish: Publish, bundles: list[Path], s3: Any, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    switch, _, poll = begin(60)
    assert poll(60) == (0, 0, 0)
    publish_manifest(s3, url, b"[]")
    caplog.set_level("INFO", "tests")
    sent = [poll(60) for _ in range(8)]
    assert sent == [(60 * number, 0, float(number >= 7)) for number in range(1, 9)]  # 2 * 60 + 300 seconds
    publish(bundles[1])
    assert poll(60) == (0, 0, 0)
    assert lines(caplog) == [("ERROR", SWITCH)] * 8 + [("INFO", "bundle switched")]
    assert switch.info()["failures"] == 8


def test_what_cannot_be_looked_for_is_reported_as_such(
    begin: Begin, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    _, _, poll = begin(60)
    proxy.fail("current.json", refuse(503, "SlowDown"))
    assert poll(60) == (60, 0, 0)
    assert poll(359) == (419, 0, 0)
    assert poll(1) == (420, 1, 0)
    assert lines(caplog) == [("ERROR", LOOK)] * 3
    proxy.faults.clear()
    assert poll(60) == (0, 0, 0)


def test_the_first_failure_after_a_long_pause_is_not_reported(begin: Begin, proxy: Proxy) -> None:
    """A function that was frozen, or restored from a snapshot, has not looked for hours, and nothing is wrong."""
    _, _, poll = begin(60)
    proxy.fail("current.json", refuse(503, "SlowDown"))
    assert poll(86_400) == (86_400, 0, 0)
    assert poll(60) == (86_460, 1, 0)


def test_a_function_that_seldom_polls_looks_again_a_minute_after_a_failure(
    begin: Begin, proxy: Proxy, clock: Clock
) -> None:
    """So that the metric comes while the failure lasts, and a hiccup does not cost an hour."""
    switch, client, poll = begin(3600)
    proxy.fail("current.json", refuse(503, "SlowDown"))
    assert poll(3600) == (3600, 0, 0)
    proxy.faults.clear()
    clock.now += 59
    ask(client)
    assert not polls()
    clock.now += 1
    ask(client)
    assert eventually(lambda: switch.status.error is None)


def test_info_says_how_long_ago_a_poll_ended_well(
    start: Start, publish: Publish, bundle: Path, proxy: Proxy, clock: Clock
) -> None:
    publish(bundle)
    switch, client = start()

    def shown() -> float:
        return float(client.get("/info").json()["bundle"]["seconds_since_look"])

    clock.now += 30
    assert shown() == 30
    switch.poll()
    assert shown() == 0
    proxy.fail("current.json", refuse(503, "SlowDown"))
    clock.now += 30
    switch.poll()
    assert shown() == 30


def test_a_poll_that_crawls_ends_and_the_next_one_can_succeed(
    behind: Behind, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, client, old, new = behind
    proxy.fail("passages.safetensors", crawl)
    with monkeypatch.context() as patch:
        patch.setattr(objects, "ALLOWED_SECONDS", 0.05)
        patch.setattr(objects, "SECONDS_BETWEEN_TICKS", 0.05)
        switch.poll()
    assert "comes too slowly" in str(switch.status.error)
    assert (switch.status.failures, ask(client)[0]) == (1, old[:12])
    proxy.faults.clear()
    switch.poll()
    assert ask(client)[0] == new[:12]
