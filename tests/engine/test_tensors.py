"""safetensors files and the passages in them: byte for byte, against the library, and broken in many ways."""

import json
import re
import time
from bisect import bisect_left
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from semsearch.engine.passages import Passage, Passages
from semsearch.engine.tensors import Strings, Tensors, TensorsError, map_tensors, read_ahead
from tests.bundle_files import write_passages
from tests.page_cache import cached_pages, forget
from tests.project import needs_linux

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
        b'{"__metadata__":{"made":"by hand"},"a":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]},'
        b'"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}  '
    )  # the blanks let the tensors begin at a multiple of 8
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


@needs_linux("/proc")
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


@needs_linux("page cache")
def test_of_scattered_rows_only_their_pages_are_read(cold: Path) -> None:
    tensors = map_tensors(cold, scattered=True)
    assert tensors["first"][[100, 2_000, 4_000]].all()
    assert 4 <= np.count_nonzero(cached_pages(cold)) <= 3 * 2 + 1  # a row is in one page or two, the header in one


@needs_linux("page cache")
def test_a_tensor_is_read_ahead_and_the_others_are_not(cold: Path) -> None:
    tensors = map_tensors(cold, scattered=True)
    read_ahead(tensors["second"])
    end = time.monotonic() + 30
    while not cached_pages(cold)[-4_000:].all():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert np.count_nonzero(cached_pages(cold)[:3_900]) == 1  # the header


def test_a_file_with_another_header_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.safetensors"
    nested_beyond_reading = b"[" * 10_000
    entries = entry("BF16", [1]), entry("F32", [2], [0, 4]), entry("U8", [9], [0, 9])
    for header in (b"[]", nested_beyond_reading, *({"a": each} for each in entries)):
        write(path, header, bytes(8))
        with pytest.raises(TensorsError, match=rf"^{path}: .*; expected a whole safetensors file; run `semsearch"):
            map_tensors(path)


TWO = entry()  # two bytes from the first one on
LAYOUTS: dict[str, tuple[dict[str, Any], str]] = {
    "overlapping": ({"a": TWO, "b": entry("U8", [3], [1, 4])}, "offsets 1 and 4 where byte 2 is the next one"),
    "with a hole": ({"a": TWO, "b": entry("U8", [1], [3, 4])}, "offsets 3 and 4 where byte 2 is the next one"),
    "before the first byte": ({"a": entry("U8", [4], [-4, 0])}, "offsets -4 and 0 where byte 0 is the next one"),
    "reversed": ({"a": TWO, "b": entry("U8", [2], [2, 0])}, "offsets 2 and 0 where byte 2 is the next one"),
    "too short": ({"a": TWO}, "the tensors end at byte 2 of 4"),
    "too long": ({"a": entry("U8", [5], [0, 5])}, "the tensors end at byte 5 of 4"),
    "of another shape": ({"a": entry("U8", [2, 3], [0, 4])}, "uint8 with the shape [2, 3] has 4 bytes"),
    "of negative lengths": ({"a": entry("U8", [-2, -2], [0, 4])}, ""),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_header_that_does_not_describe_each_byte_once_is_refused(tmp_path: Path, layout: str) -> None:
    header, found = LAYOUTS[layout]
    path = write(tmp_path / "broken.safetensors", header, b"abcd")
    with pytest.raises(TensorsError, match=rf"^{path}: .*{re.escape(found)}; expected a whole safetensors file; run `"):
        map_tensors(path)


def test_a_header_beyond_the_end_and_numbers_between_words_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "broken.safetensors", {"a": entry("U8", [4], [0, 4])}, b"abcd")
    content = path.read_bytes()
    path.write_bytes((2**40).to_bytes(8, "little") + content[8:])
    with pytest.raises(TensorsError, match=f"the header ends at byte {2**40 + 8} of {len(content)}; expected a whole"):
        map_tensors(path)
    header = json.dumps({"a": entry("F32", [1], [0, 4])}).encode()
    header += b" " * (1 - len(header) % 4)
    with pytest.raises(TensorsError, match=r"float32 begins at byte \d+, no multiple of 4; expected a whole"):
        map_tensors(write(path, header, bytes(4)))


def test_a_tensor_of_another_dtype_or_shape_is_refused(tmp_path: Path) -> None:
    tensors = map_tensors(write(tmp_path / "index.safetensors", {"codes": entry("U8", [2, 1])}, b"ab"))
    assert tensors.require("codes", [None, 1], np.int8, np.uint8).tolist() == [[97], [98]]
    wanted: list[tuple[list[int | None], Any, str]] = [
        ([None, 1], np.int8, "int8 of the shape (any, 1)"),
        ([2, 2], np.uint8, "uint8 of the shape (2, 2)"),
        ([None], np.uint8, "uint8 of the shape (any)"),
    ]
    for shape, dtype, expected in wanted:
        found = f"index.safetensors: the tensor codes is uint8 of the shape (2, 1), expected {expected}; run `semsearch"
        with pytest.raises(TensorsError, match=re.escape(found)):
            tensors.require("codes", shape, dtype)


def strings_of(texts: list[bytes]) -> Strings:
    offsets = np.array([0, *accumulate(map(len, texts))], np.uint64)
    return Strings(np.frombuffer(b"".join(texts), np.uint8), offsets)


SORTED: list[list[bytes]] = [[], [b"b"], [b"", b"a", b"ab", b"b", b"\xc3\xa9"], [b"a", b"b", b"b", b"b", b"c"]]


@pytest.mark.parametrize("texts", SORTED, ids=["none", "one", "different", "equal"])
@pytest.mark.parametrize("key", [b"", b"a", b"aa", b"ab", b"b", b"bb", b"c", b"\xc3\xa9", b"\xff"], ids=repr)
def test_a_string_is_found_among_sorted_ones_as_by_bisect_left(texts: list[bytes], key: bytes) -> None:
    strings, place = strings_of(texts), bisect_left(texts, key)
    assert strings.place_for(key) == place
    assert strings.find(key) == (place if key in texts else None)


@pytest.mark.parametrize("offsets", [(2, 1), (0, 3), (3, 3)], ids=["descending", "too long", "behind the end"])
def test_a_search_that_reaches_a_string_with_wrong_offsets_says_so(offsets: tuple[int, int]) -> None:
    damaged = Strings(np.frombuffer(b"ab", np.uint8), np.array(offsets, np.uint64), "words")
    found = f"words: string 0 has the offsets {offsets[0]} and {offsets[1]}, expected whole strings"
    with pytest.raises(TensorsError, match=f"^{found}"):
        damaged.place_for(b"a")


def test_strings_have_one_offset_more_than_there_are(tmp_path: Path) -> None:
    path = tmp_path / "passages.safetensors"
    offsets = {"s.offsets": np.array([0, 2], np.uint64), "none": np.empty(0, np.uint64)}
    save_file({"s": np.frombuffer(b"ab", np.uint8)} | offsets, path)
    tensors = map_tensors(path)
    for count in (None, 1):
        strings = tensors.strings("s", "s.offsets", count).check()
        assert [strings.text(place) for place in range(len(strings))] == ["ab"]
        for place in (-1, 1):
            with pytest.raises(IndexError, match=f"^row {place} of 1$"):
                strings.text(place)
    with pytest.raises(
        TensorsError, match=r"s.offsets is uint64 of the shape \(2,\), expected uint64 of the shape \(3\)"
    ):
        tensors.strings("s", "s.offsets", 2)
    with pytest.raises(
        TensorsError, match=rf"^{path}: the tensor none is empty, expected 0 in it; run `semsearch index"
    ):
        tensors.strings("s", "none")


def test_a_name_that_a_file_lacks_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    tensors = map_tensors(write(tmp_path / "index.safetensors", {"c0des": entry()}, b"ab"))
    with pytest.raises(TensorsError, match=r"index.safetensors: holds c0des, expected codes; run `semsearch index`"):
        tensors["codes"]
    with pytest.raises(TensorsError, match=r"^none: holds no tensors, expected codes; run `semsearch index` again$"):
        Tensors(Path("none"))["codes"]


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


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(rows=st.lists(st.tuples(words, words, st.dictionaries(words, words, max_size=3)), min_size=1, max_size=8))
def test_any_rows_come_back(scratch: Path, rows: list[tuple[str, str, dict[str, str]]]) -> None:
    texts, ids, metadata = [list(column) for column in zip(*rows, strict=True)]
    write_passages(scratch, texts, ids, [json.dumps(one, ensure_ascii=False) for one in metadata])
    passages = Passages(scratch)
    assert [passages[row] for row in range(len(rows))] == [Passage(id, text, more) for text, id, more in rows]
    for some in (slice(None), slice(0, 0), slice(1, None, 2)):  # all, none, and those with others between
        taken = rows[some]
        found = passages.read(np.arange(len(rows))[some])
        assert found == ([*range(len(rows))[some]], *([row[place] for row in taken] for place in (1, 0, 2)))


def test_the_bytes_are_utf_8_end_to_end_with_the_offset_of_each_row(tmp_path: Path) -> None:
    path = tmp_path / "passages.safetensors"
    write_passages(path, ["ab", "ż"], ["1", "22"], ["{}", '{"k":1}'])
    raw = load_file(path)
    assert raw["texts"].tobytes() == b"ab\xc5\xbc"
    assert raw["texts.offsets"].tolist() == [0, 2, 4]
    assert raw["ids"].tobytes() == b"122"
    assert raw["ids.offsets"].tolist() == [0, 1, 3]
    assert raw["metadata"].tobytes() == b'{}{"k":1}'
    assert raw["metadata.offsets"].tolist() == [0, 2, 9]
    assert {tensor.dtype.name for name, tensor in raw.items() if name.endswith("offsets")} == {"uint64"}


def test_passages_that_are_no_utf_8_or_no_json_are_refused_where_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "passages.safetensors"
    write_passages(path, ["whole", "aż"], ["1", "2"], ["{}", "{]"])
    content = path.read_bytes()
    path.write_bytes(content.replace("aż".encode(), b"a\xff\xff"))
    passages = Passages(path)
    assert (passages.text(0), passages.metadata(0)) == ("whole", {})
    with pytest.raises(TensorsError, match=f"{path}: texts: string 1 is not UTF-8: .*, expected whole strings; run"):
        passages.text(1)
    with pytest.raises(TensorsError, match=f"{path}: the metadata of row 1 cannot be read .*, expected JSON; run"):
        passages.metadata(1)
    with pytest.raises(TensorsError, match="the metadata of row 1 cannot be read"):
        passages.read(np.array([0, 1]))
    with pytest.raises(TensorsError, match="texts: string 1 is not UTF-8"):
        passages._texts.texts(np.array([0, 1]))
    assert passages.read(np.array([0])) == ([0], ["1"], ["whole"], [{}])


def test_metadata_that_are_two_objects_or_none_are_refused_where_they_are_read(tmp_path: Path) -> None:
    for damaged in ("{},{}", "", "[1,2"):
        write_passages(tmp_path / "passages", ["a", "b"], ["1", "2"], ["{}", damaged])
        with pytest.raises(TensorsError, match="the metadata of row 1 cannot be read"):
            Passages(tmp_path / "passages").read(np.array([0, 1]))


def test_a_file_without_rows_has_no_passages(tmp_path: Path) -> None:
    write_passages(tmp_path / "passages.safetensors", [], [], [])
    passages = Passages(tmp_path / "passages.safetensors")
    assert len(passages) == 0
    for row in (0, -1):
        with pytest.raises(IndexError, match=f"row {row} of 0"):
            passages[row]
