"""The filter of a request: its rows or its refusal, and its place in the OpenAPI document. Imported when needed."""

import reprlib
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException

from function.engine.columns import COMPARED, Columns, Mask
from function.engine.filters import MOST_LEVELS, FilterError, allowed_rows
from function.errors import cut

DATE = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
VALUES = {  # JSON Schema of a value that is compared with a column, by the column's type
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "date": DATE,
    "list": {"type": "string"},
}
DESCRIPTION = f"""\
Only texts whose metadata pass the filter are found. A value without an operator means `$eq`; all members of an object \
must hold; of a list, one string must. At most {MOST_LEVELS} filters may be within each other."""


def filtered_rows(condition: dict[str, Any], columns: Columns) -> Mask:
    """Return the rows that a request's filter keeps, (rows,) bool.

    Raises HTTPException with status 422 if the filter cannot be used; its message lists the columns.
    """
    try:
        return allowed_rows(condition, columns)
    except FilterError as error:
        known = ", ".join(f"{name} ({kind})" for name, kind in columns.kinds.items()) or "none"
        message = f"{error.where}: expected {error.expected}, found {cut(reprlib.repr(error.found))}"
        raise HTTPException(422, f"{message}; the columns are: {known}") from None


def filter_schemas(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON Schemas of a filter over columns of these types, by their names in the OpenAPI document."""
    filters = {"type": "array", "minItems": 1, "items": _reference("Filter")}
    columns = {name: {"anyOf": [VALUES[kind], _reference(_name(kind))]} for name, kind in kinds.items()}
    schemas = {
        "Filter": _object({**columns, "$and": filters, "$or": filters}) | {"description": DESCRIPTION},
    }
    for kind in sorted(set(kinds.values())):
        several = {"type": "array", "minItems": 1, "items": VALUES[kind]}
        operators = dict.fromkeys(("$eq", "$ne", *COMPARED), VALUES[kind]) | {"$in": several, "$nin": several}
        schemas[_name(kind)] = _object(operators | {"$exists": {"type": "boolean"}}) | {"minProperties": 1}
    return schemas


def _name(kind: str) -> str:
    return f"{kind.capitalize()}Operators"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}
