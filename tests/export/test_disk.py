"""A disk that takes no more bytes is reported as that, with the path, and not as a fault of the model."""

import errno
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from onnx import ModelProto

from export.corpus import Corpus
from export.disk import find_disk_error, name_disk_errors, work_folder
from export.model import export_model
from export.quantize import save_ort
from export.source import ModelError, Source


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """Let the operating system refuse to write files longer than this, in bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)  # found once and remembered otherwise
    return place


@pytest.mark.parametrize("size", [0, 1_000, 100_000])
def test_an_export_that_cannot_write_its_graph_says_so(
    tiny_source: Source, corpus: Corpus, tmp_path: Path, scratch: Path, size: int
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with files_end_at(size), pytest.raises(ModelError) as caught:
        export_model(tiny_source, corpus.texts, out)
    message = str(caught.value)
    assert message.startswith(f"{out if size < 100_000 else scratch}: File too large; expected a folder that can be")
    assert "free some space" in message
    assert "BERT" not in message
    assert not list(scratch.glob("tmp*"))


def test_a_model_that_cannot_be_written_is_named(tiny_graph: ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "model.ort"
    with files_end_at(50_000), pytest.raises(ModelError) as caught:
        save_ort(tiny_graph, path)
    assert str(caught.value).startswith(f"{path}: ONNX Runtime cannot write the model there; expected a folder that")
    assert "about 1 MB of free space" in str(caught.value)


def test_a_folder_for_temporary_files_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(ModelError, match="TMPDIR: No usable temporary directory found"), work_folder():
        pass


def test_the_work_folder_is_removed_after_an_error(scratch: Path) -> None:
    def fail() -> None:
        with work_folder() as folder:
            assert folder.parent == scratch
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert not list(scratch.iterdir())


def raise_after(cause: Exception, error: Exception) -> None:
    """Raise the error that the cause led to, in a block that names errors of the disk."""
    with name_disk_errors(Path("folder"), "buy a disk"):
        try:
            raise cause
        except OSError as found:
            raise error from found


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
def test_an_error_of_the_disk_is_found_behind_those_that_it_caused(code: int) -> None:
    with pytest.raises(ModelError, match=r"^graph\.onnx: the disk failed; expected .*; buy a disk$"):
        raise_after(OSError(code, "the disk failed", "graph.onnx"), RuntimeError("cannot export"))


def test_other_errors_pass_unchanged() -> None:
    missing = FileNotFoundError(errno.ENOENT, "no such file")
    assert find_disk_error(missing) is None
    with pytest.raises(RuntimeError, match="cannot export"):
        raise_after(missing, RuntimeError("cannot export"))
    with pytest.raises(ModelError, match="another file is full"):
        raise_after(OSError(errno.ENOSPC, "full"), ModelError("another file is full"))
