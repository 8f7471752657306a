"""Run a function in processes of its own, whose memory is free again afterwards, and which can crash without harm.

torch and transformers alone keep half a gigabyte for as long as a process lives. A document can crash its parser, keep
it busy for hours, or make it fill the memory.
"""

import math
import resource
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple, TypeVar

from semsearch.engine.errors import ExpectedError
from semsearch.indexing.progress import OnProgress

AHEAD = 64  # maximum number of results that wait for an earlier one

Returned = TypeVar("Returned")


class Limits(NamedTuple):
    """What one call of a function can take. The memory is limited on Linux only: macOS does not heed such a limit."""

    seconds: int  # maximum processor time
    memory: int  # bytes, beside those that the process has already


class Progress(NamedTuple):
    """What a function in another process says of its progress: the arguments of OnProgress."""

    step: str
    share: float
    texts: int = 0


class KilledError(ExpectedError, ChildProcessError):
    """A worker's process has ended during a call. `code` is its exit code, negative for a signal."""

    def __init__(self, code: int | None) -> None:
        super().__init__(
            f"a process of this command was killed (exit code {code}); expected it to return; if memory is short, free "
            "about 1 GB and run the command again"
        )
        self.code = code

    def __reduce__(self) -> tuple[type["KilledError"], tuple[int | None]]:
        return KilledError, (self.code,)  # a process can send the error of its own process


def python_command(module: str) -> list[str]:
    """Return the beginning of a command that runs a module of this package with this Python, in any folder.

    -P keeps modules of the current folder and beside a script out. The package comes from where it is in this process.
    """
    package = Path(__file__).parents[2]
    path = f"import runpy, sys; sys.path.append({str(package)!r})"
    return [sys.executable, "-P", "-c", f"{path}; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"]


class Task(NamedTuple):
    """What a process does: it calls a function, whose first arguments are always the same."""

    function: Callable[..., Any] | str
    common: Sequence[Any]
    reports: bool = False  # whether the function reports its progress


Call = tuple[tuple[Any, ...], Limits | None]  # the arguments of one call, and its limits


class Worker:
    """A process that calls a function of a module, again and again. `common` are the first arguments of each call.

    A function that this process cannot import, because its module needs PyTorch, has a name: "package.module:name".
    With `on_progress`, the function gets a function that reports to it as its last argument.
    """

    def __init__(self, function: Callable[..., Any] | str, *common: Any, on_progress: OnProgress | None = None) -> None:
        self._on_progress = on_progress
        own, other = Pipe()
        self.connection: Connection[Any, Any] = own
        number = other.fileno()
        command = [*python_command("semsearch.indexing.processes"), str(number)]
        former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # only this process handles Ctrl-C
        try:
            self._process = subprocess.Popen(command, pass_fds=[number])  # noqa: S603
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
        other.close()  # only the new process has the other end, so that `recv` notices its end
        self.send(Task(function, common, on_progress is not None))

    def send(self, message: Task | Call) -> None:
        """Send a task, or a call of it whose result `receive` returns."""
        with suppress(BrokenPipeError):  # the process has ended: `receive` returns that
            self.connection.send(message)

    def call(self, *arguments: Any) -> Any:
        """Return what the function returns for these arguments. Raises what it raises, or KilledError."""
        self.send((arguments, None))
        result = self.receive()
        if isinstance(result, Exception):
            raise result
        return result

    def receive(self) -> Any:
        """Return what the function has returned, or the error that it has raised: KilledError if the process ended."""
        while True:
            try:
                received = self.connection.recv()
            except (EOFError, OSError):  # OSError: it ended while it sent or read a message
                return KilledError(self._process.wait())
            if not isinstance(received, Progress):
                return received
            if self._on_progress is not None:
                self._on_progress(*received)

    def end(self) -> None:
        """End the process, also during a call."""
        self.connection.close()
        self._process.terminate()
        self._process.wait()


def in_own_process(
    function: Callable[..., Returned] | str, *arguments: Any, on_progress: OnProgress | None = None
) -> Returned:
    """Return what a function of a module returns for these arguments, run in a new process; Worker explains both.

    The process ends with this call, even if the call is interrupted. Raises what the function raises, and
    ChildProcessError if the process is killed, which the system does when memory runs out.
    """
    worker = Worker(function, on_progress=on_progress)
    try:
        result: Returned = worker.call(*arguments)
    finally:
        worker.end()
    return result


_kept: list[Worker] | None = None  # one idle worker at most; None if none is kept


@contextmanager
def keeping_worker() -> Iterator[None]:
    """Keep one idle process of `in_workers` for its next call in the block: a start takes 0.4 s of a processor."""
    global _kept
    _kept = []
    try:
        yield
    finally:
        for worker in _kept:
            worker.end()
        _kept = None


def _start(task: Task) -> Worker:
    if not _kept:
        return Worker(task.function, *task.common)
    worker = _kept.pop()
    if worker.connection.poll():  # an idle process sends nothing, so this one has ended
        worker.end()
        return Worker(task.function, *task.common)
    worker.send(task)
    return worker


def in_workers(
    workers: int, function: Callable[..., Returned], common: Sequence[Any], calls: Sequence[Call]
) -> Generator[Returned | Exception, None, None]:
    """Yield the result or the error of `function(*common, *arguments)` for each call in order.

    A worker that crashes, or takes too much time, is replaced: the error is a KilledError. Too much memory is a
    MemoryError, or a crash. Close the generator: that ends the processes, except the one that `keeping_worker` keeps.
    """
    waiting = deque(enumerate(calls))
    idle: list[Worker] = []
    busy: dict[Any, tuple[int, Worker]] = {}  # by connection
    done: dict[int, Returned | Exception] = {}
    try:
        for number in range(len(calls)):
            while number not in done:
                while waiting and len(busy) < workers and waiting[0][0] < number + AHEAD:
                    place, call = waiting.popleft()
                    worker = idle.pop() if idle else _start(Task(function, common))
                    busy[worker.connection] = place, worker
                    worker.send(call)
                for connection in wait(list(busy)):
                    place, worker = busy.pop(connection)
                    done[place] = worker.receive()
                    if isinstance(done[place], KilledError):
                        worker.end()
                    else:
                        idle.append(worker)
            yield done.pop(number)
    finally:
        if _kept is not None and not _kept and idle:
            _kept.append(idle.pop())
        for worker in [*idle, *(worker for _, worker in busy.values())]:
            worker.end()


def _answer(connection: Connection) -> None:
    """Answer the calls of a Worker until it ends, which can be at any time."""

    def report(step: str, share: float, texts: int = 0) -> None:
        connection.send(Progress(step, share, texts))

    task: Task | None = None
    while True:
        try:
            received = connection.recv()
        except (EOFError, OSError):  # OSError: it ended while it sent
            return
        if isinstance(received, Task):
            task = received
            continue
        assert task is not None  # it comes first
        arguments, limits = received
        if task.reports:
            arguments = (*arguments, report)
        try:
            if limits is not None:
                _limit(limits)
            function = resolve_name(task.function) if isinstance(task.function, str) else task.function
            answer = function(*task.common, *arguments)
        except ExpectedError as error:
            answer = error
        except Exception as error:  # noqa: BLE001  the caller raises it again
            error.add_note(traceback.format_exc())  # the trace itself cannot be sent
            answer = error
        try:
            connection.send(answer)
        except BrokenPipeError:
            return


def _limit(limits: Limits) -> None:
    """Limit this process until its next call. Exceeded time ends it by SIGXCPU, without a core file."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    wanted = {resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime) + limits.seconds, resource.RLIMIT_CORE: 0}
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        wanted[resource.RLIMIT_AS] = pages * resource.getpagesize() + limits.memory
    for kind, value in wanted.items():
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


if __name__ == "__main__":
    from semsearch.indexing import processes  # this module under its own name, which the errors that it sends have

    processes._answer(Connection(int(sys.argv[1])))
