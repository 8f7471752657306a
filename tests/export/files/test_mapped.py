"""Pages of mapped files leave memory when they are released, and their values stay."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from export.files.tensor_file import release, save_tensors
from function.engine.arrays import AnyArray
from function.engine.tensors import map_tensors

STATUS = Path("/proc/self/status")
SIZE = 64_000_000


def mapped_bytes() -> int:
    """Return how many bytes of mapped files are in memory."""
    (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("RssFile:")]
    return int(line.split()[1]) * 1024


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "codes.safetensors"
    save_file({"codes": np.ones((SIZE // 64, 64), np.int8)}, path)
    return path


def open_array(path: Path, how: str) -> AnyArray:
    if how == "tensor":
        return map_tensors(path)["codes"]
    return np.memmap(path, np.int8, "r")


@pytest.mark.skipif(not STATUS.exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("how", ["tensor", "memmap"])
def test_released_pages_leave_memory_and_can_be_read_again(path: Path, how: str) -> None:
    array = open_array(path, how)
    before = mapped_bytes()
    total = int(array.sum(dtype=np.int64))
    assert mapped_bytes() - before > SIZE / 2
    release(array[5:])
    assert mapped_bytes() - before < SIZE / 10
    assert int(array.sum(dtype=np.int64)) == total


def test_values_that_are_only_in_memory_stay(path: Path) -> None:
    own = np.ones(5)
    release(own)
    copied_on_write = np.memmap(path, np.int8, "c")
    copied_on_write[-1] = 7
    release(copied_on_write)
    assert own.tolist() == [1] * 5
    assert copied_on_write[-1] == 7


@pytest.mark.skipif(not STATUS.exists(), reason="needs Linux's /proc")
def test_a_mapped_array_that_is_written_to_another_file_leaves_memory(path: Path, tmp_path: Path) -> None:
    array = open_array(path, "tensor")
    before = mapped_bytes()
    save_tensors(tmp_path / "copy.safetensors", {"codes": array})
    assert mapped_bytes() - before < SIZE / 10
    np.testing.assert_array_equal(map_tensors(tmp_path / "copy.safetensors")["codes"], array)
