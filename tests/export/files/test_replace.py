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

from export.files.replace import COMPLETE, PARTIAL, replacing
from function.engine.bundle import MANIFEST, MODEL, TOKENIZER, BundleError, open_bundle, read_manifest
from tests.export.command_line import contents, names
from tests.export.disks import mounted, small_disk

ROOT = Path(__file__).parents[3]


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


@pytest.fixture
def new_model(new: Path) -> Path:
    """A bundle without texts."""
    manifest = read_manifest(new)
    files = {name: manifest.files[name] for name in (MODEL, TOKENIZER)}
    (new / MANIFEST).write_text(replace(manifest, index=None, files=files).to_json())
    for name in manifest.files.keys() - files.keys():
        (new / name).unlink()
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
    assert holds(out, new)
    assert names(tmp_path) == ["not"]


def linked(link: Path, target: Path) -> Path:
    link.symlink_to(target)
    return link


def empty(folder: Path) -> Path:
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    "place",
    [
        lambda bundle: bundle,
        lambda bundle: Path("bundle"),
        lambda bundle: linked(bundle.parent / "current", bundle),
        lambda bundle: linked(bundle.parent / "current", bundle.parent / "v1"),
        lambda bundle: empty(bundle.parent / "empty"),
    ],
    ids=["a bundle", "a relative path", "a link to a bundle", "a link to no folder yet", "an empty folder"],
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


def test_the_working_folder_can_be_the_bundle(bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundle_copy)
    put(Path(), new)
    assert Path.cwd() == bundle_copy.resolve()  # raises in a folder that was deleted
    assert holds(Path(), new)


def test_files_that_the_new_bundle_does_not_list_go(bundle_copy: Path, new_model: Path) -> None:
    put(bundle_copy, new_model)
    assert holds(bundle_copy, new_model)


def test_a_new_folder_can_be_read_by_everyone(new: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        put(tmp_path / "out", new)
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755


def test_a_mount_point_is_replaced_also_behind_a_link(bundle: Path, new: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "volume", *small_disk(8_000)) as out:
        (out / "lost+found").mkdir()  # as in the root of each ext4 file system
        for place, files in ((out, bundle), (linked(tmp_path / "current", out), new)):
            put(place, files)
            assert contents(out) == contents(files)
            assert names(out) == sorted([*names(files), "lost+found"])


# What is not touched


def tree(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"holiday.jpg": "precious"}, "holds holiday.jpg, so it is not a bundle"),
        ({"manifest.json": '{"start_url": "/"}', "index.html": ""}, "holds index.html, so it is not a bundle"),
        ({"manifest.json": '{"name": "My app"}'}, "holds manifest.json and no model.ort, so it is not a bundle"),
        ({".partial/of-rsync": "", "holiday.jpg": "precious"}, "holds holiday.jpg, so it is not a bundle"),
    ],
)
def test_a_folder_that_is_not_a_bundle_is_not_touched(files: dict[str, str], message: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(content)
    before = tree(tmp_path)
    with pytest.raises(BundleError) as caught:
        replacing(tmp_path / "out").__enter__()
    assert str(caught.value).startswith(f"{tmp_path / 'out'}: {message}")
    assert tree(tmp_path) == before


# Stops


def stop_half_way(out: Path, stop: type[BaseException] = RuntimeError) -> None:
    """Begin an export and let it end with this exception."""

    def export() -> None:
        with replacing(out) as fresh:
            (fresh / MANIFEST).write_text("half of it")
            raise stop

    with pytest.raises(stop):
        export()


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt])
def test_an_error_or_an_interruption_leaves_the_old_bundle_byte_for_byte(
    bundle: Path, bundle_copy: Path, stop: type[BaseException]
) -> None:
    stop_half_way(bundle_copy, stop)
    assert holds(bundle_copy, bundle)
    assert names(bundle_copy.parent) == ["bundle"]


def test_an_error_leaves_nothing_where_nothing_was_but_an_empty_folder(tmp_path: Path) -> None:
    stop_half_way(tmp_path / "not" / "there")
    assert names(tmp_path) == []
    stop_half_way(empty(tmp_path / "out"))
    assert names(tmp_path / "out") == []


@pytest.mark.parametrize(("moved", "stop"), [(1, KeyboardInterrupt()), (4, OSError(errno.EIO, "Input/output error"))])
def test_after_a_stop_while_files_move_the_next_export_moves_the_rest(
    bundle_copy: Path, new: Path, moved: int, stop: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping_after(moved, stop))
        with pytest.raises(type(stop)):
            put(bundle_copy, new)
    with pytest.raises(BundleError, match=r"holds no manifest\.json"):
        open_bundle(bundle_copy)
    stop_half_way(bundle_copy)
    assert holds(bundle_copy, new)


def stopping_after(count: int, stop: BaseException) -> Callable[[Path, Path], Path]:
    replace, left = Path.replace, [count]

    def replace_or_stop(self: Path, target: Path) -> Path:
        if not left[0]:
            raise stop
        left[0] -= 1
        return replace(self, target)

    return replace_or_stop


def test_an_error_of_the_disk_while_it_stores_the_files_leaves_the_old_bundle(
    bundle: Path, bundle_copy: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        put(bundle_copy, new)
    assert holds(bundle_copy, bundle)


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
    bundle: Path, bundle_copy: Path
) -> None:
    run_killed(KILLED_HALF_WAY, bundle_copy)
    assert names(bundle_copy) == sorted([*names(bundle), PARTIAL])
    assert open_bundle(bundle_copy) == open_bundle(bundle)
    stop_half_way(bundle_copy)
    assert holds(bundle_copy, bundle)


@pytest.mark.parametrize("moved", [0, 2])
def test_a_bundle_whose_process_was_killed_while_files_moved_does_not_open_until_the_rest_has_moved(
    bundle_copy: Path, new_model: Path, moved: int
) -> None:
    run_killed(KILLED_WHILE_MOVING, bundle_copy, new_model, moved)
    with pytest.raises(BundleError, match=r"holds no manifest\.json"):
        open_bundle(bundle_copy)
    stop_half_way(bundle_copy)
    assert holds(bundle_copy, new_model)


def test_the_folder_of_an_export_killed_at_its_end_is_removed(bundle: Path, bundle_copy: Path) -> None:
    (bundle_copy / PARTIAL).mkdir()
    (bundle_copy / PARTIAL / COMPLETE).touch()
    stop_half_way(bundle_copy)
    assert holds(bundle_copy, bundle)


# Two at once


@pytest.mark.parametrize("is_new", [False, True])
def test_a_second_export_into_the_folder_is_refused_and_disturbs_nothing(
    is_new: bool, bundle_copy: Path, new: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out" if is_new else bundle_copy
    with replacing(out) as fresh:
        copy_into(fresh, new)
        with pytest.raises(BundleError, match=f"{out.name}: another export is writing into this folder"):
            replacing(out).__enter__()
    assert holds(out, new)


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
