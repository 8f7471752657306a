"""Rows in memory, such as a DataFrame, as a file that the readers of tables take."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


@contextmanager
def rows_file(data: Any) -> Iterator[Path]:
    """Yield a file of JSON lines with the rows of a DataFrame, an Arrow table or a sequence of mappings.

    The file is deleted at the end.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        if hasattr(data, "to_json"):  # pandas
            data.to_json(file, orient="records", lines=True, date_format="iso", force_ascii=False)
        else:
            to_rows = getattr(data, "to_dicts", getattr(data, "to_pylist", lambda: data))  # polars, Arrow
            file.write_text("".join(json.dumps(row, default=str) + "\n" for row in to_rows()), encoding="utf-8")
        yield file
