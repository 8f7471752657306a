"""The passages of a Parquet file."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from export.corpus.columns import Columns, find_id_column, find_text_column, require_names
from export.corpus.corpus import Corpus, corpus_error
from export.corpus.ids import id_of_number, replace_blank_ids
from export.corpus.parquet_metadata import count_non_finite, metadata_objects
from export.first_line import first_line

if TYPE_CHECKING:
    import polars as pl


def read_parquet(path: Path, asked: Columns) -> Corpus:
    """Return the passages of a Parquet file; raises CorpusError if it is broken or a value fits no passage."""
    import polars as pl  # slow to import, and only this format needs it

    try:
        frame = pl.read_parquet(path, glob=False)
    except pl.exceptions.PolarsError as error:
        found = f"Parquet that cannot be read ({first_line(error)})"
        raise corpus_error(path, None, found, "a whole Parquet file", "fetch or write the file again") from error
    if frame.is_empty():
        raise corpus_error(path, None, "no rows", "at least one", "check that the file was written completely")
    require_names(path, None, frame.columns, "name it, or leave it out")
    text = find_text_column(path, frame.columns, asked)
    identifier = find_id_column(path, frame.columns, text, asked)

    texts = frame[text]
    if texts.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        found = f"{texts.dtype} in the column {text!r}"
        raise corpus_error(path, None, found, "strings", f"name another column with {asked.text_option}")
    # str.strip decides what is blank, as for the other formats: polars knows fewer blank characters
    filled = [bool(value and value.strip()) for value in texts.cast(pl.String).to_list()]
    rows = [row for row, is_filled in enumerate(filled) if is_filled]
    passages = frame.filter(pl.Series(filled))

    if identifier not in frame.columns:
        identifier = None
    ids = [""] * len(rows) if identifier is None else _id_strings(path, passages[identifier], rows)
    ids, blank_ids = replace_blank_ids(path, ids, rows, lambda passage: _place(rows[passage]))
    others = [column for column in passages if column.name not in (text, identifier)]
    return Corpus(
        texts=passages[text].cast(pl.String).to_list(),
        ids=ids,
        metadata=metadata_objects(path, others, len(rows)).to_list(),
        empty_texts=len(filled) - len(rows),
        blank_ids=0 if identifier is None else blank_ids,
        non_finite=sum(map(count_non_finite, others)),
    )


def _place(row: int) -> str:
    return f"row {row} (from 0)"


def _id_strings(path: Path, column: "pl.Series", rows: list[int]) -> list[str]:
    """Return the ids as text, "" for null and NaN; error messages name the values by rows, their row numbers."""
    import polars as pl

    expected, remedy = "strings or numbers", "name another column with --id-column"
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Boolean, pl.Duration):
        found = f"{column.dtype} in the column {column.name!r}"
        raise corpus_error(path, None, found, expected, remedy)
    if not column.dtype.is_float():
        return column.cast(pl.String).fill_null("").to_list()
    # If one id is missing, pandas stores whole numbers as floats and the missing one as NaN.
    # The cast to text comes first, because 0.1 in 32 bits becomes 0.10000000149011612 in 64 bits.
    numbers = column.cast(pl.String).cast(pl.Float64).fill_nan(None).to_list()
    for row, number in zip(rows, numbers, strict=True):
        if number is not None and math.isinf(number):
            found = f"an infinite number in the column {column.name!r}"
            raise corpus_error(path, _place(row), found, expected, f"correct that row, or {remedy}")
    return ["" if number is None else id_of_number(number) for number in numbers]
