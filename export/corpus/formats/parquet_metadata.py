"""The columns of a Parquet file as JSON, which cannot hold bytes, NaN or infinity."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from export.corpus.corpus import corpus_error

if TYPE_CHECKING:
    import polars as pl


def metadata_objects(path: Path, columns: list["pl.Series"], rows: int) -> "pl.Series":
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
        # Renamed, because Series methods read names such as "*" or "^a.*$" as patterns.
        values = column.alias("value")
        kept = values.is_finite().fill_null(False) if column.dtype.is_float() else values.is_not_null()
        objects += member.zip_with(kept, pl.Series([""]))
    return objects.str.strip_suffix(",") + "}"


def count_non_finite(column: "pl.Series") -> int:
    """Return how many values of a column are NaN or infinite, at any depth."""
    import polars as pl

    values = column.alias("value")
    if values.dtype.is_float():
        return int((~values.is_finite()).sum())
    if isinstance(values.dtype, pl.List | pl.Array):
        return count_non_finite(values.explode())
    if isinstance(values.dtype, pl.Struct):
        return sum(map(count_non_finite, values.struct.unnest().get_columns()))
    return 0


def _holds_binary(dtype: "pl.DataType") -> bool:
    """Return whether a column holds bytes, at any depth: polars 2.1 panics when it writes them as JSON."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return any(_holds_binary(cast(pl.DataType, field.dtype)) for field in dtype.fields)
    if isinstance(dtype, pl.List | pl.Array):
        return _holds_binary(cast(pl.DataType, dtype.inner))
    return dtype == pl.Binary
