"""What a disk refuses is told in one line that names the place and a remedy."""

import errno
import os
import resource
from pathlib import Path

import pytest
from onnx import ModelProto
from safetensors import SafetensorError

from export.files.disk_errors import DiskError, explain, explaining_disk, find_disk_error
from export.model.quantize import save_ort
from export.model.source.model_files import ModelError
from tests.export.disks import set_free

REMEDY = "choose another folder"


def system_error(code: int, *path: Path) -> OSError:
    return OSError(code, os.strerror(code), *map(str, path))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOENT])
def test_an_error_has_place_reason_expectation_and_remedy_in_one_line(code: int, tmp_path: Path) -> None:
    line = explain(system_error(code, tmp_path / "x"))
    assert line.startswith(f"{tmp_path / 'x'}: {os.strerror(code)}; expected ")
    assert line.count(";") == 2
    assert "\n" not in line


@pytest.mark.parametrize(
    ("error", "shown"),
    [(OSError("the hub is down\nTraceback ..."), "the hub is down"), (TimeoutError(), "TimeoutError")],
)
def test_an_error_without_a_number_is_shown_by_its_first_line_or_its_type(error: OSError, shown: str) -> None:
    assert explain(error).startswith(f"{shown}; expected")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_the_error_for_a_full_disk_states_the_folder_the_free_space_and_a_remedy(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_free(monkeypatch, 120_000)
    with pytest.raises(DiskError) as found, explaining_disk(tmp_path, REMEDY):
        raise system_error(code)
    assert str(found.value) == (
        f"{tmp_path}: {os.strerror(code)}, 120.0 kB are free; expected room for all files; delete what you no longer "
        "need there or choose another folder"
    )


def test_a_full_disk_is_found_behind_the_exports_own_words(tmp_path: Path) -> None:
    def export() -> None:
        try:
            raise system_error(errno.ENOSPC)
        except OSError as error:
            raise ModelError("optimum cannot export it") from error

    with pytest.raises(DiskError, match="No space left"), explaining_disk(tmp_path, REMEDY):
        export()


def test_a_full_disk_elsewhere_keeps_its_own_path(tmp_path: Path) -> None:
    error = system_error(errno.ENOSPC, Path("/elsewhere/cache"))
    with pytest.raises(OSError, match="elsewhere") as found, explaining_disk(tmp_path, REMEDY):
        raise error
    assert found.value is error


def test_an_error_without_a_path_gets_the_folders(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="Input/output error") as found, explaining_disk(tmp_path, REMEDY):
        raise system_error(errno.EIO)
    assert found.value.filename == str(tmp_path)


def test_a_systems_error_quoted_by_a_library_is_recognized(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match=f"{tmp_path}: Input/output error; expected"), explaining_disk(tmp_path, REMEDY):
        raise SafetensorError("Error while serializing: I/O error: Input/output error (os error 5)")


def test_an_error_without_a_reason_is_a_full_disk_where_nothing_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RuntimeError, match="failed to save"), explaining_disk(tmp_path, REMEDY):
        raise RuntimeError("failed to save")
    set_free(monkeypatch, 1_000)
    with pytest.raises(DiskError, match="No space left"), explaining_disk(tmp_path, REMEDY):
        raise RuntimeError("failed to save")
    with pytest.raises(ModelError, match="pooling"), explaining_disk(tmp_path, REMEDY):  # says what it means
        raise ModelError("pooling x: expected mean, cls or max")


def test_a_model_file_that_the_system_refuses_is_named(tiny_graph: ModelProto, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # as a quota would: the disk itself has room
    try:
        with pytest.raises(OSError, match="ONNX Runtime cannot write the model") as caught:
            save_ort(tiny_graph, tmp_path / "model.ort")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert explain(caught.value).startswith(f"{tmp_path / 'model.ort'}: ONNX Runtime cannot write the model; expected ")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_refusal_of_the_disk_but_no_missing_file_is_found_behind_the_error_that_it_caused(code: int) -> None:
    error = RuntimeError("cannot export")
    error.__cause__ = system_error(code)
    assert find_disk_error(error) is error.__cause__
    assert find_disk_error(system_error(errno.ENOENT)) is None
