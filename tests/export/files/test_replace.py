"""A bundle's folder changes whole or not at all, wherever it is and whenever the export stops."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from export.files.replace import COMPLETE, replacing
from export.files.resume import PARTIAL
from function.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    MANIFEST,
    MODEL,
    PASSAGES,
    TOKENIZER,
    BundleError,
    open_bundle,
    read_manifest,
)
from tests.export.disks import mounted, small_disk

ROOT = Path(__file__).parents[3]
DESCRIPTORS = Path("/proc/self/fd")
Contents = dict[str, bytes]
Stop = Callable[..., None]


def contents(folder: Path) -> Contents:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def copy_into(folder: Path, files: Path) -> None:
    shutil.copytree(files, folder, dirs_exist_ok=True)


@pytest.fixture
def new(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another bundle: its manifest and its tokenizer differ."""
    folder = Path(shutil.copytree(bundle, tmp_path_factory.mktemp("new") / "new"))
    manifest = read_manifest(folder)
    (folder / TOKENIZER).write_text("another one")
    (folder / MANIFEST).write_text(replace(manifest, model=replace(manifest.model, name="new")).to_json())
    return folder


@pytest.fixture
def new_model(new: Path) -> Path:
    """A bundle without texts."""
    manifest = read_manifest(new)
    files = {name: manifest.files[name] for name in (MODEL, TOKENIZER)}
    (new / MANIFEST).write_text(replace(manifest, index=None, files=files).to_json())
    (new / INDEX).unlink()
    (new / PASSAGES).unlink()
    (new / COLUMNS).unlink()
    (new / KEYWORDS).unlink()
    return new


# Places


def test_a_new_bundle_stands_under_its_name_when_all_is_written(new: Path, tmp_path: Path) -> None:
    out = tmp_path / "not" / "yet" / "there"
    with replacing(out) as fresh:
        assert names(fresh) == ["lock"]
        assert fresh.parent == out  # the same file system, whatever is mounted where
        copy_into(fresh, new)
        with pytest.raises(BundleError, match=r"holds no manifest\.json"):
            open_bundle(out)
    assert contents(out) == contents(new)
    assert names(tmp_path) == ["not"]


def test_an_old_bundle_is_replaced_whole(bundle_copy: Path, new: Path) -> None:
    with replacing(bundle_copy) as fresh:
        copy_into(fresh, new)
    assert contents(bundle_copy) == contents(new)
    assert names(bundle_copy.parent) == ["bundle"]


def test_files_that_the_new_bundle_does_not_list_go(bundle_copy: Path, new_model: Path) -> None:
    with replacing(bundle_copy) as fresh:
        copy_into(fresh, new_model)
    assert contents(bundle_copy) == contents(new_model)


def test_a_new_folder_can_be_read_by_everyone(new: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with replacing(tmp_path / "out") as fresh:
            copy_into(fresh, new)
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_the_folder_of_an_old_bundle_stays_the_same_folder(
    bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bundle_copy.stat().st_ino
    rename = os.rename

    def refuse_mount_points(source: Path, target: Path) -> None:
        if Path(source) == bundle_copy:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(source))
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_mount_points)
    with replacing(bundle_copy) as fresh:
        copy_into(fresh, new)
    assert contents(bundle_copy) == contents(new)
    assert bundle_copy.stat().st_ino == before


def test_a_mount_point_is_replaced(bundle: Path, new: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "volume", *small_disk(8_000)) as out:
        for files in (bundle, new):
            with replacing(out) as fresh:
                copy_into(fresh, files)
            assert contents(out) == contents(files)


def test_a_folder_mounted_from_the_same_disk_is_replaced(bundle_copy: Path, new: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "volume", "--bind", str(bundle_copy)) as out:
        with replacing(out) as fresh:
            copy_into(fresh, new)
        assert contents(out) == contents(new)
    assert contents(bundle_copy) == contents(new)


def test_a_volume_with_the_folder_that_ext4_makes_is_taken(new: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "volume", *small_disk(8_000)) as out:
        (out / "lost+found").mkdir()
        with replacing(out) as fresh:
            copy_into(fresh, new)
        assert (out / "lost+found").is_dir()
        assert names(out) == sorted([*names(new), "lost+found"])


def test_a_folder_called_lost_and_found_elsewhere_is_somebodys(tmp_path: Path) -> None:
    (tmp_path / "out" / "lost+found").mkdir(parents=True)
    with pytest.raises(BundleError, match=r"out: holds lost\+found, so it is not a bundle"):
        replacing(tmp_path / "out").__enter__()


def test_a_folder_on_a_disk_of_its_own_is_replaced_though_the_one_above_is_read_only(new: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "above", *small_disk(100)) as above, mounted(above / "out", *small_disk(8_000)) as out:
        subprocess.run(["mount", "-o", "remount,ro", above], check=True)
        with replacing(out) as fresh:
            copy_into(fresh, new)
        assert contents(out) == contents(new)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_is_replaced_though_the_one_above_cannot_be_written(bundle_copy: Path, new: Path) -> None:
    bundle_copy.parent.chmod(0o555)
    try:
        with replacing(bundle_copy) as fresh:
            copy_into(fresh, new)
    finally:
        bundle_copy.parent.chmod(0o755)
    assert contents(bundle_copy) == contents(new)


def test_a_bundle_behind_a_link_is_replaced_where_it_is(bundle_copy: Path, new: Path, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(bundle_copy)
    with replacing(link) as fresh:
        copy_into(fresh, new)
    assert link.is_symlink()
    assert contents(bundle_copy) == contents(new)


def test_a_bundle_behind_a_link_to_a_mount_point_is_replaced_there(new: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "volume", *small_disk(8_000)) as out:
        (tmp_path / "current").symlink_to(out)
        with replacing(tmp_path / "current") as fresh:
            copy_into(fresh, new)
        assert contents(out) == contents(new)


def test_a_link_to_no_folder_yet_gets_one(new: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(tmp_path / "v1")
    with replacing(tmp_path / "current") as fresh:
        copy_into(fresh, new)
    assert contents(tmp_path / "v1") == contents(new)


def test_a_bundle_named_from_the_working_folder_is_replaced(
    bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bundle_copy.parent)
    with replacing(Path("bundle")) as fresh:
        copy_into(fresh, new)
        os.chdir("/")
    assert contents(bundle_copy) == contents(new)


def test_the_working_folder_can_be_the_bundle(bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundle_copy)
    with replacing(Path()) as fresh:
        copy_into(fresh, new)
    assert Path.cwd() == bundle_copy.resolve()  # raises in a folder that was deleted
    assert contents(Path()) == contents(new)


def test_an_empty_folder_is_taken(new: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with replacing(tmp_path / "out") as fresh:
        copy_into(fresh, new)
    assert contents(tmp_path / "out") == contents(new)


# What is not touched


def test_a_folder_that_is_not_a_bundle_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "holiday.jpg").write_bytes(b"precious")
    with pytest.raises(BundleError, match=r"photos: holds holiday.jpg, so it is not a bundle"):
        replacing(out).__enter__()
    assert contents(out) == {"holiday.jpg": b"precious"}
    assert names(tmp_path) == ["photos"]


def test_the_folder_above_the_working_folder_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    with pytest.raises(BundleError, match="holds project, so it is not a bundle"):
        replacing(Path("..")).__enter__()


def test_a_folder_with_another_kind_of_manifest_is_not_touched(tmp_path: Path) -> None:
    out = tmp_path / "website"
    out.mkdir()
    (out / "manifest.json").write_text('{"name": "My web app", "start_url": "/", "display": "standalone"}')
    (out / "index.html").write_text("precious")
    with pytest.raises(BundleError, match=r"website: holds index\.html"):
        replacing(out).__enter__()
    assert (out / "index.html").read_text() == "precious"


def test_a_folder_with_nothing_but_another_kind_of_manifest_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "extension").mkdir()
    (tmp_path / "extension" / "manifest.json").write_text('{"name": "My extension"}')
    with pytest.raises(BundleError, match=r"extension: holds manifest.json and no model.ort, so it is not a bundle"):
        replacing(tmp_path / "extension").__enter__()
    assert contents(tmp_path / "extension") == {"manifest.json": b'{"name": "My extension"}'}


def test_a_folder_in_the_place_of_a_bundles_file_is_not_touched(bundle_copy: Path) -> None:
    (bundle_copy / MODEL).unlink()
    (bundle_copy / MODEL).mkdir()
    with pytest.raises(BundleError, match=r"bundle: holds model\.ort, so it is not a bundle"):
        replacing(bundle_copy).__enter__()
    assert (bundle_copy / MODEL).is_dir()


def test_the_root_of_all_folders_is_refused() -> None:
    with pytest.raises(BundleError, match=r"^/: is the root of all folders"):
        replacing(Path("/")).__enter__()


def test_a_file_in_the_place_of_the_bundle_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("precious")
    with pytest.raises(BundleError, match="out: is a file; expected a folder"):
        replacing(tmp_path / "out").__enter__()
    assert (tmp_path / "out").read_text() == "precious"


def test_a_place_where_nothing_can_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError) as caught:
        replacing(Path("/dev/null/bundle")).__enter__()
    assert caught.value.filename == "/dev/null/bundle"


def test_a_read_only_disk_is_refused_before_any_work_and_named(bundle: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "volume", *small_disk(8_000)) as out:
        copy_into(out, bundle)
        subprocess.run(["mount", "-o", "remount,ro", out], check=True)
        with pytest.raises(OSError, match="Read-only file system") as caught:
            replacing(out).__enter__()
        assert (caught.value.errno, caught.value.filename) == (errno.EROFS, str(out))
        assert contents(out) == contents(bundle)


def test_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises((BundleError, OSError)):  # an OSError since Python 3.13
        replacing(tmp_path / "a").__enter__()


def test_a_deleted_working_folder_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(BundleError, match=r"^bundle: the current folder was deleted; expected one that exists"):
        replacing(Path("bundle")).__enter__()


# Stops


def stop_half_way(out: Path, stop: type[BaseException]) -> None:
    with replacing(out) as fresh:
        (fresh / MANIFEST).write_text("half of it")
        raise stop


@pytest.mark.parametrize("stop", [RuntimeError, BundleError, KeyboardInterrupt, SystemExit])
def test_an_error_or_an_interruption_leaves_the_old_bundle_byte_for_byte(
    bundle_copy: Path, stop: type[BaseException]
) -> None:
    before = contents(bundle_copy)
    with pytest.raises(stop):
        stop_half_way(bundle_copy, stop)
    assert contents(bundle_copy) == before
    assert names(bundle_copy.parent) == ["bundle"]


def test_an_error_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        stop_half_way(tmp_path / "not" / "there", RuntimeError)
    assert names(tmp_path) == []


def test_an_error_leaves_an_empty_folder_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(RuntimeError):
        stop_half_way(tmp_path / "out", RuntimeError)
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize("moved", [1, 2, 3, 4])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, OSError(errno.EIO, "Input/output error")])
def test_a_stop_while_files_move_is_reported_and_the_next_export_moves_the_rest(
    bundle_copy: Path, new: Path, moved: int, stop: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping_after(moved, stop))
        with pytest.raises(BundleError, match="stopped while the new files moved into it"), replacing(bundle_copy) as f:
            copy_into(f, new)
    with pytest.raises(BundleError, match=r"holds no manifest\.json"):
        open_bundle(bundle_copy)
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert contents(bundle_copy) == contents(new)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_stop_while_a_killed_exports_files_move_is_reported(
    bundle_copy: Path, new: Path, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_into(bundle_copy / PARTIAL, new)
    (bundle_copy / PARTIAL / COMPLETE).touch()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping_after(1, stop()))
        with pytest.raises(BundleError, match="stopped while the new files moved into it"):
            stop_half_way(bundle_copy, RuntimeError)
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert contents(bundle_copy) == contents(new)


def stopping_after(count: int, stop: BaseException) -> Callable[[Path, Path], Path]:
    replace, left = Path.replace, [count]

    def replace_or_stop(self: Path, target: Path) -> Path:
        if not left[0]:
            raise stop
        left[0] -= 1
        return replace(self, target)

    return replace_or_stop


def test_a_manifest_that_cannot_be_removed_leaves_the_old_bundle(
    bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bundle_copy)

    unlink = Path.unlink

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self.parent == bundle_copy:
            raise PermissionError(errno.EPERM, "Operation not permitted", str(self))
        unlink(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        with pytest.raises(PermissionError), replacing(bundle_copy) as fresh:
            copy_into(fresh, new)
    assert contents(bundle_copy) == before


def test_an_error_of_the_disk_while_it_keeps_the_files_names_the_path_and_leaves_the_old_bundle(
    bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(bundle_copy)

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error") as caught, replacing(bundle_copy) as fresh:
        copy_into(fresh, new)
    assert Path(caught.value.filename).parent == bundle_copy / PARTIAL
    assert contents(bundle_copy) == before


# Killed processes

KILLED_HALF_WAY = """
import os, signal, sys
from pathlib import Path
from export.files.replace import replacing
with replacing(Path(sys.argv[1])) as fresh:
    (fresh / "manifest.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
KILLED_WHILE_MOVING = """
import os, shutil, signal, sys
from pathlib import Path
from export.files.replace import replacing
replace, left = Path.replace, int(sys.argv[3])
def replace_or_die(self, target):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return replace(self, target)
Path.replace = replace_or_die
with replacing(Path(sys.argv[1])) as fresh:
    shutil.copytree(sys.argv[2], fresh, dirs_exist_ok=True)
"""


def run_killed(code: str, *arguments: object) -> None:
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_killed_process_leaves_the_old_bundle_and_the_next_export_removes_what_it_left(
    bundle_copy: Path, new: Path
) -> None:
    open_before, names_before = open_bundle(bundle_copy), names(bundle_copy)
    run_killed(KILLED_HALF_WAY, bundle_copy)
    assert len(names(bundle_copy)) == len(names_before) + 1
    assert open_bundle(bundle_copy) == open_before
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert names(bundle_copy) == names_before
    assert open_bundle(bundle_copy) == open_before


def test_files_of_a_killed_export_in_a_new_folder_do_not_stop_the_next_export(tmp_path: Path, new: Path) -> None:
    run_killed(KILLED_HALF_WAY, tmp_path / "out")
    with replacing(tmp_path / "out") as fresh:
        copy_into(fresh, new)
    assert contents(tmp_path / "out") == contents(new)


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_bundle_whose_process_was_killed_while_files_moved_does_not_open_until_the_rest_has_moved(
    bundle_copy: Path, new_model: Path, moved: int
) -> None:
    run_killed(KILLED_WHILE_MOVING, bundle_copy, new_model, moved)
    with pytest.raises(BundleError, match=r"holds no manifest\.json"):
        open_bundle(bundle_copy)
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert contents(bundle_copy) == contents(new_model)


def test_the_folder_of_an_export_killed_at_its_end_is_removed(bundle_copy: Path) -> None:
    before = contents(bundle_copy)
    (bundle_copy / PARTIAL).mkdir()
    (bundle_copy / PARTIAL / COMPLETE).touch()
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert contents(bundle_copy) == before


# Two at once


def test_a_second_export_into_the_folder_is_refused_and_disturbs_nothing(bundle_copy: Path, new: Path) -> None:
    with replacing(bundle_copy) as fresh:
        copy_into(fresh, new)
        with pytest.raises(BundleError, match="bundle: another export is writing into this folder"):
            replacing(bundle_copy).__enter__()
    assert contents(bundle_copy) == contents(new)


def test_a_second_export_into_a_new_folder_leaves_it_to_the_first(tmp_path: Path, new: Path) -> None:
    with replacing(tmp_path / "out") as fresh:
        with pytest.raises(BundleError, match="another export is writing"):
            replacing(tmp_path / "out").__enter__()
        copy_into(fresh, new)
    assert contents(tmp_path / "out") == contents(new)


def test_a_lock_on_a_file_that_another_export_has_removed_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def end_meanwhile(descriptor: int, operation: int) -> None:
        (tmp_path / "out" / PARTIAL / "lock").unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", end_meanwhile)
    with pytest.raises(BundleError, match="another export is writing"):
        replacing(tmp_path / "out").__enter__()


def test_a_file_system_without_locks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="No locks available") as caught:
        replacing(tmp_path / "out").__enter__()
    assert caught.value.filename == str(tmp_path / "out")


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="lists its descriptors on Linux alone")
def test_no_descriptor_stays_open(bundle_copy: Path) -> None:
    before = len(list(DESCRIPTORS.iterdir()))
    with pytest.raises(RuntimeError):
        stop_half_way(bundle_copy, RuntimeError)
    assert len(list(DESCRIPTORS.iterdir())) == before
