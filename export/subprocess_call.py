"""Run a function in a process of its own, so that all its memory, imports included, is free again afterwards.

torch and transformers alone keep half a gigabyte for as long as a process lives.
"""

import multiprocessing
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_own_process(function: Callable[..., Result], *arguments: Any) -> Result:
    """Return what a function of a module returns for these arguments, run in a new process.

    The process ends with this call, even if the call is interrupted. Raises what the function raises, and
    ChildProcessError if the process is killed, which the system does when memory runs out.
    """
    spawn = multiprocessing.get_context("spawn")  # a fork would copy locks that threads of this process hold
    receiver, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_send_result, args=(sender, function, arguments), daemon=True)
    process.start()
    sender.close()  # only the new process has the other end, so that `recv` notices its end
    try:
        result, error = receiver.recv()
    except EOFError:
        process.join()
        raise ChildProcessError(
            f"a process of this export was killed (exit code {process.exitcode}); expected it to return; if memory is "
            "short, free about 1 GB and run the command again"
        ) from None
    finally:
        receiver.close()
        process.terminate()
        process.join()
    if error is not None:
        raise error
    returned: Result = result
    return returned


def _send_result(sender: Connection, function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too, but the caller ends it
    try:
        sender.send((function(*arguments), None))
    except Exception as error:  # noqa: BLE001  the caller raises it again
        error.add_note(traceback.format_exc())  # the trace itself cannot be sent
        sender.send((None, error))
