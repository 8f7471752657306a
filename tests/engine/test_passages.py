"""Texts, ids and metadata come back as they were written, and only their own bytes are read."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from semsearch.engine.passages import Passage, Passages
from tests.bundle_files import write_passages

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
    for row in (0, -1):
        with pytest.raises(IndexError, match=f"row {row} of 0"):
            passages[row]
