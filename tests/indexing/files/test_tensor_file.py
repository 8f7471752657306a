"""safetensors files that are written block by block have the library's bytes, whatever the tensors are."""

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import save, save_file

from semsearch.engine.tensors import DTYPES, map_tensors
from semsearch.indexing import tensor_files as tensor_file
from semsearch.indexing.tensor_files import COPIED_AT_ONCE, map_file, release, save_tensors
from tests.indexing.memory import peak_of
from tests.project import needs_linux

STATUS = Path("/proc/self/status")
dtypes = st.sampled_from(list(DTYPES.values())).map(np.dtype)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


def mapped_bytes() -> int:
    """Return how many bytes of mapped files are in memory."""
    (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith("RssFile:")]
    return int(line.split()[1]) * 1024


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensors") / "some.safetensors"


@given(st.dictionaries(names, dtypes.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_side=0)))))
def test_the_bytes_are_those_that_the_library_writes(path: Path, tensors: dict[str, Any]) -> None:
    save_tensors(path, tensors)
    assert path.read_bytes() == save(tensors)


@pytest.mark.parametrize("block", [1, 40, 1000])
def test_arrays_larger_than_a_block_are_whole(path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(tensor_file, "COPIED_AT_ONCE", block)
    tensors: dict[str, Any] = {
        "codes": np.arange(210, dtype=np.int8).reshape(30, 7),
        "scales": np.arange(101, dtype=np.float32),
    }
    save_tensors(path, tensors)
    assert path.read_bytes() == save(tensors)


def test_arrays_that_are_not_contiguous_are_written_in_the_order_of_their_rows(path: Path) -> None:
    whole = np.arange(60, dtype=np.int64).reshape(6, 10)
    for part in (whole.T, whole[::2], whole[:, 3], np.asfortranarray(whole)):
        save_tensors(path, {"part": part})
        np.testing.assert_array_equal(map_tensors(path)["part"], part)


def test_an_open_file_is_a_tensor_of_all_its_bytes(path: Path) -> None:
    with TemporaryFile() as texts, TemporaryFile() as ids:
        texts.write(b"goose")
        save_tensors(path, {"texts": map_file(texts), "ids": map_file(ids)})
    assert path.read_bytes() == save({"texts": np.frombuffer(b"goose", np.uint8), "ids": np.empty(0, np.uint8)})


@pytest.mark.parametrize("dtype", ["float16", ">i8", "bool", "U3"])
def test_a_dtype_that_no_bundle_has_is_refused_before_a_file_is_made(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(ValueError, match=r"tensor 'a': dtype .*, expected one of I8, U8, "):
        save_tensors(tmp_path / "a.safetensors", {"a": np.zeros(2, dtype)})
    assert list(tmp_path.iterdir()) == []


def test_an_array_that_is_not_contiguous_is_not_all_in_memory(path: Path) -> None:
    columns = np.zeros((64, 10 * COPIED_AT_ONCE // 64), np.int8)
    assert peak_of(lambda: save_tensors(path, {"codes": columns.T})) < 3 * COPIED_AT_ONCE
    assert path.stat().st_size > 10 * COPIED_AT_ONCE


@needs_linux("/proc")
def test_released_pages_leave_memory_and_can_be_read_again(path: Path) -> None:
    save_file({"codes": np.ones((1_000_000, 64), np.int8)}, path)
    array = map_tensors(path)["codes"]
    before = mapped_bytes()
    total = int(array.sum(dtype=np.int64))
    assert mapped_bytes() - before > array.nbytes / 2
    release(array[5:])
    assert mapped_bytes() - before < array.nbytes / 10
    assert int(array.sum(dtype=np.int64)) == total


def test_values_that_are_only_in_memory_stay(path: Path) -> None:
    path.write_bytes(bytes(100))
    copied_on_write = np.memmap(path, np.int8, "c")
    copied_on_write[-1] = 7
    release(copied_on_write)
    assert copied_on_write[-1] == 7
