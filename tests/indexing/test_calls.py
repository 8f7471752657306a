"""`index` as a program calls it: from a thread, without a main guard, and interrupted."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from semsearch import index
from tests.project import needs_linux
from tests.server.running import WAIT, eventually
from tests.server.test_workers import is_running, workers_of


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A folder of documents, which processes of their own read."""
    (tmp_path / "docs").mkdir()
    for number in range(50):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Goose {number}\n\nAn angry goose.\n", encoding="utf-8")
    return tmp_path / "docs"


def test_it_runs_in_a_thread_and_leaves_the_handlers_of_signals(out: Path, documents: Path) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)
    before = [signal.getsignal(number) for number in numbers]
    rows: list[int] = []
    thread = Thread(target=lambda: rows.append(index(documents, out=out, progress=False).manifest.corpus.rows))
    thread.start()
    thread.join(WAIT)
    assert rows == [50]
    assert [signal.getsignal(number) for number in numbers] == before


def test_without_terminal_progress_goes_to_a_function_or_nobody(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[str] = []
    index(["a goose"], out=out, progress=lambda step, share, texts=0: steps.append(step))
    assert {"read texts", "embed texts", "write the index"} <= set(steps)
    for progress in (True, False):
        index(["a goose"], out=out, mode="replace", progress=progress)
    assert capsys.readouterr() == ("", "")


@needs_linux("/proc")
def test_ctrl_c_ends_it_and_its_child_processes(out: Path, documents: Path) -> None:
    (documents / "slow.html").write_text("<div>" * 150_000, encoding="utf-8")  # takes seconds to read
    script = f"from semsearch import index\nindex({str(documents)!r}, out={str(out)!r})"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd="/", stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        assert eventually(lambda: len(workers_of(process)) > 0)
        children = workers_of(process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert eventually(lambda: not any(map(is_running, children)))
