"""Read a corpus from a file, in the format that its suffix says."""

from collections.abc import Sequence
from pathlib import Path

from export.corpus.columns import Columns
from export.corpus.corpus import Append, Corpus, Counts, Told, corpus_error
from export.corpus.csv_rows import csv_rows
from export.corpus.json_rows import json_rows
from export.corpus.parquet import read_parquet
from export.corpus.rows import read_rows
from export.corpus.stored import stored_columns
from export.corpus.unchanged import refusing_changes
from export.passages import writing_passages

SUFFIXES = ".csv, .tsv, .jsonl, .ndjson or .json (each also as .gz), or .parquet"


def read_corpus(
    path: Path,
    text_column: str | None = None,
    id_column: str | None = None,
    passages: Path | None = None,
    told: Told = lambda share: None,
) -> Corpus:
    """Return the passages of a file whose suffix says its format, after writing them into `passages` if that is named.

    A passages.safetensors is written while the file is read, so that no more than some rows of the corpus are in
    memory, and the returned corpus reads from it. Without one the corpus is in memory. `told` is called now and then
    with the share of the file that was read, 0 to 1.

    The text column is the one named, else "text", else the only one. The id column is the one named, else
    "id" if there is one. Names are case-sensitive.
    Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the
    uncompressed file) where it can be known, for a file without a single text, and for one that changes meanwhile.
    """
    asked = Columns(text_column, id_column)
    texts: Sequence[str]
    ids: Sequence[str]
    metadata: Sequence[str]
    if passages is None:
        rows: list[tuple[str, str, str]] = []
        counts = _read(path, asked, lambda *row: rows.append(row), told)
        texts, ids, metadata = ([row[column] for row in rows] for column in range(3))
    else:
        with writing_passages(passages) as append:
            counts = _read(path, asked, append, told)
        texts, ids, metadata = stored_columns(passages)
    return Corpus(texts, ids, metadata, counts.empty_texts, counts.blank_ids, counts.non_finite)


def read_texts(path: Path, text_column: str | None, text_option: str) -> list[str]:
    """Return only the texts of a file; messages call the option that names the column `text_option`.

    Raises CorpusError like read_corpus.
    """
    texts: list[str] = []
    asked = Columns(text_column, None, has_ids=False, text_option=text_option)
    _read(path, asked, lambda text, *others: texts.append(text), lambda share: None)
    return texts


def _read(path: Path, asked: Columns, append: Append, told: Told) -> Counts:
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no file"
        raise corpus_error(path, None, found, f"a file ending in {SUFFIXES}", "check the path")
    name = path.name.lower()
    with refusing_changes(path):
        match Path(name.removesuffix(".gz")).suffix:
            case ".csv":
                counts = read_rows(path, lambda told: csv_rows(path, ",", told), asked, append, told)
            case ".tsv":
                counts = read_rows(path, lambda told: csv_rows(path, "\t", told), asked, append, told)
            case ".jsonl" | ".ndjson" | ".json":
                counts = read_rows(path, lambda told: json_rows(path, told), asked, append, told)
            case ".parquet" if not name.endswith(".gz"):
                counts = read_parquet(path, asked, append, told)
            case _:
                suffix = "".join(path.suffixes[-2:])
                raise corpus_error(path, None, f"the suffix {suffix!r}", SUFFIXES, "convert or rename the file")
    if not counts.passages:
        found = f"no text in any of {counts.empty_texts:,} rows"
        raise corpus_error(path, None, found, "at least one", f"name another column with {asked.text_option}")
    return counts
