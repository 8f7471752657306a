"""The passages of a Parquet file."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from export.corpus.columns import find_id_column, find_text_column
from export.corpus.corpus import Corpus, corpus_error

if TYPE_CHECKING:
    import polars as pl

_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))  # what str.strip takes; polars leaves some of it


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
    text = find_text_column(path, frame.columns, text_column)
    identifier = find_id_column(path, frame.columns, text, id_column)

    texts = frame[text]
    if texts.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        found = f"{texts.dtype} in the column {text!r}"
        raise corpus_error(path, None, found, "strings", "name another column with --text-column")
    texts = texts.cast(pl.String).alias("text")
    row_numbers = pl.int_range(len(frame), eager=True).cast(pl.String)
    ids = row_numbers
    if identifier in frame.columns:
        ids = _id_strings(path, frame[identifier])
        ids = ids.zip_with(_is_filled(ids), row_numbers)
    others = [column for column in frame if column.name not in (text, identifier)]
    metadata = _metadata_objects(path, others, len(frame))
    kept = _is_filled(texts)
    return Corpus(
        texts=texts.filter(kept).to_list(),
        ids=ids.filter(kept).to_list(),
        metadata=metadata.filter(kept).to_list(),
        empty_texts=len(frame) - int(kept.sum()),
    )


def _is_filled(strings: "pl.Series") -> "pl.Series":
    return strings.fill_null("").str.strip_chars(_BLANKS) != ""


def _id_strings(path: Path, column: "pl.Series") -> "pl.Series":
    import polars as pl

    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Duration):
        found = f"{column.dtype} in the column {column.name!r}"
        raise corpus_error(path, None, found, "strings or numbers", "name another column with --id-column")
    return column.alias("id").cast(pl.String)


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
