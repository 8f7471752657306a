"""JSON Schemas of filters over the columns of a corpus. Imported when needed."""

from collections.abc import Mapping
from typing import Any

from function.engine.metadata.columns import COMPARED, ID
from function.engine.metadata.filters import MOST_LEVELS, STRINGS
from function.routes.similar import MOST_COLUMNS

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


def describe_columns(properties: dict[str, Any], kinds: Mapping[str, str]) -> None:
    """Write the columns of these types into the JSON Schemas of a request's fields, `properties`."""
    strings = [name for name, kind in kinds.items() if kind == "string" and name != ID]
    sortable = [name for name, kind in kinds.items() if kind != "list" and name != ID]
    columns = [name for name in kinds if name != ID]
    properties["filter"]["anyOf"] = [_reference("Filter"), {"type": "null"}]
    properties["group_by"]["anyOf"] = [*([{"enum": strings}] if strings else []), {"type": "null"}]
    way = {"enum": ["asc", "desc"]}
    sort = _object(dict.fromkeys(sortable, way)) | {"minProperties": 1, "maxProperties": MOST_COLUMNS}
    properties["sort"]["anyOf"] = [*([sort] if sortable else []), {"type": "null"}]
    properties["facets"] |= {"items": {"enum": columns}} if columns else {"maxItems": 0}


def _name(kind: str) -> str:
    return f"{kind.capitalize()}Operators"


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}
