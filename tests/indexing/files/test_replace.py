"""A bundle's folder changes whole or not at all, wherever it is and whenever the export stops."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.engine.bundle import MANIFEST, TOKENIZER, BundleError, check_bundle, read_manifest
from semsearch.indexing.replacing import FINISHED, PARTIAL, find_kept, finish_stopped, finishing, flush_one, replacing
from tests.command_line import contents, names


def copy_into(folder: Path, files: Path) -> None:
    shutil.copytree(files, folder, dirs_exist_ok=True)


def put(out: Path, files: Path) -> None:
    """Replace the files of the folder by these."""
    with replacing(out) as fresh:
        copy_into(fresh, files)


def holds(out: Path, files: Path) -> bool:
    """Return whether the folder has these files and nothing else."""
    return names(out) == names(files) and contents(out) == contents(files)


@pytest.fixture
def new(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another bundle: its manifest and its tokenizer differ."""
    folder = Path(shutil.copytree(bundle, tmp_path_factory.mktemp("new") / "new"))
    manifest = read_manifest(folder)
    (folder / TOKENIZER).write_text("another one")
    (folder / MANIFEST).write_text(replace(manifest, model=replace(manifest.model, name="new")).to_json())
    return folder


def test_a_new_bundle_stands_under_its_name_when_all_is_written(new: Path, tmp_path: Path) -> None:
    out = tmp_path / "not" / "yet" / "there"
    with replacing(out) as fresh:
        assert names(fresh) == ["lock"]
        assert fresh.parent == out  # the same file system, whatever is mounted where
        copy_into(fresh, new)
        with pytest.raises(BundleError, match=r"holds no manifest\.json"):
            check_bundle(out)
    assert holds(out, new)
    assert names(tmp_path) == ["not"]


def linked(link: Path, target: Path) -> Path:
    link.symlink_to(target)
    return link


@pytest.mark.parametrize(
    "place",
    [
        lambda bundle: Path("bundle"),
        lambda bundle: linked(bundle.parent / "current", bundle),
        lambda bundle: linked(bundle.parent / "current", bundle.parent / "v1"),
    ],
    ids=["a relative path", "a link to a bundle", "a link to no folder yet"],
)
def test_a_folder_is_replaced_where_it_is(
    place: Callable[[Path], Path], bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bundle_copy.parent)
    out = place(bundle_copy)
    kind, inode = out.is_symlink(), out.stat().st_ino if out.exists() else None
    others = set(names(bundle_copy.parent))
    with replacing(out) as fresh:
        copy_into(fresh, new)
        os.chdir("/")
    os.chdir(bundle_copy.parent)
    assert holds(out, new)
    assert (out.is_symlink(), inode) == (kind, inode and out.stat().st_ino)
    assert set(names(bundle_copy.parent)) - others <= {"v1"}


def test_a_new_folder_can_be_read_by_everyone(new: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        put(tmp_path / "out", new)
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("holiday.jpg", "holds holiday.jpg, so it is not a bundle"),
        ("manifest.json", "holds manifest.json, and neither model.ort nor index.safetensors, so it is not a bundle"),
    ],
)
def test_a_folder_that_is_not_a_bundle_is_not_touched(name: str, message: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("precious")
    with pytest.raises(BundleError) as caught:
        replacing(out).__enter__()
    assert str(caught.value).startswith(f"{out}: {message}")
    assert names(out) == [name]
    assert contents(out) == {name: b"precious"}


def stop_half_way(out: Path, stop: type[BaseException] = RuntimeError) -> None:
    """Begin an export and let it end with this exception."""

    def export() -> None:
        with replacing(out) as fresh:
            (fresh / MANIFEST).write_text("half of it")
            raise stop

    with pytest.raises(stop):
        export()


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_a_stop_leaves_the_old_bundle_byte_for_byte(bundle: Path, bundle_copy: Path, stop: type[BaseException]) -> None:
    stop_half_way(bundle_copy, stop)
    assert holds(bundle_copy, bundle)
    assert names(bundle_copy.parent) == ["bundle"]


@pytest.mark.parametrize(("moved", "stop"), [(1, KeyboardInterrupt()), (4, OSError(errno.EIO, "Input/output error"))])
def test_after_a_stop_while_files_move_the_next_export_moves_the_rest(
    bundle_copy: Path, new: Path, moved: int, stop: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping_after(moved, stop))
        with pytest.raises(type(stop)):
            put(bundle_copy, new)
    with pytest.raises(BundleError, match=r"holds no manifest\.json"):
        check_bundle(bundle_copy)
    if moved == 1:
        stop_half_way(bundle_copy)
    else:
        finish_stopped(bundle_copy)
    assert holds(bundle_copy, new)


def stopping_after(count: int, stop: BaseException) -> Callable[[Path, Path], Path]:
    replace, left = Path.replace, [count]

    def replace_or_stop(self: Path, target: Path) -> Path:
        if not left[0]:
            raise stop
        left[0] -= 1
        return replace(self, target)

    return replace_or_stop


@pytest.mark.parametrize("is_new", [False, True])
def test_a_second_export_into_a_folder_is_refused(is_new: bool, bundle_copy: Path, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" if is_new else bundle_copy
    with replacing(out) as fresh:
        copy_into(fresh, new)
        with pytest.raises(BundleError, match=f"{out.name}: another command writes into it"):
            replacing(out).__enter__()
    assert holds(out, new)


def test_a_lock_on_a_file_that_was_removed_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def end_meanwhile(descriptor: int, operation: int) -> None:
        (tmp_path / "out" / PARTIAL / "lock").unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", end_meanwhile)
    with pytest.raises(BundleError, match="another command writes into it"):
        replacing(tmp_path / "out").__enter__()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[int, Path]:
    """The path of each file that is opened to be flushed, by its descriptor. No system flushes it by itself."""
    paths: dict[int, Path] = {}
    open_file = os.open

    def open_and_note(path: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = open_file(path, flags, mode)
        paths[descriptor] = path
        return descriptor

    monkeypatch.setattr(os, "open", open_and_note)
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)
    return paths


def test_a_piece_is_flushed_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: dict[int, Path]
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(opened[descriptor]))
    with finishing(tmp_path, "shard") as path:
        path.write_text("shard")
    assert flushed == [tmp_path / "shard.unfinished", tmp_path / FINISHED]
    flushed.clear()
    with finishing(tmp_path, "model") as path:
        path.mkdir()
        (path / "a").touch()
    assert flushed == [tmp_path / "model.unfinished" / "a", tmp_path / "model.unfinished", tmp_path / FINISHED]
    assert names(tmp_path) == [FINISHED]
    assert names(tmp_path / FINISHED) == ["model", "shard"]


@pytest.mark.parametrize(("is_refused", "by"), [(False, ["drive"]), (True, ["drive", "fsync"])])
def test_a_mac_flushes_its_drive_too_unless_that_is_on_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_refused: bool, by: list[str]
) -> None:
    flushed: list[str] = []

    def flush_drive(descriptor: int, command: int) -> int:
        assert command == 51
        flushed.append("drive")
        if is_refused:
            raise OSError(errno.ENOTSUP, "Operation not supported")
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", flush_drive)
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append("fsync"))
    flush_one(tmp_path)
    assert flushed == by


def test_what_moves_is_flushed_before_and_after(
    bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch, opened: dict[int, Path]
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(opened[descriptor]))
    partial = bundle_copy / PARTIAL
    with replacing(bundle_copy) as fresh:
        copy_into(fresh, new)
        (fresh / FINISHED).mkdir()
    written = {partial / name for name in (*names(new), "lock")}
    assert set(flushed[: len(written)]) == written
    assert flushed[len(written) :] == [partial, partial, bundle_copy, bundle_copy, bundle_copy]


def test_what_a_killed_run_left_is_deleted_except_finished_pieces(bundle_copy: Path, bundle: Path) -> None:
    partial = bundle_copy / PARTIAL
    (partial / "folder" / "deep").mkdir(parents=True)
    (partial / "index.safetensors").write_text("half of it")
    with replacing(bundle_copy) as fresh:
        assert names(fresh) == ["lock"]
        with finishing(fresh, "piece") as path:
            path.write_text("piece")
        (fresh / "new").touch()  # and no bundle
        assert find_kept(bundle_copy) == partial
    assert names(partial) == [FINISHED, "lock"]
    stop_half_way(bundle_copy)
    assert names(partial) == [FINISHED, "lock"]
    put(bundle_copy, bundle)
    assert find_kept(bundle_copy) is None
    assert holds(bundle_copy, bundle)


def test_the_root_of_a_disk_can_be_a_folder_for_a_bundle(new: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "lost+found").mkdir(parents=True)
    put(tmp_path / "out", new)
    assert contents(tmp_path / "out") == contents(new)


def test_a_bundle_whose_move_was_stopped_before_its_first_file_is_no_foreign_folder(
    new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping_after(2, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            put(out, new)
    assert names(out) == [PARTIAL, *sorted(set(names(new)) - {MANIFEST})[:2]]
    finish_stopped(out)
    assert holds(out, new)


def test_a_file_that_the_new_bundle_lacks_is_removed(bundle_copy: Path, new: Path) -> None:
    for name in ("truncated.jsonl", "source.txt", "rerank.ort"):
        (bundle_copy / name).write_text("older")
    with replacing(bundle_copy) as fresh:
        copy_into(fresh, new)
        (fresh / "source.txt").write_text("newer")
        (fresh / "other").write_text("no file of a bundle")
    assert (bundle_copy / "source.txt").read_text() == "newer"
    assert names(bundle_copy) == sorted([*names(new), "source.txt"])


def test_a_finished_move_leaves_nothing_to_do(new: Path, tmp_path: Path) -> None:
    put(tmp_path / "out", new)
    finish_stopped(tmp_path / "out")
    finish_stopped(tmp_path / "none")
    assert holds(tmp_path / "out", new)
    assert not (tmp_path / "none").exists()
