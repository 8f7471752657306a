"""safetensors files: byte for byte, against the library, and broken in every way we could think of."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from function.engine.tensors import TensorsError, map_tensors, read_ahead
from tests.page_cache import cached_pages, forget

PROC_IO = Path("/proc/self/io")
PROC_STATUS = Path("/proc/self/status")


def write(path: Path, header: object, data: bytes = b"") -> Path:
    """Write a safetensors file by hand; a header of bytes is taken as it is."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)
    return path


def entry(dtype: str = "U8", shape: object = (2,), data_offsets: object = (0, 2)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": data_offsets}


def test_bytes_written_by_hand_are_read_as_the_format_says(tmp_path: Path) -> None:
    header = (
        b'{"a":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
    )
    path = tmp_path / "hand.safetensors"
    path.write_bytes(
        bytes([len(header), 0, 0, 0, 0, 0, 0, 0])
        + header
        + bytes([1, 255, 128, 127])  # 1, -1, -128, 127 in two's complement
        + bytes([0, 0, 192, 63])  # 1.5: 0x3fc00000, the lowest byte first
    )
    tensors = map_tensors(path)
    assert tensors["a"].tolist() == [[1, -1], [-128, 127]]
    assert tensors["b"].tolist() == [1.5]
    assert list(tensors) == ["a", "b"]


def test_what_the_library_writes_is_read_the_same(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    written: dict[str, Any] = {
        "codes": rng.integers(-127, 128, (50, 37), np.int8),
        "texts": rng.integers(0, 256, 1001, np.uint8),
        "offsets": rng.integers(0, 1 << 60, 7, np.uint64),
        "scales": rng.standard_normal((5, 3, 2)).astype(np.float32),
        "nothing": np.empty((0, 4), np.float32),
    }
    save_file(written, tmp_path / "library.safetensors", metadata={"made": "by the library"})
    read = map_tensors(tmp_path / "library.safetensors")
    assert read.keys() == written.keys()
    for name, tensor in written.items():
        assert read[name].dtype == tensor.dtype
        np.testing.assert_array_equal(read[name], tensor)


def test_the_arrays_are_views_of_the_file_and_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "view.safetensors"
    save_file({"a": np.arange(6, dtype=np.uint8)}, path)
    array = map_tensors(path)["a"]
    assert not array.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 9
    with path.open("r+b") as file:  # a copy would not see this
        file.seek(-1, 2)
        file.write(b"\x63")
    assert array.tolist() == [0, 1, 2, 3, 4, 99]


@pytest.mark.skipif(not PROC_IO.exists(), reason="needs Linux's counters of bytes read")
def test_opening_a_file_of_200_megabytes_reads_its_header_alone(tmp_path: Path) -> None:
    size = 200_000_000
    path = write(tmp_path / "large.safetensors", {"a": entry("U8", [size], [0, size])})
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + size)  # a hole: no bytes on disk
    read_before, resident_before = _count(PROC_IO, "rchar"), _count(PROC_STATUS, "VmRSS")
    array = map_tensors(path)["a"]
    assert array[size // 2] == 0
    assert _count(PROC_IO, "rchar") - read_before < 1_000_000
    assert _count(PROC_STATUS, "VmRSS") - resident_before < 20_000  # kilobytes


def _count(path: Path, name: str) -> int:
    (line,) = (line for line in path.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


@pytest.fixture
def cold(tmp_path: Path) -> Path:
    """Return a file of two tensors of 16 MB each that is not in the page cache."""
    path = tmp_path / "cold.safetensors"
    save_file({name: np.ones((4096, 4096), np.uint8) for name in ("first", "second")}, path)
    forget(path)
    if cached_pages(path).any():
        pytest.skip("this file system keeps its files in memory")
    return path


def test_of_scattered_rows_only_their_pages_are_read(cold: Path) -> None:
    tensors = map_tensors(cold, scattered=True)
    assert tensors["first"][[100, 2_000, 4_000]].all()
    assert 4 <= np.count_nonzero(cached_pages(cold)) <= 3 * 2 + 1  # a row is in one page or two, the header in one


def test_a_tensor_is_read_ahead_and_the_others_are_not(cold: Path) -> None:
    tensors = map_tensors(cold, scattered=True)
    read_ahead(tensors["second"])
    end = time.monotonic() + 30
    while not cached_pages(cold)[-4_000:].all():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert np.count_nonzero(cached_pages(cold)[:3_900]) == 1  # the header


def test_an_array_that_is_not_mapped_is_left_alone() -> None:
    read_ahead(np.zeros(3))


def test_tensors_stay_readable_after_the_file_is_deleted(tmp_path: Path) -> None:
    path = write(tmp_path / "gone.safetensors", {"a": entry()}, b"ab")
    array = map_tensors(path)["a"]
    path.unlink()
    assert array.tobytes() == b"ab"


WHOLE = "expected a whole safetensors file"
# bytes, or the arguments of `write`; and what the error says
BROKEN: dict[str, tuple[bytes | tuple[object, bytes], str]] = {
    "an empty file": (b"", "0 bytes, expected at least the 8 of a safetensors file"),
    "seven bytes": (b"1234567", "7 bytes, expected at least the 8 of a safetensors file"),
    "text": (b"this is a text file\n", WHOLE),
    "a header longer than the file": ((50).to_bytes(8, "little") + b"{}", "header of 50 bytes in a file of 10"),
    "a header over the format's limit": ((100_000_001).to_bytes(8, "little") + b"{}", "header of 100000001 bytes"),
    "a header nested beyond reading": ((100_000).to_bytes(8, "little") + b"[" * 100_000, WHOLE),
    "a header that is not JSON": ((b"{nonsense}", b""), WHOLE),
    "a header that is not UTF-8": ((b'{"\xff": 1}', b""), WHOLE),
    "a header that is a list": (([1, 2], b""), WHOLE),
    "an entry that is a number": (({"a": 5}, b""), WHOLE),
    "an entry without shape": (({"a": {"dtype": "U8", "data_offsets": [0, 2]}}, b"ab"), "'shape'"),
    "a dtype no bundle has": (
        ({"a": entry("BF16", [4], [0, 8])}, bytes(8)),
        "dtype BF16, expected one of I8, U8, U16, U32, U64, I64, F32, F64",
    ),
    "data cut short": (({"a": entry()}, b"a"), "bytes 0 to 2 of 1 for shape [2] of U8"),
    "offsets before the data": (({"a": entry("U8", [4], [-2, 2])}, b"abcd"), "bytes -2 to 2 of 4"),
    "offsets that run backwards": (({"a": entry("U8", [2], [2, 0])}, b"ab"), "bytes 2 to 0 of 2"),
    "offsets of another length": (({"a": entry("F32", [2], [0, 4])}, bytes(8)), "bytes 0 to 4 of 8 for shape [2]"),
    "a negative shape": (({"a": entry("U8", [-1, -2], [0, 2])}, b"ab"), WHOLE),
    "a shape whose product overflows": (({"a": entry("U8", [1 << 32, 1 << 32], [0, 0])}, b""), WHOLE),
    "a shape beyond counting": (({"a": entry("U8", [2**70])}, b"ab"), WHOLE),
    "a shape in words": (({"a": entry("U8", ["2"], [0, 2])}, b"ab"), WHOLE),
    "three offsets": (({"a": entry("U8", [2], [0, 1, 2])}, b"ab"), WHOLE),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_by_name_with_what_was_found(kind: str, tmp_path: Path) -> None:
    content, found = BROKEN[kind]
    path = tmp_path / "broken.safetensors"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write(path, *content)
    with pytest.raises(TensorsError) as caught:
        map_tensors(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert found in str(caught.value)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        map_tensors(tmp_path / "none.safetensors")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "file.safetensors"


@given(data=st.data())
def test_a_file_cut_anywhere_is_refused(scratch: Path, data: st.DataObject) -> None:
    save_file({"codes": np.ones((3, 4), np.int8), "scales": np.ones(3, np.float32)}, scratch)
    whole = scratch.read_bytes()
    scratch.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(TensorsError):
        map_tensors(scratch)


@given(st.binary(max_size=200))
def test_random_bytes_are_never_read_as_tensors(scratch: Path, content: bytes) -> None:
    scratch.write_bytes(content)
    try:
        tensors = map_tensors(scratch)
    except TensorsError:
        return
    assert tensors == {}  # "{}" is a header too


@given(st.dictionaries(st.text(max_size=3), st.lists(st.integers(0, 255), min_size=1, max_size=30), max_size=5))
def test_any_names_and_bytes_come_back(scratch: Path, columns: dict[str, list[int]]) -> None:
    header, data = {}, b""
    for name, values in columns.items():
        header[name] = entry("U8", [len(values)], [len(data), len(data) + len(values)])
        data += bytes(values)
    tensors = map_tensors(write(scratch, header, data))
    assert {name: tensor.tolist() for name, tensor in tensors.items()} == columns


def test_an_array_without_elements_cannot_be_written_either(tmp_path: Path) -> None:
    path = write(tmp_path / "none.safetensors", {"a": entry(shape=[0], data_offsets=(0, 0))})
    assert not map_tensors(path)["a"].flags.writeable
