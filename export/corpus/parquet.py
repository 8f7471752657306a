"""The passages of a Parquet file."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

from export.corpus.columns import find_id_column, find_text_column, require_names
from export.corpus.corpus import Corpus, corpus_error
from export.corpus.ids import id_of_number, replace_blank_ids

if TYPE_CHECKING:
    import polars as pl


def read_parquet(path: Path, text_column: str | None, id_column: str | None) -> Corpus:
    """Return the passages of a Parquet file; NaN and infinity, unknown to JSON, are null in metadata."""
    import polars as pl  # 0.1 s and the one heavy dependency, for this format only

    try:
        frame = pl.read_parquet(path, glob=False)
    except pl.exceptions.PolarsError as error:
        found = f"no readable Parquet ({str(error).splitlines()[0]})"
        raise corpus_error(path, None, found, "a whole Parquet file", "fetch or write the file again") from error
    if frame.is_empty():
        raise corpus_error(path, None, "no rows", "at least one", "check that the file was written completely")
    require_names(path, None, frame.columns, "name it, or leave it out")
    text = find_text_column(path, frame.columns, text_column)
    identifier = find_id_column(path, frame.columns, text, id_column)

    texts = frame[text]
    if texts.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        found = f"{texts.dtype} in the column {text!r}"
        raise corpus_error(path, None, found, "strings", "name another column with --text-column")
    # str.strip says what is blank, as for the other formats: the blanks of polars are fewer
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
        metadata=_metadata_objects(path, others, len(rows)).to_list(),
        empty_texts=len(filled) - len(rows),
        blank_ids=0 if identifier is None else blank_ids,
    )


def _place(row: int) -> str:
    return f"row {row} (the first is 0)"


def _id_strings(path: Path, column: "pl.Series", rows: list[int]) -> list[str]:
    """Return the ids as text, "" for null and NaN; rows are the row numbers of the values, for messages."""
    import polars as pl

    expected, remedy = "strings or numbers", "name another column with --id-column"
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Boolean, pl.Duration):
        found = f"{column.dtype} in the column {column.name!r}"
        raise corpus_error(path, None, found, expected, remedy)
    if not column.dtype.is_float():
        return column.cast(pl.String).fill_null("").to_list()
    # pandas turns whole numbers into floats, and missing ones into NaN, as soon as one is missing
    numbers = column.fill_nan(None).to_list()
    for row, number in zip(rows, numbers, strict=True):
        if number is not None and math.isinf(number):
            found = f"an infinite number in the column {column.name!r}"
            raise corpus_error(path, _place(row), found, expected, f"correct that row, or {remedy}")
    return ["" if number is None else id_of_number(number) for number in numbers]


def _metadata_objects(path: Path, columns: list["pl.Series"], rows: int) -> "pl.Series":
    """Return each row as a compact JSON object of the columns that are not null there."""
    import polars as pl

    objects = pl.repeat("{", rows, eager=True)
    for column in columns:
        if _holds_binary(column.dtype):
            found = f"{column.dtype} in the column {column.name!r}"
            raise corpus_error(path, None, found, "values that JSON can hold", "write the file without that column")
        member = column.to_frame().to_struct().struct.json_encode().str.slice(1).str.strip_suffix("}") + ","
        # Renamed, since Series methods take names such as "*" or "^a.*$" for patterns.
        objects += member.zip_with(column.alias("value").is_not_null(), pl.Series([""]))
    return objects.str.strip_suffix(",") + "}"


def _holds_binary(dtype: "pl.DataType") -> bool:
    """Return whether bytes are in a column, at any depth: polars 2.1 panics when it writes them as JSON."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return any(_holds_binary(cast(pl.DataType, field.dtype)) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_binary(cast(pl.DataType, dtype.inner))
    return dtype == pl.Binary
