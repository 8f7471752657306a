"""A corpus is read, kept and embedded some rows at a time, and its file must not change meanwhile."""

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from export.corpus import CorpusError, read_corpus
from export.corpus.passages import ROWS_AT_ONCE, StoredColumn, stored_columns
from export.index import embed
from export.index.embed import embed_corpus
from function.engine.embedder import Embedder
from tests.export.corpus import files
from tests.export.corpus.files import in_lists, write
from tests.export.memory import peak_of
from tests.passage_files import write_passages

LINES = "".join(f'{{"text":"story {row}","id":"s{row}","chapter":{row}}}\n' for row in range(5_000))


def formats(folder: Path) -> Iterator[Path]:
    rows = [(f"story {row}" if row % 3 else " ", f"s{row}" if row % 5 else "", row) for row in range(500)]
    frame = pl.DataFrame(rows, schema=["text", "id", "chapter"], orient="row")
    frame.write_csv(folder / "a.csv")
    frame.write_csv(folder / "a.tsv", separator="\t")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_parquet(folder / "a.parquet")
    yield from sorted(folder.glob("a.*"))


def test_a_corpus_is_the_same_for_any_number_of_rows_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole_parquet = {path.name: files.read_corpus(path) for path in formats(tmp_path)}
    monkeypatch.setattr("export.corpus.formats.ROWS_AT_ONCE", 64)
    passages, shares = tmp_path / "passages.safetensors", list[float]()
    for path in formats(tmp_path):
        shares.clear()
        corpus = read_corpus(path, passages, on_progress=lambda step, share, texts=0: shares.append(share))
        assert isinstance(corpus.texts, StoredColumn)
        assert in_lists(corpus) == whole_parquet[path.name], path.name
        assert shares == sorted(shares)


def test_a_column_reads_like_a_list(tmp_path: Path) -> None:
    texts = [f"{row} Żółć 🦆" * (row % 3) for row in range(ROWS_AT_ONCE + 10)]
    write_passages(tmp_path / "passages.safetensors", texts, ["x"] * len(texts), ["{}"] * len(texts))
    column, ids, _ = stored_columns(tmp_path / "passages.safetensors")
    assert list(column) == texts
    assert (column[-1], column[3], ids[0]) == (texts[-1], texts[3], "x")
    for rows in (slice(5, 9), slice(9, 5), slice(None, None, 1000), slice(20, 10, -3), slice(-4, None)):
        assert column[rows] == texts[rows]
    with pytest.raises(IndexError):
        column[len(texts)]


def test_reading_takes_much_less_memory_than_the_texts(tmp_path: Path) -> None:
    line = '{"text":"%s","id":"%d"}\n'
    content = "".join(line % ("word " * 2_000, row) for row in range(4_000))  # 40 MB
    path = write(tmp_path, "a.jsonl", content.encode())
    size = len(content)
    del content

    def read_all() -> None:
        corpus = read_corpus(path, tmp_path / "passages.safetensors")
        assert list(corpus.ids) == [str(row) for row in range(4_000)]

    assert peak_of(read_all) < size / 4


class Text(str):
    """A string that can be counted while it is alive."""


class Texts(Sequence[str]):
    """Texts that are made when they are read."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[Text] = weakref.WeakSet()
        self.most = 0

    def __len__(self) -> int:
        return 1_000

    def __getitem__(self, row: object) -> str:
        if not isinstance(row, int) or row >= len(self):
            raise IndexError
        text = Text(f"story {row} of a goose")
        self.alive.add(text)
        self.most = max(self.most, len(self.alive))
        return text


def test_no_more_texts_than_are_tokenized_together_are_in_memory(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 50)
    monkeypatch.setattr(embed, "TEXTS_AT_ONCE", 20)
    texts = Texts()
    assert embed_corpus(embedder, texts, tmp_path, "tests").embedded == 1_000
    assert texts.most <= 2 * 20 + 2


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def lengthen(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"text":"one more"}\n')


def overwrite(path: Path) -> None:
    path.write_text(LINES.replace("story", "STORY"))
    os.utime(path, ns=(0, 0))


def exchange(path: Path) -> None:
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.rename(path)


@pytest.mark.parametrize("change", [shorten, lengthen, overwrite, exchange, Path.unlink])
def test_a_file_that_changes_while_it_is_read_is_an_error(change: Callable[[Path], object], tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", LINES.encode())
    steps: list[str] = []

    def change_once(step: str, share: float, texts: int = 0) -> None:
        if not steps:
            change(path)
        steps.append(step)

    with pytest.raises(CorpusError) as caught:
        read_corpus(path, tmp_path / "passages.safetensors", on_progress=change_once)
    found = "no file any more" if change is Path.unlink else "another file of "
    assert str(caught.value).startswith(f"{path}: found {found}")
    assert f"expected the same {len(LINES):,} bytes until all rows are read; run the command again" in str(caught.value)
    assert not (tmp_path / "passages.safetensors").exists()
