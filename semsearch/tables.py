"""Make a bundle of rows that a program has, or of files."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from semsearch.places import MODULE


def index(data: Any, *, text: str | None = None, id: str | None = None, out: str | Path, **options: Any) -> None:
    """Make a bundle in the folder `out`, or update it, by `semsearch index` in a process of its own.

    data is a path, a pandas or polars DataFrame, an Arrow table or a sequence of mappings. text and id name columns.
    Other options are those of the command: `title="Coats"` is `--title Coats`, True is an option without a value, and a
    list repeats it. Raises RuntimeError with the command's error.
    """
    words = []
    for name, value in {"text_column": text, "id_column": id, **options}.items():
        for each in value if isinstance(value, list) else [value]:
            if each not in (None, False):
                words += [f"--{name.replace('_', '-')}", *([] if each is True else [str(each)])]
    with TemporaryDirectory() as folder:
        if not isinstance(data, str | Path):
            _write(data, file := Path(folder) / "rows.jsonl")
            data = file
        command = [*MODULE, "semsearch", "index", str(data), "--out", str(out), *words]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603  our own command
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2].removeprefix("error: "))


def _write(data: Any, file: Path) -> None:
    """Write rows as JSON lines."""
    if hasattr(data, "write_ndjson"):  # polars
        data.write_ndjson(file)
    elif hasattr(data, "to_json"):  # pandas
        data.to_json(file, orient="records", lines=True, date_format="iso", force_ascii=False)
    else:
        rows = data.to_pylist() if hasattr(data, "to_pylist") else data  # Arrow
        file.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
