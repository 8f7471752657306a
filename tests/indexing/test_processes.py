"""A function runs in a process of its own: its result or its error comes back, and the process is gone."""

import os
import signal
import sys
import time
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from semsearch.indexing import processes
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.processes import KilledError, Limits, Worker, in_own_process, in_workers, keeping_worker
from semsearch.indexing.progress import OnProgress
from tests.project import needs_linux


def fail(error: Exception) -> None:
    raise error


def kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_error_comes_back_with_its_trace_unless_a_user_can_repair_it() -> None:
    with pytest.raises(ValueError, match="no such model") as caught:
        in_own_process(fail, ValueError("no such model"))
    assert "in fail\n" in caught.value.__notes__[0]
    with pytest.raises(ModelError, match="no such model") as repairable:
        in_own_process(fail, ModelError("no such model"))
    assert not hasattr(repairable.value, "__notes__")


def end_in_own_process() -> None:
    in_own_process(kill_itself)


def test_a_killed_process_of_a_process_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(KilledError, match=r"exit code -9.*free about 1 GB") as caught:
        in_own_process(end_in_own_process)
    assert caught.value.code == -signal.SIGKILL


def take_steps(steps: list[str], report: OnProgress) -> int:
    for step in steps:
        report(step, 0.5, texts=7)
    return len(steps)


def test_a_process_reports_its_progress_before_its_result() -> None:
    reports: list[tuple[str, float, int]] = []

    def on_progress(step: str, share: float, texts: int = 0) -> None:
        reports.append((step, share, texts))

    assert in_own_process(take_steps, ["read", "write"], on_progress=on_progress) == 2
    assert reports == [("read", 0.5, 7), ("write", 0.5, 7)]


AMPLE = Limits(60, 500_000_000)


def work(base: int, task: str) -> int:
    """Do what a document can do to its reader."""
    match task.split():
        case ["wait", file]:
            while not Path(file).exists():
                time.sleep(0.01)
        case ["write", file]:
            Path(file).touch()
        case ["hang"]:
            while True:
                pass
        case ["fill"]:
            bytearray(base + 10**9)
        case ["crash"]:
            os.abort()
        case ["fail"]:
            raise ModelError("no such task")
        case ["interrupt"]:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(600)
    return os.getpid()


def add_all(*numbers: int) -> tuple[int, int]:
    return sum(numbers), os.getpid()


def results_of(tasks: list[str], limits: Limits = AMPLE, workers: int = 2) -> list[Any]:
    with closing(in_workers(workers, work, [0], [((task,), limits) for task in tasks])) as results:
        return list(results)


def test_a_few_workers_return_all_results_in_order(tmp_path: Path) -> None:
    processes = results_of([f"wait {tmp_path}/file", "", f"write {tmp_path}/file", "fail", ""])
    assert str(processes.pop(3)) == "no such task"
    assert processes[0] != processes[1] == processes[2]  # the second worker did not wait for the first
    assert len(set(processes)) == 2
    assert not active_children()


def test_a_worker_that_takes_too_much_is_replaced_and_the_others_go_on() -> None:
    slow, crashed, last = results_of(["hang", "crash", ""], Limits(1, 200_000_000))
    assert isinstance(slow, KilledError)
    assert slow.code == -signal.SIGXCPU
    assert isinstance(crashed, KilledError)
    assert crashed.code == -signal.SIGABRT
    assert last > 0


def test_one_idle_worker_is_kept_for_the_next_calls_and_replaced_if_it_has_ended() -> None:
    with keeping_worker():
        (first,) = results_of([""])
        assert results_of(["", ""], workers=1) == [first, first]
        os.kill(first, signal.SIGKILL)
        assert processes._kept is not None
        assert processes._kept[0].connection.poll(60)  # it has ended
        (second,) = results_of([""])
        assert second != first
        assert results_of([""]) == [second]
        with closing(in_workers(1, add_all, [1, 2], [((3,), None)])) as results:
            assert list(results) == [(6, second)]  # another function with other arguments
    assert not active_children()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


@needs_linux("limit of memory")
def test_a_worker_that_fills_the_memory_goes_on(tmp_path: Path) -> None:
    full, last = results_of(["fill", ""], Limits(60, 200_000_000), workers=1)
    assert isinstance(full, MemoryError)
    assert last > 0


def test_a_worker_whose_process_has_ended_says_how() -> None:
    worker = Worker(add_all)
    assert worker.call(1, 2)[0] == 3
    worker._process.kill()
    worker._process.wait()
    with pytest.raises(KilledError, match="exit code -9"):
        worker.call(1)
    worker.end()


def test_an_idle_worker_whose_process_has_ended_is_replaced() -> None:
    with closing(in_workers(1, os.getpid, [], [((), None)] * 3)) as results:
        first = next(results)
        assert isinstance(first, int)
        os.kill(first, signal.SIGKILL)
        os.waitpid(first, 0)
        assert isinstance(next(results), KilledError)
        assert next(results) != first


CUT = b"\0\0\0\x09message"  # a message cut after seven of its nine bytes


def send_a_part() -> None:
    os.write(int(sys.argv[1]), CUT)
    kill_itself()


def test_a_worker_whose_process_is_killed_while_it_sends_says_how() -> None:
    with pytest.raises(KilledError, match="exit code -9"):
        in_own_process(send_a_part)


@pytest.mark.parametrize("leave", ["while it sends", "before the answer"])
def test_a_process_ends_in_silence_if_its_worker_is_gone(leave: str, capfd: pytest.CaptureFixture[str]) -> None:
    worker = Worker(add_all)
    if leave == "while it sends":
        os.write(worker.connection.fileno(), CUT)
    else:
        worker.send(((1, 2), None))
    worker.connection.close()
    assert worker._process.wait() == 0
    assert capfd.readouterr().err == ""


def test_an_interrupt_ends_all_workers() -> None:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            results_of(["hang", "interrupt"])
    finally:
        signal.signal(signal.SIGINT, former)
    assert not active_children()
