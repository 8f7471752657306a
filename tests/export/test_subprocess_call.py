"""A function runs in a process of its own: its result or its error comes back, and the process is gone."""

import os
import signal
import time
from multiprocessing import active_children

import pytest

from export.model.source.model_files import ModelError
from export.subprocess_call import in_own_process


def process_id() -> int:
    return os.getpid()


def fail(message: str) -> None:
    raise ModelError(message)


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt_the_caller(caller: int) -> None:
    os.kill(caller, signal.SIGINT)
    time.sleep(600)


def test_the_result_comes_from_another_process() -> None:
    assert in_own_process(process_id) != os.getpid()
    assert not active_children()


def test_an_error_comes_back_with_the_trace_of_where_it_was_raised() -> None:
    with pytest.raises(ModelError, match="no such model") as caught:
        in_own_process(fail, "no such model")
    assert "in fail\n" in caught.value.__notes__[0]


def test_a_killed_process_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ChildProcessError, match=r"exit code -9.*free about 1 GB"):
        in_own_process(kill_itself)


def test_an_interrupt_ends_the_other_process_too() -> None:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            in_own_process(interrupt_the_caller, os.getpid())
    finally:
        signal.signal(signal.SIGINT, former)
    assert not active_children()
