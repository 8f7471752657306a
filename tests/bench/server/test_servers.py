"""When a server under test is idle: it may compute for callers that have left, in processes of its own."""

import os
import subprocess
import sys
import time

import pytest

from bench.server import servers

CHILD = """
import time
while time.process_time() < 0.5:
    pass
print(flush=True)
time.sleep(600)
"""
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


def test_what_a_child_computes_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()
            assert servers.processor_seconds(process.pid) > 0.4  # the kernel rounds each process to its clock's ticks
        finally:
            os.killpg(process.pid, 9)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The processor time of a server, at one look after the other: half a second lies between two."""
    seconds = [0.0]
    monkeypatch.setattr(servers, "processor_seconds", lambda process: seconds.pop(0))
    monkeypatch.setattr(time, "sleep", lambda pause: None)
    return seconds


def test_a_server_is_idle_when_it_computes_next_to_nothing(computed: list[float]) -> None:
    computed += [0.5, 0.9, 0.93, 9.0]
    servers.wait_until_idle(1)
    assert computed == [9.0]


def test_a_server_that_never_rests_is_an_error(computed: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "IDLE_WITHIN", 0)
    with pytest.raises(SystemExit, match="still computes 0 s after the last request"):
        servers.wait_until_idle(1)
