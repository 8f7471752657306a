"""Read a corpus from a file, in the format that its suffix says, or from the files of a folder."""

import json
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from pathlib import Path

from export.corpus.columns import Columns
from export.corpus.corpus import Append, Corpus, CorpusError, Counts, Skipped, corpus_error
from export.corpus.folder import SUFFIXES, find_files, refusing_changes
from export.corpus.formats import compact_json, csv_rows, json_rows, parquet_rows
from export.corpus.ids import Ids
from export.corpus.passages import stored_columns, writing_passages
from export.corpus.rows import ReadRows, read_rows
from export.progress import OnProgress, no_progress

SPLIT_COLUMNS = ("path", "start", "end", "passage")  # the metadata that --split adds

Split = Callable[[str], list[tuple[int, int]]]  # returns the start and the end of each passage of a text


def read_corpus(
    path: Path,
    passages: Path,
    text_column: str | None = None,
    id_column: str | None = None,
    on_progress: OnProgress = no_progress,
    split: Split | None = None,
) -> Corpus:
    """Return the texts of a file whose suffix says its format, after writing them into `passages`.

    That passages.safetensors is written while the file is read, so that no more than some rows of the corpus are in
    memory, and the returned corpus reads from it. `split` divides each text into passages.

    The path may also be a folder: its files are read in the order of their paths, and row numbers go on from one to the
    next. export/corpus/folder.py says which are skipped.
    The text column is the one named, else "text", else the only one. The id column is the one named, else
    "id" if there is one. Names are case-sensitive.
    Raises CorpusError for a missing, unknown or broken file or column, with the line (from 1, in the
    uncompressed file) where it can be known, for a file without a single text, and for one that changes meanwhile.
    """
    divided = 0
    with writing_passages(passages) as append:

        def append_split(text: str, id: str, metadata: str) -> None:
            nonlocal divided
            assert split is not None
            divided += _append_passages(append, split(text), text, id, metadata)

        requested = Columns(text_column, id_column)
        counts, files, skipped = _read(path, requested, append_split if split else append, on_progress)
    texts, ids, metadata = stored_columns(passages)
    found = counts.empty_texts, counts.blank_ids, counts.non_finite
    return Corpus(texts, ids, metadata, *found, files, skipped, split_texts=divided)


def _append_passages(append: Append, ranges: list[tuple[int, int]], text: str, id: str, metadata: str) -> bool:
    """Append the passages of a row and return whether they are several.

    Their metadata also has the row's id as `path`, their first and last character, and their number from 0. The id of
    one of several passages ends with its number from 1. Raises CorpusError if the row has such a column already.
    """
    others = json.loads(metadata)
    if taken := [name for name in SPLIT_COLUMNS if name in others]:
        raise CorpusError(
            f"--split: found a column {taken[0]!r}, expected none of that name, since --split adds the columns "
            f"{', '.join(SPLIT_COLUMNS)}; rename it in the file"
        )
    for number, (start, end) in enumerate(ranges):
        name = id if len(ranges) == 1 else f"{id}:{number + 1}"
        added = dict(zip(SPLIT_COLUMNS, (id, start, end, number), strict=True))
        append(text[start:end], name, compact_json(others | added))
    return len(ranges) > 1


def read_texts(path: Path, text_column: str | None, text_option: str) -> list[str]:
    """Return only the texts of a file; messages call the option that names the column `text_option`.

    Raises CorpusError like read_corpus.
    """
    texts: list[str] = []
    requested = Columns(text_column, None, has_ids=False, text_option=text_option)
    _read(path, requested, lambda text, *others: texts.append(text), no_progress)
    return texts


def _read(
    path: Path, requested: Columns, append: Append, on_progress: OnProgress
) -> tuple[Counts, int, tuple[Skipped, ...]]:
    """Append the passages of a file or a folder; return their counts, the number of files, and what was skipped."""
    files, skipped = find_files(path) if path.is_dir() else ([path], ())
    counts, ids = Counts(0, 0, 0), Ids()
    for number, file in enumerate(files):

        def on_file(step: str, share: float, texts: int = 0, before: int = number) -> None:
            on_progress(step, (before + share) / len(files))

        here = _read_file(file, requested, append, ids, counts.passages + counts.empty_texts, on_file)
        counts = Counts(*(a + b for a, b in zip(astuple(counts), astuple(here), strict=True)))
    if not counts.passages:
        found = f"no text in any of {counts.empty_texts:,} rows"
        raise corpus_error(path, None, found, "at least one", f"name another column with {requested.text_option}")
    ids.refuse_collisions()
    return counts, len(files), skipped


def _read_file(
    path: Path, requested: Columns, append: Append, ids: Ids, rows_before: int, on_progress: OnProgress
) -> Counts:
    """Append the passages of one file; its first row has the number rows_before."""
    if not path.is_file():
        raise corpus_error(path, None, "no file", f"a file ending in {SUFFIXES}", "check the path")
    name = path.name.lower()
    rows: ReadRows
    place = "line {}"
    with refusing_changes(path):
        match Path(name.removesuffix(".gz")).suffix:
            case ".csv":
                rows = partial(csv_rows, path, ",")
            case ".tsv":
                rows = partial(csv_rows, path, "\t")
            case ".jsonl" | ".ndjson" | ".json":
                rows = partial(json_rows, path)
            case ".parquet" if not name.endswith(".gz"):
                rows, place = partial(parquet_rows, path), "row {} (from 0)"
            case _:
                suffix = "".join(path.suffixes[-2:])
                raise corpus_error(path, None, f"the suffix {suffix!r}", SUFFIXES, "convert or rename the file")
        return read_rows(path, rows, place, requested, append, ids, rows_before, on_progress)
