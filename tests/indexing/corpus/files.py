"""Files that the tests of the corpus write, and how those tests look at the errors."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from semsearch.indexing.corpus import Corpus, CorpusError, Table
from semsearch.indexing.corpus.columns import TableOptions
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.texts import write_corpus


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_parquet(folder: Path, columns: dict[str, object]) -> Path:
    pl.DataFrame(columns).write_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def write_each_format(folder: Path, rows: list[dict[str, str | None]]) -> list[Path]:
    """Write the same rows, whose keys are those of the first, as CSV, JSON lines and Parquet."""
    frame = pl.DataFrame(rows)
    frame.write_csv(folder / "a.csv")
    frame.write_parquet(folder / "a.parquet")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return [folder / "a.csv", write(folder, "a.jsonl", lines), folder / "a.parquet"]


def read_table(
    path: Path, text_column: str | None = None, id_column: str | None = None, *, follow_symlinks: bool = False
) -> tuple[Corpus, ReadReport]:
    """Return a corpus whose texts, ids and metadata are lists, and what was counted."""
    table = Table(path, TableOptions(text_column, id_column, follow_symlinks=follow_symlinks))
    with TemporaryDirectory() as folder:
        corpus, report = write_corpus(table, Path(folder) / "passages.safetensors")
        lists = replace(corpus, texts=list(corpus.texts), ids=list(corpus.ids), metadata=list(corpus.metadata))
        return lists, report


def read_corpus(path: Path, text_column: str | None = None, id_column: str | None = None) -> Corpus:
    return read_table(path, text_column, id_column)[0]


def complaint(path: Path, text_column: str | None = None, id_column: str | None = None) -> str:
    """Return what read_corpus complains about, without the path that every message starts with."""
    with pytest.raises(CorpusError) as raised:
        read_corpus(path, text_column, id_column)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))
