"""Columns come back from their file by name, and nothing else of it is read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from export.index.columns import column_tensors
from function.engine.metadata.columns import Columns
from function.engine.tensors import TensorsError

KINDS = {"name": "string", "count": "number", "price": "number", "tags": "list"}
ROWS: list[dict[str, Any]] = [
    {"name": "b", "count": 7, "price": 1.5, "tags": ["x", "y"]},
    {"name": "a", "count": 9, "price": 2.5},
    {"name": "b", "price": 3.5},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "columns.safetensors"
    save_file(column_tensors(ROWS, KINDS), file)
    return file


def test_the_file_stays_mapped_when_it_is_deleted(path: Path) -> None:
    columns = Columns(path, KINDS, 3)
    path.unlink()
    assert columns["name"].equals_any([b"b"]).tolist() == [True, False, True]
    assert columns["count"].exists().tolist() == [True, True, False]


def test_a_damaged_column_does_not_concern_the_others(path: Path) -> None:
    tensors = load_file(path)
    del tensors["count.present"], tensors["count.values"]
    save_file(tensors, path)
    assert Columns(path, KINDS, 3)["tags"].equals_any([b"y"]).tolist() == [True, False, False]


def test_an_unknown_column_is_a_key_error(path: Path) -> None:
    with pytest.raises(KeyError):
        Columns(path, KINDS, 3)["autor"]


DAMAGE: dict[str, tuple[str, dict[str, NDArray[Any] | None]]] = {
    "no values": ("name", {"name.values": None}),
    "no offsets": ("name", {"name.offsets": None}),
    "no codes of strings": ("name", {"name.codes": None}),
    "no rows of a list": ("tags", {"tags.rows": None}),
    "rows of a string": ("name", {"name.rows": np.zeros(3, np.uint32)}),
    "offsets of a number": ("count", {"count.offsets": np.zeros(1, np.uint64)}),
    "too few codes": ("name", {"name.codes": np.zeros(2, np.uint8)}),
    "too few values": ("price", {"price.values": np.zeros(2, np.float64)}),
    "too few bits": ("count", {"count.present": np.zeros(0, np.uint8)}),
    "too few strings": ("name", {"name.offsets": np.array([0, 1], np.uint64)}),
    "no offset at all": ("name", {"name.offsets": np.zeros(0, np.uint64)}),
    "values of another dtype": ("price", {"price.values": np.zeros(3, np.float32)}),
    "signed codes": ("name", {"name.codes": np.zeros(3, np.int8)}),
    "a matrix": ("price", {"price.values": np.zeros((3, 1), np.float64)}),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_tensors_that_do_not_belong_together_are_refused(path: Path, kind: str) -> None:
    name, changes = DAMAGE[kind]
    tensors = load_file(path) | changes
    save_file({key: tensor for key, tensor in tensors.items() if tensor is not None}, path)
    with pytest.raises(TensorsError, match=rf"the column '{name}' holds .*3 rows.*; run `python -m export` again"):
        Columns(path, KINDS, 3)[name]


def test_another_number_of_rows_is_refused(path: Path) -> None:
    with pytest.raises(TensorsError, match="expected the parts of 4 rows of the type string"):
        Columns(path, KINDS, 4)["name"]
