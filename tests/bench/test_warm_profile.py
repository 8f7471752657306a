"""Where the time of a request goes: no moment is counted twice, and each part is one that the function has."""

import importlib

import pytest

from bench.warm_profile import PARTS, Clock


def test_what_a_part_calls_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0
    monkeypatch.setattr("time.thread_time_ns", lambda: now)
    clock = Clock()
    clock.enter("outer")
    now = 2_000
    clock.enter("inner")
    now = 7_000
    clock.leave()
    now = 8_000
    clock.leave()
    now = 9_000
    clock.enter("outer")
    clock.leave()
    assert clock.taken == {"outer": 3.0, "inner": 5.0}


@pytest.mark.parametrize(("holder", "name"), [(holder, name) for _, holder, names in PARTS for name in names])
def test_each_part_is_there(holder: str, name: str) -> None:
    module, _, inside = holder.partition(":")
    owner = importlib.import_module(module)
    assert callable(getattr(getattr(owner, inside) if inside else owner, name))
