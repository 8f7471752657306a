"""The passages of a Parquet file. Metadata becomes JSON, which cannot hold bytes, NaN or infinity."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

from export.corpus.columns import Columns, find_id_column, find_text_column, require_names
from export.corpus.corpus import READ, Append, CorpusError, Counts, corpus_error
from export.corpus.ids import Ids, id_of_number
from export.error_text import first_line
from export.progress import OnProgress

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE = 65_536


def read_parquet(
    path: Path, requested: Columns, append: Append, ids: Ids, rows_before: int, on_progress: OnProgress
) -> Counts:
    """Append the passages of a Parquet file, ROWS_AT_ONCE at a time.

    `ids` has the ids of the files before it, and rows_before is the number of its first row.
    Raises CorpusError if the file is broken or a value fits no passage.
    """
    import polars as pl  # slow to import, and only this format needs it

    try:
        table = pl.scan_parquet(path, glob=False)
        schema, rows = table.collect_schema(), table.select(pl.len()).collect().item()
    except pl.exceptions.PolarsError as error:
        raise _broken(path, error) from error
    if not rows:
        raise corpus_error(path, None, "no rows", "at least one", "check that the file was written completely")
    require_names(path, None, schema.names(), "name it, or leave it out")
    text = find_text_column(path, schema.names(), requested)
    identifier = find_id_column(path, schema.names(), text, requested)
    if schema[text] not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        found = f"{schema[text]} in the column {text!r}"
        raise corpus_error(path, None, found, "strings", f"name another column with {requested.text_option}")
    if identifier not in schema.names():
        identifier = None

    ids.begin(path, _place)
    passages = non_finite = 0
    for begin in range(0, rows, ROWS_AT_ONCE):
        try:
            frame = table.slice(begin, ROWS_AT_ONCE).collect()
        except pl.exceptions.PolarsError as error:
            raise _broken(path, error) from error
        # str.strip decides what is blank, as for the other formats: polars knows fewer blank characters
        filled = [bool(value and value.strip()) for value in frame[text].cast(pl.String).to_list()]
        numbers = [begin + row for row, is_filled in enumerate(filled) if is_filled]
        frame = frame.filter(pl.Series(filled, dtype=pl.Boolean))
        names = [""] * len(numbers) if identifier is None else _id_strings(path, frame[identifier], numbers)
        others = [column for column in frame if column.name not in (text, identifier)]
        metadata = _metadata_objects(path, others, len(numbers)).to_list()
        texts = frame[text].cast(pl.String).to_list()
        for row, passage, name, values in zip(numbers, texts, names, metadata, strict=True):
            append(passage, ids.replace_blank(name, rows_before + row, row), values)
        passages += len(numbers)
        non_finite += sum(map(_count_non_finite, others))
        on_progress(READ, min(0.99, (begin + ROWS_AT_ONCE) / rows))
    blank_ids = ids.count_blank()
    return Counts(passages, rows - passages, 0 if identifier is None else blank_ids, non_finite)


def _broken(path: Path, error: Exception) -> CorpusError:
    found = f"Parquet that cannot be read ({first_line(error)})"
    return corpus_error(path, None, found, "a whole Parquet file", "fetch or write the file again")


def _place(row: int) -> str:
    return f"row {row} (from 0)"


def _id_strings(path: Path, column: "pl.Series", rows: list[int]) -> list[str]:
    """Return the ids as text, "" for null and NaN; `rows` are their row numbers, for error messages."""
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


def _metadata_objects(path: Path, columns: list["pl.Series"], rows: int) -> "pl.Series":
    """Return each row as a compact JSON object, without the columns that are null, NaN or infinite there.

    Within a list or a struct, NaN and infinity become null. Raises CorpusError for a column that holds bytes.
    """
    import polars as pl

    objects = pl.repeat("{", rows, eager=True)
    for column in columns:
        if _holds_binary(column.dtype):
            found = f"{column.dtype} in the column {column.name!r}"
            raise corpus_error(path, None, found, "values that JSON can hold", "write the file without that column")
        member = column.to_frame().to_struct().struct.json_encode().str.slice(1).str.strip_suffix("}") + ","
        # Renamed, because Series methods interpret names such as "*" or "^a.*$" as patterns.
        values = column.alias("value")
        kept = values.is_finite().fill_null(False) if column.dtype.is_float() else values.is_not_null()
        objects += member.zip_with(kept, pl.Series([""]))
    return objects.str.strip_suffix(",") + "}"


def _count_non_finite(column: "pl.Series") -> int:
    """Return how many values of a column are NaN or infinite, at any depth."""
    import polars as pl

    values = column.alias("value")
    if values.dtype.is_float():
        return int((~values.is_finite()).sum())
    if isinstance(values.dtype, pl.List | pl.Array):
        return _count_non_finite(values.explode())
    if isinstance(values.dtype, pl.Struct):
        return sum(map(_count_non_finite, values.struct.unnest().get_columns()))
    return 0


def _holds_binary(dtype: "pl.DataType") -> bool:
    """Return whether a column holds bytes, at any depth: polars 2.1 panics when it writes them as JSON."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return any(_holds_binary(cast(pl.DataType, field.dtype)) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_binary(cast(pl.DataType, dtype.inner))
    return dtype == pl.Binary
