"""Two programs that write into one index: with `wait`, the second one goes on when the first has ended."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from semsearch import BundleError, OptionError, changing, index, remove
from semsearch.engine.bundle import MANIFEST
from semsearch.indexing import options
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.replacing import BusyError, replacing
from tests.command_line import error_line, run
from tests.indexing.coats import coats, found
from tests.project import ROOT
from tests.server.running import WAIT

WRITER = """
import sys
from pathlib import Path
from semsearch import changing, index
from semsearch.indexing import steps
from tests.indexing.coats import coats

steps.measure_floor = lambda folder, manifest, on_progress: manifest  # as in the process of the tests
out, rows = Path(sys.argv[2]), [{"sku": "w-1", "text": "A coat of the other writer"}]

def pause(*_):
    global pause
    pause = lambda *_: None
    print("writes", flush=True)
    sys.stdin.readline()

if sys.argv[1] == "index":
    index([*coats(3), *rows], out=out, id_column="sku", progress=lambda *told: pause())
else:
    with changing(out, progress=False) as texts:
        texts.upsert(rows)
        pause()
        if sys.argv[1] == "nothing":
            raise SystemExit("gives up")
"""
BY_OTHER = {"w-1": "A coat of the other writer"}
BEFORE = {row["sku"]: row["text"] for row in coats(3)}


@contextmanager
def writer(work: str, out: Path) -> Iterator[Callable[[], int]]:
    """Start another process that writes into `out`; yield what lets it end, and returns its exit code."""
    command = [sys.executable, "-c", WRITER, work, str(out)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"

        def finish() -> int:
            process.communicate("\n", timeout=WAIT)
            return process.returncode

        try:
            yield finish
        finally:
            process.kill()


class Told:
    """A function that gets the progress, and lets the other process end when it is waited for."""

    def __init__(self, finish: Callable[[], int]) -> None:
        self.steps: list[tuple[str, float]] = []
        self.codes: list[int] = []
        self._finish = finish

    def __call__(self, step: str, share: float, texts: int = 0) -> None:
        if step == "wait for the index" and not self.codes:
            self.codes.append(self._finish())
        self.steps.append((step, share))


def upsert(out: Path, progress: Any) -> None:
    index([{"sku": "c-1", "text": "A red coat"}], out=out, mode="upsert", wait=WAIT, progress=progress)


def change(out: Path, progress: Any) -> None:
    with changing(out, wait=WAIT, progress=progress) as texts:
        texts.upsert([{"sku": "c-1", "text": "A red coat"}])


def remove_one(out: Path, progress: Any) -> None:
    remove("c-1", out, wait=WAIT, progress=progress)


RED: Mapping[str, str] = {"c-1": "A red coat"}
WORK: list[tuple[Callable[[Path, Any], None], Mapping[str, str | None]]] = [
    (upsert, RED),
    (change, RED),
    (remove_one, {"c-1": None}),
]


@pytest.mark.parametrize("is_new", [False, True], ids=["an older index", "the first index"])
@pytest.mark.parametrize(("work", "changed"), WORK, ids=["index", "changing", "remove"])
def test_the_second_writer_waits_and_changes_what_the_first_has_made(
    work: Callable[[Path, Any], None], changed: Mapping[str, str | None], is_new: bool, out: Path
) -> None:
    if not is_new:
        index(coats(3), out=out, id_column="sku")
    with writer("index" if is_new else "changing", out) as finish:
        told = Told(finish)
        work(out, told)
    assert told.codes == [0]
    assert told.steps[:2] == [("wait for the index", 0), ("wait for the index", 1)]
    assert "wait for the index" not in [step for step, _ in told.steps[2:]]
    assert work is remove_one or len(told.steps) > 2  # the work itself reports too
    expected = {**BEFORE, **BY_OTHER, **changed}
    assert found(out) == {id: text for id, text in expected.items() if text is not None}


def test_without_a_choice_the_wait_is_shown_as_other_progress(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = list[object]()

    @contextmanager
    def noted(choice: object) -> Iterator[OnProgress]:
        chosen.append(choice)
        yield no_progress

    monkeypatch.setattr(options, "chosen_progress", noted)
    index(coats(3), out=out, id_column="sku", wait=WAIT)
    index(coats(3), out=out, id_column="sku", wait=WAIT, progress=False)
    assert chosen == [True, False]


def test_a_writer_that_gives_up_leaves_what_was_there_to_the_next(out: Path) -> None:
    index(coats(3), out=out, id_column="sku")
    with writer("nothing", out) as finish:
        told = Told(finish)
        upsert(out, told)
    assert told.codes == [1]
    assert found(out) == {**BEFORE, **RED}


def test_the_error_says_how_long_it_waited_and_without_wait_it_comes_at_once(out: Path) -> None:
    index(coats(3), out=out, id_column="sku")
    told = list[tuple[Any, ...]]()
    with writer("changing", out) as finish:
        with pytest.raises(BusyError, match=r"another command writes into it, .*; waited 0\.5 seconds for it$"):
            index(coats(1), out=out, mode="upsert", wait=0.5, progress=lambda *step: told.append(step))
        assert {step for step, *_ in told} == {"wait for the index"}
        with pytest.raises(BundleError, match=r"waited 0\.1 seconds"), changing(out, wait=0.1):
            pytest.fail("the block began")
        works: list[Callable[[], object]] = [
            lambda: index(coats(1), out=out, mode="upsert"),
            lambda: remove("c-1", out),
        ]
        for work in works:
            with pytest.raises(BusyError, match=r"name another out=$"):
                work()
        line = error_line(run("index", ROOT / "README.md", "--out", out, "--replace", "--wait", "0.1"))
        assert "waited 0.1 seconds for it" in line
        assert "waited 0.1 seconds for it" in error_line(run("remove", out, "c-1", "--wait", "0.1"))
        assert finish() == 0
    assert found(out) == {**BEFORE, **BY_OTHER}


def test_nobody_is_waited_for_who_does_not_write(out: Path) -> None:
    told = list[str]()
    index(coats(3), out=out, id_column="sku", wait=WAIT, progress=lambda step, share, texts=0: told.append(step))
    assert "wait for the index" not in told
    with pytest.raises(BundleError, match="holds no texts to change"):
        remove("c-1", out.parent / "nothing", wait=WAIT)
    with pytest.raises(BundleError, match="no text with the id 'c-9'"):
        remove("c-9", out, wait=WAIT)


def test_an_error_of_the_block_is_no_reason_to_begin_again(out: Path) -> None:
    index(coats(3), out=out, id_column="sku")
    begun = list[str]()

    def block() -> None:
        with changing(out, wait=WAIT, progress=False) as texts:
            begun.append("c-0")
            texts.remove("c-0")
            raise BusyError("of the block")

    with pytest.raises(BusyError, match="of the block"):
        block()
    assert begun == ["c-0"]
    assert found(out) == BEFORE


def test_a_change_between_the_options_and_the_lock_is_waited_for_too(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(coats(3), out=out, id_column="sku")
    others = ["Coats"]

    def replacing_later(folder: Path) -> AbstractContextManager[Path]:
        if others:
            title = others.pop()
            index(coats(3), out=out, title=title, mode="replace")
        return replacing(folder)

    monkeypatch.setattr("semsearch.indexing.steps.replacing", replacing_later)
    made = index([{"sku": "c-1", "text": "A red coat"}], out=out, mode="upsert", wait=WAIT)
    assert made.manifest.corpus.title == "Coats"
    assert found(out) == {**BEFORE, **RED}


def test_a_bundle_whose_files_move_is_written_and_not_damaged(out: Path) -> None:
    index(coats(3), out=out, id_column="sku")
    whole = (out / MANIFEST).read_bytes()
    works: list[Callable[[], object]] = [lambda: index(coats(3), out=out), lambda: remove("c-1", out)]
    for manifest in (b"{", None):
        with replacing(out):
            (out / MANIFEST).unlink()
            if manifest is not None:
                (out / MANIFEST).write_bytes(manifest)
            for work in works:
                with pytest.raises(BusyError, match="another command writes into it"):
                    work()
            (out / MANIFEST).write_bytes(whole)
    (out / MANIFEST).write_bytes(b"{")
    for work in works:
        with pytest.raises(BundleError, match="Expecting property name"):
            work()


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_wrong_time_is_refused(seconds: float, out: Path) -> None:
    index(coats(3), out=out, id_column="sku")
    with pytest.raises(OptionError, match="expected 0 or more seconds"):
        index(coats(1), out=out, wait=seconds)
    with pytest.raises(OptionError, match="expected 0 or more seconds"):
        remove("c-1", out, wait=seconds)


def test_a_published_bundle_is_not_waited_for() -> None:
    done = run("remove", "s3://bucket/search", "c-1", "--wait", "1")
    assert done.code == 2
    assert "--wait: is for the folder of a bundle" in done.err
