"""JSON Schemas of filters over the columns of a corpus. Imported when needed."""

from collections.abc import Mapping
from typing import Any

from function.engine.metadata.columns import COMPARED
from function.engine.metadata.filters import MOST_LEVELS, STRINGS

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
must hold. A list passes if one of its strings passes. `$startsWith` compares the beginning of strings. At most \
{MOST_LEVELS} filters may be within each other."""


def filter_schemas(kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON Schemas of a filter over columns of these types, keyed by their names in the OpenAPI document."""
    filters = {"type": "array", "minItems": 1, "items": _reference("Filter")}
    columns = {name: {"anyOf": [VALUES[kind], _reference(_name(kind))]} for name, kind in kinds.items()}
    schemas = {
        "Filter": _object({**columns, "$and": filters, "$or": filters}) | {"description": DESCRIPTION},
    }
    for kind in sorted(set(kinds.values())):
        several = {"type": "array", "minItems": 1, "items": VALUES[kind]}
        operators = dict.fromkeys(("$eq", "$ne", *COMPARED), VALUES[kind]) | {"$in": several, "$nin": several}
        if kind in STRINGS:
            operators["$startsWith"] = VALUES[kind]
        schemas[_name(kind)] = _object(operators | {"$exists": {"type": "boolean"}}) | {"minProperties": 1}
    return schemas


def _name(kind: str) -> str:
    return f"{kind.capitalize()}Operators"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}
