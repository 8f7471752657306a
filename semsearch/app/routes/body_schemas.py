"""The schemas by which the direct routes read bodies: those of the models, without what only pydantic needs.

To import pydantic and to build the models takes long. So in the function's archive, a module with the same schemas as
literals replaces this one (function/image/build_archive.py), and a start imports no pydantic.
"""

from typing import Any

from semsearch.app.routes.body_fields import BodyFields
from semsearch.app.routes.body_models import BODY_MODELS

OMITTED = ("metadata", "ref")  # for the JSON Schema, and for schemas that refer to each other


def _without_models(schema: Any) -> Any:
    """Return a schema of pydantic_core that makes BodyFields instead of models, and accepts and refuses the same."""
    if isinstance(schema, list):
        return [_without_models(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _without_models(each) for name, each in schema.items() if name not in OMITTED}
    if "cls" in kept:
        kept["cls"] = BodyFields
    return kept


BODY_SCHEMAS: dict[str, Any] = {
    path: _without_models(model.__pydantic_core_schema__) for path, model in BODY_MODELS.items()
}
