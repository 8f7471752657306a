"""An unfinished folder is removed when its process is gone, and not before."""

import errno
import fcntl
import tempfile
from pathlib import Path

import pytest

from export.files.locked_folder import remove_abandoned, trying_lock, unfinished_folder

DESCRIPTORS = Path("/proc/self/fd")


def left_by_a_killed_process(parent: Path) -> Path:
    folder = parent / ".semantic-search-abcd1234.partial"
    folder.mkdir()
    (folder / "model.ort").write_text("half")
    return folder


def test_a_folder_without_a_lock_is_removed(tmp_path: Path) -> None:
    left_by_a_killed_process(tmp_path)
    remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_stays_until_its_block_ends(tmp_path: Path) -> None:
    with unfinished_folder(tmp_path) as folder:
        remove_abandoned(tmp_path)
        assert folder.path.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_renamed_stays(tmp_path: Path) -> None:
    with unfinished_folder(tmp_path) as folder:
        folder.path.rename(tmp_path / "done")
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


@pytest.mark.parametrize("name", [".semantic-search-x.partial.txt", ".semantic-search.partial", "x.partial", ".bundle"])
def test_a_folder_of_another_name_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    remove_abandoned(tmp_path)
    assert (tmp_path / name).is_dir()


def test_without_locks_no_folder_counts_as_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")  # NFS, of a folder

    monkeypatch.setattr(fcntl, "flock", refuse)
    left = left_by_a_killed_process(tmp_path)
    with unfinished_folder(tmp_path) as folder:
        remove_abandoned(tmp_path)
        assert left.is_dir()
        assert folder.path.is_dir()
    assert not folder.path.exists()


def test_a_lock_on_a_folder_that_has_been_replaced_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, flock = tmp_path / ".semantic-search.whole", fcntl.flock
    folder.mkdir()

    def end_meanwhile(descriptor: int, operation: int) -> None:
        folder.rename(tmp_path / "older")
        folder.mkdir()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", end_meanwhile)
    with trying_lock(folder) as is_abandoned:
        assert not is_abandoned


@pytest.mark.parametrize("moment", ["before it is open", "before it is locked"])
def test_a_folder_that_another_process_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    mkdtemp, flock = tempfile.mkdtemp, fcntl.flock

    def make(prefix: str, suffix: str, dir: Path) -> str:
        made.append(mkdtemp(prefix=prefix, suffix=suffix, dir=dir))
        if len(made) == 1 and moment == "before it is open":
            Path(made[0]).rmdir()
        return made[-1]

    def lock(descriptor: int, operation: int) -> None:
        if len(made) == 1:
            Path(made[0]).rmdir()
        flock(descriptor, operation)

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(fcntl, "flock", lock)
    with unfinished_folder(tmp_path) as folder:
        assert folder.path.is_dir()
        assert str(folder.path) == made[1]


def test_an_error_names_the_folder_that_the_user_knows(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, unfinished_folder(tmp_path / "none"):
        pass
    assert caught.value.filename == str(tmp_path / "none")


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="lists its descriptors on Linux alone")
def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = len(list(DESCRIPTORS.iterdir()))
    left_by_a_killed_process(tmp_path)
    with unfinished_folder(tmp_path):
        remove_abandoned(tmp_path)
    assert len(list(DESCRIPTORS.iterdir())) == before
