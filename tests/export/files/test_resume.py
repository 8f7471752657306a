"""What is finished outlives an export that is stopped, and nothing else does."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from export.files.replace import COMPLETE, FINISHED, PARTIAL, find_kept, finishing, replacing
from function.engine.bundle import MODEL
from tests.export.command_line import contents, names
from tests.export.files.test_replace import copy_into, run_killed

KILLED = """
import os, signal, sys
from pathlib import Path
from export.files.replace import finishing, replacing
with replacing(Path(sys.argv[1])) as fresh:
    (fresh / "model.ort").write_text("not finished")
    with finishing(fresh, "shard") as path:
        path.write_text("whole")
    with finishing(fresh, "model") as path:
        path.mkdir()
        (path / "model.ort").write_text("whole")
    with finishing(fresh, "half") as path:
        path.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def finish(fresh: Path, name: str) -> None:
    with finishing(fresh, name) as path:
        path.write_text(name)


def stop_after(out: Path, stop: type[BaseException], work: Callable[[Path], object]) -> None:
    """Do some work in an unfinished folder of the bundle, and stop."""
    with replacing(out) as fresh:
        work(fresh)
        raise stop


def finished(fresh: Path) -> list[str]:
    return names(fresh / FINISHED) if (fresh / FINISHED).exists() else []


def test_the_next_export_takes_over_what_a_killed_one_has_finished(tmp_path: Path, bundle: Path) -> None:
    run_killed(KILLED, tmp_path / "out")
    (kept,) = (tmp_path / "out").iterdir()
    assert find_kept(tmp_path / "out") == kept
    with replacing(tmp_path / "out") as fresh:
        assert names(fresh) == [FINISHED, "lock"]
        assert finished(fresh) == ["model", "shard"]
        assert (fresh / FINISHED / "model" / "model.ort").read_text() == "whole"
        copy_into(fresh, bundle)
    assert names(tmp_path / "out") == names(bundle)


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_an_error_and_an_interruption_keep_what_is_finished_and_remove_the_rest(
    bundle_copy: Path, stop: type[BaseException]
) -> None:
    before = contents(bundle_copy)

    def work(fresh: Path) -> None:
        finish(fresh, "shard")
        (fresh / MODEL).write_text("half")
        (fresh / "folder").mkdir()

    with pytest.raises(stop):
        stop_after(bundle_copy, stop, work)
    kept = find_kept(bundle_copy)
    assert kept is not None
    assert names(kept) == [FINISHED, "lock"]
    assert contents(bundle_copy) == before


def test_files_of_an_export_killed_while_they_moved_leave_nothing_finished(tmp_path: Path, bundle: Path) -> None:
    partial = tmp_path / "out" / PARTIAL
    copy_into(partial, bundle)
    (partial / COMPLETE).touch()
    (partial / FINISHED).mkdir()
    (partial / FINISHED / "shard").write_text("whole")
    with pytest.raises(RuntimeError):
        stop_after(tmp_path / "out", RuntimeError, lambda fresh: None)
    assert names(tmp_path / "out") == names(bundle)


def test_a_piece_is_flushed_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    finish(tmp_path, "shard")
    assert flushed == [tmp_path / "shard.unfinished", tmp_path / FINISHED]
