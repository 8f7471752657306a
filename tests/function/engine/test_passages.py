"""Texts, ids and metadata come back as they were written, and only their own bytes are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from function.engine.passages import Passage, Passages
from function.engine.tensors import TensorsError
from tests.passage_files import write_passages

TEXTS = ["Plain words.", "Żółć, naïve, 東京, עברית", "🦆👩‍🚀 emoji", "long " * 100_000, "", "line\nbreak\ttab\0zero"]
IDS = ["a", "ż", "🦆", "", "5", "6"]
METADATA: list[dict[str, Any]] = [
    {},
    {"city": "東京"},
    {"n": 1, "deep": {"list": [1, None, "x"]}},
    {},
    {"🦆": 2.5},
    {"": ""},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "passages.safetensors"
    write_passages(file, TEXTS, IDS, [json.dumps(one) for one in METADATA])
    return file


@pytest.mark.parametrize("row", range(len(TEXTS)))
def test_a_row_comes_back_as_it_was_written(path: Path, row: int) -> None:
    passages = Passages(path)
    assert passages[row] == Passage(IDS[row], TEXTS[row], METADATA[row])
    assert passages.text(row) == TEXTS[row]
    assert len(passages) == len(TEXTS)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passages") / "passages.safetensors"


@given(rows=st.lists(st.tuples(words, words, st.dictionaries(words, words, max_size=3)), min_size=1, max_size=8))
def test_any_rows_come_back(scratch: Path, rows: list[tuple[str, str, dict[str, str]]]) -> None:
    texts, ids, metadata = [list(column) for column in zip(*rows, strict=True)]
    write_passages(scratch, texts, ids, [json.dumps(one, ensure_ascii=False) for one in metadata])
    passages = Passages(scratch)
    assert [passages[row] for row in range(len(rows))] == [Passage(id, text, more) for text, id, more in rows]


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


def test_a_file_without_rows_has_no_passages(tmp_path: Path) -> None:
    write_passages(tmp_path / "passages.safetensors", [], [], [])
    passages = Passages(tmp_path / "passages.safetensors")
    assert len(passages) == 0
    with pytest.raises(IndexError, match="row 0 of 0 passages"):
        passages[0]


@pytest.mark.parametrize("row", [-1, -6, len(TEXTS), 1 << 40])
def test_a_row_beyond_the_last_is_refused(path: Path, row: int) -> None:
    with pytest.raises(IndexError, match=f"row {row} of 6 passages"):
        Passages(path)[row]


@pytest.mark.parametrize("column", ["texts", "ids.offsets", "metadata"])
def test_a_file_without_a_column_is_refused_and_the_column_named(path: Path, column: str) -> None:
    tensors = load_file(path)
    del tensors[column]
    save_file(tensors, path)
    with pytest.raises(TensorsError, match=f"has no {column}; run `python -m export` again"):
        Passages(path)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"ids.offsets": np.array([0, 1], np.uint64)}, id="fewer ids than texts"),
        pytest.param({"texts": np.frombuffer(b"short", np.uint8)}, id="fewer bytes than the offsets say"),
        pytest.param({"metadata": np.zeros(10_000, np.uint8)}, id="more bytes than the offsets say"),
    ],
)
def test_offsets_that_do_not_fit_the_bytes_are_refused(path: Path, broken: dict[str, NDArray[Any]]) -> None:
    save_file(load_file(path) | broken, path)
    with pytest.raises(TensorsError, match="run `python -m export` again") as caught:
        Passages(path)
    assert str(caught.value).startswith(f"{path}: ")
