"""Rows of tables, and those in memory as files have them: of a DataFrame, an Arrow table or a sequence of mappings.

Values arrive as they are: a scalar of NumPy or pandas as Python's own, a Decimal as a number, a UUID, a Period or an
Interval as its text, and NaT, NA and NaN as missing. What a bundle cannot keep is an error, such as nanoseconds, or is
left out and named, such as a column of bytes.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from semsearch.engine.values import TEXT_TYPES, exact_number, exact_time
from semsearch.indexing.corpus.corpus import CorpusError
from semsearch.indexing.errors import first_line
from semsearch.indexing.progress import OnProgress

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

ROWS_PER_READ = 16_384  # rows of a DataFrame that are Python objects at the same time
MISSING_TYPES = ("NAType", "NaTType")  # names of pandas' types of missing values
ROW_PLACE = "row {} (from 0)"
UNNAMED_LABELS = "index"  # what `id_column` calls the labels of a pandas DataFrame whose index has no name
Row = dict[str, object]
NumberedRows = Iterator[tuple[int, Row]]


class RowTypeError(CorpusError, TypeError):
    """A value or rows of a type that a bundle cannot keep."""


class TableReader(NamedTuple):
    """How the rows of a table are read, which can happen again and again."""

    read: Callable[[OnProgress], NumberedRows]
    place: str = ROW_PLACE  # how messages name the number of a row
    unkept: tuple[str, ...] = ()  # columns whose values a bundle cannot keep
    id_column: str | None = None  # column of the ids, unless another one is requested
    warnings: tuple[str, ...] = ()  # what the owner of the rows may expect otherwise


def _in_memory(rows: Callable[[], Iterator[Row]], unkept: Sequence[str] = ()) -> TableReader:
    return TableReader(lambda on_progress: enumerate(rows()), unkept=tuple(unkept))


def read_rows(data: Any, id_column: str | None = None) -> TableReader:
    """Return the rows of a pandas or polars DataFrame, an Arrow table, or a sequence of mappings or of texts.

    id_column is the requested column of the ids, which can be the labels of a pandas DataFrame.
    Raises RowTypeError for other data.
    """
    module = type(data).__module__.partition(".")[0]
    if module == "pandas":
        return _of_pandas(data, id_column)
    if module == "polars" or hasattr(data, "__arrow_c_stream__"):
        return _of_polars(data)
    if isinstance(data, Mapping | bytes) or not isinstance(data, Iterable):
        found = type(data).__name__
        raise RowTypeError(f"rows: found {found}, expected rows; pass a DataFrame, or a list of dicts or of texts")
    listed = list(data)
    if all(isinstance(each, str) for each in listed):
        return _in_memory(lambda: ({"text": each} for each in listed))
    for number, each in enumerate(listed):
        if not isinstance(each, Mapping):
            found = f"{type(each).__name__} in row {number} (from 0)"
            raise RowTypeError(f"rows: found {found}, expected a mapping of column names to values; pass dicts")
    return _in_memory(lambda: _plain_rows(listed))


def _plain_rows(rows: Iterable[Mapping[Any, object]]) -> Iterator[Row]:
    for number, row in enumerate(rows):
        values = {str(name): plain_value(value, number, str(name)) for name, value in row.items()}
        if len(values) < len(row):
            _require_distinct(f"rows, {ROW_PLACE.format(number)}", [str(name) for name in row])
        yield values


def _require_distinct(source: str, names: Sequence[str]) -> None:
    """Raise CorpusError if two columns have one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise CorpusError(f"{source}: found the name {name!r} twice, expected each name once; rename one column")


def plain_value(value: object, row: int, column: str) -> object:
    """Return a value as Python's own type that JSON can hold, None for a missing one.

    Raises RowTypeError, which names the row (from 0) and the column, for a value that cannot be kept.
    """
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value).__name__ in MISSING_TYPES:
        return None
    if type(value).__name__ in TEXT_TYPES:
        return str(value)
    if isinstance(value, np.datetime64) and np.isnat(value):
        return None
    if isinstance(value, np.datetime64 | datetime):
        return _time(value, row, column)
    if isinstance(value, np.generic) and not isinstance(value, np.timedelta64):
        return plain_value(value.item(), row, column)
    if isinstance(value, str | int | float):  # a subclass, such as an enumeration
        return value
    if isinstance(value, Decimal):
        return _number(value, row, column)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return [plain_value(each, row, column) for each in value]
    if isinstance(value, Mapping):
        return {str(name): plain_value(each, row, column) for name, each in value.items()}
    found = f"{type(value).__name__} in the column {column!r} of row {row} (from 0)"
    expected = "a string, number, boolean, date, list or missing value"
    raise RowTypeError(f"rows: found {found}, expected {expected}; convert it, or leave the column out")


def _number(value: Decimal, row: int, column: str) -> int | float | None:
    if not value.is_finite():
        return None
    number = exact_number(value)
    if number is None:
        found = f"{value} in the column {column!r} of row {row} (from 0)"
        raise RowTypeError(f"rows: found {found}, expected a number that 64 bits hold; round it, or write it as text")
    return number


def _time(value: np.datetime64 | datetime, row: int, column: str) -> str:
    found = exact_time(value)
    if found is None:
        place = f"nanoseconds in the column {column!r} of row {row} (from 0)"
        raise RowTypeError(f"rows: found {place}, expected microseconds at most; round it, or leave the column out")
    return found


# --- pandas


def _of_pandas(data: Any, requested: str | None) -> TableReader:
    """Return the rows of a DataFrame or a Series; requested is the stated column of the ids.

    The labels of an index with a name are the ids, and so are those of one without a name if UNNAMED_LABELS are
    requested. No value of a row decides that, so the ids of a frame stay when it is filtered, sorted or concatenated.
    """
    if type(data).__name__ == "Series":
        data = data.to_frame(data.name or "text")
    if type(data).__name__ != "DataFrame":
        found = f"pandas' {type(data).__name__}"
        raise RowTypeError(f"rows: found {found}, expected a DataFrame or a Series; pass one of these")
    frame: pd.DataFrame = data.set_axis([str(name) for name in data.columns], axis=1)
    levels = _level_names(frame, requested)
    warnings = () if levels else tuple(_warn_of_labels(frame.index))
    id_column = levels[0] if len(levels) == 1 else None
    if len(levels) != 1 or levels[0] not in frame.columns or not frame.index.equals(frame.set_index(levels[0]).index):
        _require_distinct("rows", [*levels, *frame.columns])
        if levels:
            frame = frame.reset_index(names=levels)
    unkept = [name for name in frame.columns if _is_unkept(frame[name])]
    kept = frame.drop(columns=unkept)
    return _in_memory(lambda: _pandas_rows(kept), unkept)._replace(id_column=id_column, warnings=warnings)


def _level_names(frame: "pd.DataFrame", requested: str | None) -> list[str]:
    """Return the names of the levels of the index that become columns; a single one has the ids."""
    index = frame.index
    if index.nlevels > 1:
        return [f"level_{level}" if name is None else str(name) for level, name in enumerate(index.names)]
    if index.name is not None:
        return [str(index.name)]
    return [UNNAMED_LABELS] if requested == UNNAMED_LABELS and UNNAMED_LABELS not in frame.columns else []


def _warn_of_labels(index: "pd.Index[Any]") -> Iterator[str]:
    """Yield a warning if labels that become no column are more than numbers of rows."""
    if len(index) and index.inferred_type != "integer":
        yield (
            f"the labels of the DataFrame, such as {index[0]!r:.40}, are left out, because its index has no name; "
            f"name it to keep them, or state id_column={UNNAMED_LABELS!r} if they are ids"
        )


def _is_unkept(values: "pd.Series[Any]") -> bool:
    """Return whether JSON cannot hold the values of a column: bytes or durations."""
    from pandas.api.types import infer_dtype

    return bool(values.dtype.kind == "m" or infer_dtype(values, skipna=True) == "bytes")


def _pandas_rows(frame: "pd.DataFrame") -> Iterator[Row]:
    number = 0
    for begin in range(0, len(frame), ROWS_PER_READ):
        for row in frame.iloc[begin : begin + ROWS_PER_READ].to_dict("records"):
            yield {name: plain_value(value, number, name) for name, value in row.items()}
            number += 1


# --- polars, and through it Arrow and Parquet


def _of_polars(data: Any) -> TableReader:
    import polars as pl  # slow to import

    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    if isinstance(data, pl.Series):
        data = data.to_frame(data.name or "text")
    if not isinstance(data, pl.DataFrame):
        try:
            data = pl.from_arrow(data)
        except pl.exceptions.DuplicateError as error:
            found = f"a name twice ({first_line(error)})"
            raise CorpusError(f"rows: found {found}, expected each name once; rename one column") from error
    assert isinstance(data, pl.DataFrame)
    unkept = unkept_columns(data.schema)
    refuse_nanoseconds("rows", data.lazy())
    kept = data.drop(unkept)
    return _in_memory(lambda: _polars_rows(kept), unkept)


def _polars_rows(frame: "pl.DataFrame") -> Iterator[Row]:
    for number, row in enumerate(frame.iter_rows(named=True)):
        yield {name: plain_value(value, number, name) for name, value in row.items()}


def unkept_columns(schema: "Mapping[str, pl.DataType]") -> tuple[str, ...]:
    """Return the columns whose values JSON cannot hold: bytes, durations, and types of Arrow's extensions.

    The numbers of such a type can mean something else, as those of a Period do.
    """
    import polars as pl

    extension = getattr(pl, "BaseExtension", pl.Binary)  # older versions have none

    def is_kept(kind: pl.DataType) -> bool:
        if isinstance(kind, pl.List | pl.Array):
            return is_kept(kind.inner)  # type: ignore[arg-type]  # an instance in a schema
        if isinstance(kind, pl.Struct):
            return all(is_kept(field.dtype) for field in kind.fields)  # type: ignore[arg-type]
        return not isinstance(kind, (pl.Binary, pl.Duration, extension))

    return tuple(name for name, kind in schema.items() if not is_kept(kind))


def refuse_nanoseconds(source: object, table: "pl.LazyFrame") -> None:
    """Raise CorpusError if a column has moments with nanoseconds, which a bundle would lose."""
    import polars as pl

    named = [name for name, kind in table.collect_schema().items() if kind == pl.Datetime and kind.time_unit == "ns"]  # type: ignore[attr-defined]
    if not named:
        return
    found = table.select((pl.col(name).dt.nanosecond() % 1_000 != 0).any() for name in named).collect()
    for name in named:
        if found[name].item():
            raise CorpusError(
                f"{source}: found nanoseconds in the column {name!r}, expected microseconds at most; round it, or "
                "leave the column out"
            )
