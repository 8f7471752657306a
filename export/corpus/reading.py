"""Read a corpus from a file, in the format that its suffix says."""

from pathlib import Path

from export.corpus.columns import Columns
from export.corpus.corpus import Corpus, corpus_error
from export.corpus.csv_rows import csv_rows
from export.corpus.json_rows import json_rows
from export.corpus.parquet import read_parquet
from export.corpus.rows import collect_rows

SUFFIXES = ".csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet"


def read_corpus(path: Path, text_column: str | None = None, id_column: str | None = None) -> Corpus:
    """Return the passages of a file whose suffix says its format.

    The text column is the one named, else "text", else the only one. The id column is the one named, else
    "id" if there is one. Names are case-sensitive.
    Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the
    uncompressed file) where it can be known, and for a file without a single text.
    """
    return _read(path, Columns(text_column, id_column))


def read_texts(path: Path, text_column: str | None, text_option: str) -> list[str]:
    """Return only the texts of a file; messages call the option that names the column `text_option`.

    Raises CorpusError like read_corpus.
    """
    return _read(path, Columns(text_column, None, has_ids=False, text_option=text_option)).texts


def _read(path: Path, asked: Columns) -> Corpus:
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no file"
        raise corpus_error(path, None, found, f"a file ending in {SUFFIXES}", "check the path")
    name = path.name.lower()
    match Path(name.removesuffix(".gz")).suffix:
        case ".csv":
            corpus = collect_rows(path, lambda: csv_rows(path, ","), asked)
        case ".tsv":
            corpus = collect_rows(path, lambda: csv_rows(path, "\t"), asked)
        case ".jsonl" | ".ndjson" | ".json":
            corpus = collect_rows(path, lambda: json_rows(path), asked)
        case ".parquet" if not name.endswith(".gz"):
            corpus = read_parquet(path, asked)
        case _:
            suffix = "".join(path.suffixes[-2:])
            raise corpus_error(path, None, f"the suffix {suffix!r}", SUFFIXES, "convert or rename the file")
    if not corpus.texts:
        found = f"no text in any of {corpus.empty_texts:,} rows"
        raise corpus_error(path, None, found, "at least one", f"name another column with {asked.text_option}")
    return corpus
