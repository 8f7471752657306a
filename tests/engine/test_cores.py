"""The cores that a process can use: those of its affinity on Linux, and the machine's elsewhere."""

import os

import pytest

from semsearch.engine.cores import usable_cores
from tests.project import needs_linux


@needs_linux("affinity")
def test_a_process_that_is_bound_to_one_core_can_use_one() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(before)])
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(("cores", "usable"), [(8, 8), (None, 1)])
def test_a_system_without_affinity_has_those_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, usable: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert usable_cores() == usable
