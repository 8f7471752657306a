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

from export.files import tensor_file
from export.files.tensor_file import BLOCK, map_file, save_tensors
from function.engine.tensors import DTYPES, map_tensors
from tests.export.memory import peak_of

dtypes = st.sampled_from(list(DTYPES.values())).map(np.dtype)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensors") / "some.safetensors"


@given(st.dictionaries(names, dtypes.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_side=0)))))
def test_the_bytes_are_those_that_the_library_writes(path: Path, tensors: dict[str, Any]) -> None:
    save_tensors(path, tensors)
    assert path.read_bytes() == save(tensors)


def test_each_dtype_of_a_bundle_is_in_the_librarys_order(path: Path) -> None:
    tensors: dict[str, Any] = {name: np.arange(3).astype(dtype) for name, dtype in DTYPES.items()}
    save_tensors(path, tensors)
    assert path.read_bytes() == save(tensors)


@pytest.mark.parametrize("block", [1, 40, 1000])
def test_arrays_larger_than_a_block_are_whole(path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(tensor_file, "BLOCK", block)
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


def test_a_mapped_tensor_goes_from_one_file_to_another(path: Path, tmp_path: Path) -> None:
    tensors = {"codes": np.arange(210, dtype=np.int8).reshape(30, 7), "none": np.empty((0, 7), np.int8)}
    save_file(tensors, tmp_path / "other.safetensors")
    save_tensors(path, map_tensors(tmp_path / "other.safetensors"))
    assert path.read_bytes() == save(tensors)


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


def test_another_user_may_read_the_file(path: Path) -> None:
    path.unlink(missing_ok=True)
    save_tensors(path, {})
    assert oct(path.stat().st_mode & 0o777) == "0o644"


def test_an_array_that_is_not_contiguous_is_not_all_in_memory(path: Path) -> None:
    columns = np.zeros((64, 10 * BLOCK // 64), np.int8)
    assert peak_of(lambda: save_tensors(path, {"codes": columns.T})) < 3 * BLOCK
    assert path.stat().st_size > 10 * BLOCK
