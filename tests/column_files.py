"""A columns.safetensors from rows of metadata."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.numpy import save_file

from export.index.columns import column_tensors
from function.engine.metadata.columns import Column, Columns


def column_of(values: Sequence[Any], kind: str) -> Column:
    """Return a column of these values, None for a row without one."""
    rows: list[Mapping[str, Any]] = [{} if value is None else {"c": value} for value in values]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "columns.safetensors"
        save_file(column_tensors(rows, {"c": kind}), path)
        column = Columns(path, {"c": kind}, len(rows))["c"]
    assert isinstance(column, Column)
    return column
