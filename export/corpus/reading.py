"""Read a corpus from a file, in the format that its suffix says, or from the files of a folder."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path

from export.corpus.columns import Columns
from export.corpus.corpus import Append, Corpus, Counts, Skipped, Told, corpus_error
from export.corpus.folder import SUFFIXES, find_files
from export.corpus.formats.csv_rows import csv_rows
from export.corpus.formats.json_rows import json_rows
from export.corpus.formats.parquet import read_parquet
from export.corpus.ids import Ids
from export.corpus.passages import writing_passages
from export.corpus.rows import read_rows
from export.corpus.split_rows import Split, SplitRows
from export.corpus.stored import stored_columns
from export.corpus.unchanged import refusing_changes


def read_corpus(
    path: Path,
    text_column: str | None = None,
    id_column: str | None = None,
    passages: Path | None = None,
    told: Told = lambda share: None,
    split: Split | None = None,
) -> Corpus:
    """Return the passages of a file whose suffix says its format, after writing them into `passages` if that is named.

    A passages.safetensors is written while the file is read, so that no more than some rows of the corpus are in
    memory, and the returned corpus reads from it. Without one the corpus is in memory. `told` is called now and then
    with the share of the file that was read, 0 to 1. `split` divides each text into passages.

    The path may be a folder: its files are read in the order of their paths, and row numbers go on from one to the
    next. export/corpus/folder.py says which are skipped.
    The text column is the one named, else "text", else the only one. The id column is the one named, else
    "id" if there is one. Names are case-sensitive.
    Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the
    uncompressed file) where it can be known, for a file without a single text, and for one that changes meanwhile.
    """
    asked = Columns(text_column, id_column)
    texts: Sequence[str]
    ids: Sequence[str]
    metadata: Sequence[str]
    divided = 0
    if passages is None:
        rows: list[tuple[str, str, str]] = []
        counts, files, skipped = _read(path, asked, lambda *row: rows.append(row), told)
        texts, ids, metadata = ([row[column] for row in rows] for column in range(3))
    else:
        with writing_passages(passages) as append:
            take = append if split is None else SplitRows(append, split)
            counts, files, skipped = _read(path, asked, take, told)
            divided = take.texts if isinstance(take, SplitRows) else 0
        texts, ids, metadata = stored_columns(passages)
    found = Corpus(texts, ids, metadata, counts.empty_texts, counts.blank_ids, counts.non_finite, files, skipped)
    return replace(found, split_texts=divided)


def read_texts(path: Path, text_column: str | None, text_option: str) -> list[str]:
    """Return only the texts of a file; messages call the option that names the column `text_option`.

    Raises CorpusError like read_corpus.
    """
    texts: list[str] = []
    asked = Columns(text_column, None, has_ids=False, text_option=text_option)
    _read(path, asked, lambda text, *others: texts.append(text), lambda share: None)
    return texts


def _read(path: Path, asked: Columns, append: Append, told: Told) -> tuple[Counts, int, tuple[Skipped, ...]]:
    """Append the passages of a file or a folder; return their counts, the number of files, and what was skipped."""
    files, skipped = find_files(path) if path.is_dir() else ([path], ())
    counts, ids = Counts(0, 0, 0), Ids()
    for number, file in enumerate(files):

        def told_of_all(share: float, before: int = number) -> None:
            told((before + share) / len(files))

        rows_before = counts.passages + counts.empty_texts
        here = _read_file(file, asked, append, told_of_all, ids, rows_before)
        counts = Counts(*(a + b for a, b in zip(astuple(counts), astuple(here), strict=True)))
    if not counts.passages:
        found = f"no text in any of {counts.empty_texts:,} rows"
        raise corpus_error(path, None, found, "at least one", f"name another column with {asked.text_option}")
    ids.refuse_collisions()
    return counts, len(files), skipped


def _read_file(path: Path, asked: Columns, append: Append, told: Told, ids: Ids, rows_before: int) -> Counts:
    """Append the passages of one file; its first row has the number rows_before."""
    if not path.is_file():
        raise corpus_error(path, None, "no file", f"a file ending in {SUFFIXES}", "check the path")
    name = path.name.lower()
    with refusing_changes(path):
        match Path(name.removesuffix(".gz")).suffix:
            case ".csv":
                return read_rows(path, lambda told: csv_rows(path, ",", told), asked, append, told, ids, rows_before)
            case ".tsv":
                return read_rows(path, lambda told: csv_rows(path, "\t", told), asked, append, told, ids, rows_before)
            case ".jsonl" | ".ndjson" | ".json":
                return read_rows(path, lambda told: json_rows(path, told), asked, append, told, ids, rows_before)
            case ".parquet" if not name.endswith(".gz"):
                return read_parquet(path, asked, append, told, ids, rows_before)
            case _:
                suffix = "".join(path.suffixes[-2:])
                raise corpus_error(path, None, f"the suffix {suffix!r}", SUFFIXES, "convert or rename the file")
