"""What passages leave in their folder and in memory; tests/function/engine/test_passages.py tests the bytes."""

from pathlib import Path

import pytest

from export.corpus import CorpusError
from export.corpus.passages import writing_passages
from export.files.tensor_file import BLOCK
from function.engine.passages import Passages
from function.engine.tensors import map_tensors
from tests.export.memory import peak_of


def test_the_file_appears_at_the_end_and_nothing_else_before(tmp_path: Path) -> None:
    with writing_passages(tmp_path / "some.safetensors") as append:
        append("goose", "1", "{}")
        assert list(tmp_path.iterdir()) == []
    assert list(tmp_path.iterdir()) == [tmp_path / "some.safetensors"]


def test_an_error_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError), writing_passages(tmp_path / "some.safetensors"):
        raise CorpusError("line 2: broken")
    assert list(tmp_path.iterdir()) == []


def test_a_value_that_has_no_utf_8_adds_nothing_to_the_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "some.safetensors"
    with writing_passages(path) as append:
        with pytest.raises(UnicodeEncodeError):
            append("goose", "1", "\ud83e")
        append("ferry", "2", "{}")
    assert [map_tensors(path)[column].tobytes() for column in ("texts", "ids", "metadata")] == [b"ferry", b"2", b"{}"]


def test_the_texts_are_not_held_in_memory(tmp_path: Path) -> None:
    path, text = tmp_path / "some.safetensors", "goose" * 100_000

    def write_all() -> None:
        with writing_passages(path) as append:
            for row in range(60):
                append(text, str(row), "{}")

    assert peak_of(write_all) < 3 * BLOCK < 60 * len(text) / 2
    assert Passages(path).text(59) == text
