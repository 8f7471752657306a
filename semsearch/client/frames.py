"""Frames of pandas, polars and Arrow, whose names and types are those of the index, whatever rows they have.

Each library is imported by the first frame that is made with it: none is a requirement of this package.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from semsearch.engine.metadata.columns import LIST_TYPES, stored_value
from semsearch.engine.tensors import AnyArray

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

TYPES_WITH_DTYPE = ("number", "numbers")  # types of columns that have a dtype
OBJECTS = "objects"  # the type of a column whose values are of several types, or of none that filters compare
SNIPPETS = "snippet"  # the type of the column of snippets
COLLISION_SUFFIX = "_metadata"  # follows the name of a column of the metadata that another column of the frame has
# types of values that need no conversion, by the dtype or the type of the column; lists are always looked at
AS_STORED = {"string": str, "boolean": bool, "int64": int, "uint64": int, "float64": float}


class ColumnType(NamedTuple):
    """The type of a column: that of the index, or OBJECTS. dtype is int64, uint64 or float64, for numbers alone."""

    kind: str
    dtype: str = ""


ColumnTypes = Mapping[str, ColumnType]
OWN_TYPES: ColumnTypes = {  # the columns that no metadata have
    "query": ColumnType("number", "int64"),
    "id": ColumnType("string"),
    "score": ColumnType("number", "float64"),
    "text": ColumnType("string"),
    "index": ColumnType("number", "int64"),
    "group": ColumnType("string"),
    "snippet": ColumnType(SNIPPETS),
    "source": ColumnType("string"),
}


def types_of(kinds: Mapping[str, str], untyped: Iterable[str], dtypes: Mapping[str, str]) -> ColumnTypes:
    """Return the types of the columns of an index: those that filters compare, then the others that its manifest lists.

    dtypes are those of columns of numbers. Without one, as in S3 Vectors, numbers are float64.
    """
    types = {}
    for name, kind in kinds.items():
        types[name] = ColumnType(kind, dtypes.get(name, "float64") if kind in TYPES_WITH_DTYPE else "")
    return types | dict.fromkeys(untyped, ColumnType(OBJECTS))


class FrameColumn(NamedTuple):
    """A column of a frame: None for a missing value, a date as microseconds since 1970 in UTC, a list as a list."""

    name: str
    type: ColumnType
    values: list[Any]


def frame_columns(
    own: Mapping[str, list[Any]], metadata: Sequence[Mapping[str, Any]], types: ColumnTypes
) -> list[FrameColumn]:
    """Return the columns of a frame: those of `own`, then all columns of the index, then what else the metadata have.

    own has the values of columns of OWN_TYPES, metadata those of the other columns. types are those of the index.
    """
    columns = [FrameColumn(name, OWN_TYPES[name], values) for name, values in own.items()]
    fields = dict.fromkeys(chain(types, chain.from_iterable(metadata)))
    for field, name in free_names(fields, own).items():
        kind = types.get(field, ColumnType(OBJECTS))
        values = [row.get(field) for row in metadata]
        try:
            columns.append(FrameColumn(name, kind, _typed(kind, values)))
        except (TypeError, ValueError, OverflowError):  # a server has put another index in the place of its own
            columns.append(FrameColumn(name, ColumnType(OBJECTS), values))
    return columns


def free_names(fields: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Return the column of each field of the metadata: its name, with a suffix if that is another column."""
    taken = {*columns, *fields}
    names = {}
    for name in dict.fromkeys(fields):
        names[name] = name
        if name in columns:
            while names[name] in taken:
                names[name] += COLLISION_SUFFIX
            taken.add(names[name])
    return names


def _typed(kind: ColumnType, values: list[Any]) -> list[Any]:
    """Return values of the metadata as values of the column's type. Raises ValueError if one is of another type."""
    if not {*map(type, values)} <= {AS_STORED.get(kind.dtype or kind.kind), type(None)}:
        convert = _converter(kind)
        values = [None if value is None else convert(value) for value in values]
    if kind.kind == "number":
        _check_range(kind.dtype, values)
    return values


def _check_range(dtype: str, numbers: Iterable[int | float | None]) -> None:
    """Raise OverflowError if a dtype of whole numbers does not hold one of these."""
    held = [number for number in numbers if number is not None]
    if held and dtype != "float64":
        limits = np.iinfo(dtype)
        if min(held) < limits.min or max(held) > limits.max:
            raise OverflowError(f"found {min(held)} and {max(held)}, expected numbers of {dtype}")


def _converter(kind: ColumnType) -> Callable[[Any], Any]:
    match kind.kind:
        case "string":
            return _string
        case "number":
            return _number_of(kind.dtype)
        case "boolean":
            return _boolean
        case "date":
            return cache(partial(stored_value, "date"))  # most dates of a column are there many times
        case "list":
            return lambda value: [each if each is None else _string(each) for each in _list(value)]
        case "numbers":
            return partial(_numbers, kind.dtype)
    return lambda value: value


def _numbers(dtype: str, value: Any) -> list[int | float | None]:
    """Return a list of numbers, or of its JSON."""
    number = _number_of(dtype)
    numbers = [each if each is None else number(each) for each in _list(value)]
    _check_range(dtype, numbers)
    return numbers


def _string(value: object) -> str:
    """Return a string. A number of a column of strings is compared as its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"found {value!r:.60}, expected a string")
    return json.dumps(value)


def _number_of(dtype: str) -> Callable[[Any], int | float]:
    """Return what makes a number of this dtype of a number, or of the JSON of one, as the rows of a CSV have it."""
    to_type = float if dtype == "float64" else int

    def number(value: Any) -> int | float:
        if isinstance(value, str):
            value = json.loads(value)
        if isinstance(value, bool) or to_type(value) != value:
            raise ValueError(f"found {value!r:.60}, expected a number of {dtype}")
        return to_type(value)

    return number


def _boolean(value: Any) -> bool:
    """Return a boolean, or what its JSON is in the rows of a CSV, also capitalized."""
    found = json.loads(value.lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise TypeError(f"found {found!r:.60}, expected a boolean")
    return found


def _list(value: Any) -> list[Any]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, list):
        raise TypeError(f"found {found!r:.60}, expected a list")
    return found


class Framed:
    """What has frames of its texts, with a row for each.

    All columns of the index are in a frame, also those without a value in its rows. Their names and types are the same
    for all rows of an index: a string, a boolean, a number (a whole one if all numbers of the column are), a list of
    strings or numbers, or a date as its moment in UTC, with microseconds: a date without a time is its first moment,
    and a time without a zone is in UTC. Missing values are missing in each type. A column that filters cannot compare,
    because its values are of several types or are objects, has objects in pandas and polars, and their JSON in Arrow;
    if the manifest does not list it, a frame has it if one of its rows does. A column of the metadata that has the name
    of another one, such as `id`, gets the suffix `_metadata`.
    """

    def to_pandas(self) -> "pandas.DataFrame":
        """Return a pandas.DataFrame with the nullable types of pandas, such as Int64 and boolean; lists are objects."""
        return pandas_frame(self._frame())

    def to_polars(self) -> "polars.DataFrame":
        """Return a polars.DataFrame. A column with values of several types has the type Object."""
        return polars_frame(self._frame())

    def to_arrow(self) -> "pyarrow.Table":
        """Return a pyarrow.Table. A column with values of several types has their JSON."""
        return arrow_table(self._frame())

    def _frame(self) -> list[FrameColumn]:
        raise NotImplementedError


def pandas_frame(columns: Sequence[FrameColumn]) -> "pandas.DataFrame":
    """Return a pandas.DataFrame with nullable types; lists and values of several types are objects."""
    import pandas

    return pandas.DataFrame({column.name: _pandas_column(column) for column in columns})


def _pandas_column(column: FrameColumn) -> Any:
    import pandas

    kind, dtype = column.type
    if kind == "string":
        return pandas.array(column.values, dtype="string")
    if kind == "number" and dtype == "float64":
        return pandas.arrays.FloatingArray(*_with_mask(column.values, np.float64))
    if kind == "number":
        return pandas.arrays.IntegerArray(*_with_mask(column.values, np.dtype(dtype)))
    if kind == "boolean":
        return pandas.arrays.BooleanArray(*_with_mask(column.values, np.bool_))
    if kind == "date":
        microseconds, is_missing = _with_mask(column.values, np.int64)
        moments = microseconds.view("M8[us]")
        moments[is_missing] = np.datetime64("NaT")
        return pandas.DatetimeIndex(moments).tz_localize("UTC")
    objects = np.empty(len(column.values), object)  # np.array would make a matrix of lists of one length
    objects[:] = column.values
    return objects


def _with_mask(values: list[Any], dtype: Any) -> tuple[AnyArray, AnyArray]:
    """Return values as an array (n,) of a dtype, 0 for a missing one, and which are missing, (n,) bool."""
    is_missing = np.fromiter((value is None for value in values), np.bool_, len(values))
    if is_missing.any():
        values = [0 if value is None else value for value in values]
    return np.array(values, dtype), is_missing


def polars_frame(columns: Sequence[FrameColumn]) -> "polars.DataFrame":
    """Return a polars.DataFrame. Values of several types have the type Object."""
    import polars

    ranges = polars.List(polars.List(polars.Int64))
    of_snippets: dict[str, Any] = {
        "start": polars.Int64,
        "end": polars.Int64,
        "text": polars.String,
        "highlights": ranges,
    }
    numbers = {"int64": polars.Int64, "uint64": polars.UInt64, "float64": polars.Float64}

    def series(column: FrameColumn) -> "polars.Series":
        kind, dtype = column.type
        if kind == "date":
            moments = polars.Series(column.name, column.values, polars.Int64)
            return moments.cast(polars.Datetime("us", "UTC"))
        if kind in LIST_TYPES:
            return polars.Series(column.name, column.values, polars.List(numbers.get(dtype, polars.String)))
        types: dict[str, Any] = {
            "string": polars.String,
            "boolean": polars.Boolean,
            SNIPPETS: polars.Struct(of_snippets),
        }
        if kind == "number":
            return polars.Series(column.name, column.values, numbers[dtype])
        return polars.Series(column.name, column.values, types.get(kind, polars.Object))

    return polars.DataFrame([series(column) for column in columns])


def arrow_table(columns: Sequence[FrameColumn]) -> "pyarrow.Table":
    """Return a pyarrow.Table. Values of several types are their JSON."""
    import pyarrow

    whole = pyarrow.int64()
    ranges = ("highlights", pyarrow.list_(pyarrow.list_(whole)))
    of_snippets = pyarrow.struct([("start", whole), ("end", whole), ("text", pyarrow.string()), ranges])
    numbers = {"int64": whole, "uint64": pyarrow.uint64(), "float64": pyarrow.float64()}

    def array(column: FrameColumn) -> Any:
        kind, dtype = column.type
        if kind == "date":
            return pyarrow.array(column.values, whole).cast(pyarrow.timestamp("us", "UTC"))
        if kind in LIST_TYPES:
            return pyarrow.array(column.values, pyarrow.list_(numbers.get(dtype, pyarrow.string())))
        if kind == "number":
            return pyarrow.array(column.values, numbers[dtype])
        types = {"string": pyarrow.string(), "boolean": pyarrow.bool_(), SNIPPETS: of_snippets}
        if kind in types:
            return pyarrow.array(column.values, types[kind])
        return pyarrow.array(map(_json, column.values), pyarrow.string())

    return pyarrow.table({column.name: array(column) for column in columns})


def _json(value: object) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False)
