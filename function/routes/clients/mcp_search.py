"""The tool `search` of POST /mcp: how it is described to a language model, and how a call of it is answered."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import HTTPException
from pydantic import ValidationError

from function.engine.bundle import IndexInfo
from function.errors import describe_errors
from function.routes.filtering import filter_schemas
from function.routes.replies import bytes_beyond, json_reply, json_text
from function.routes.similar import SimilarRequest, too_large
from function.routes.similar_reply import SimilarReply
from function.routes.texts import refuse_characters, refuse_fields
from function.search.query import BackendError, Search, SearchError
from function.settings import Settings
from function.telemetry import Stopwatch


def make_tool(current: Callable[[], IndexInfo]) -> Callable[[], dict[str, Any]]:
    """Return a function that describes the tool for the current corpus."""

    def tool() -> dict[str, Any]:
        info = current()
        return {
            "name": "search",
            "title": "Semantic search",
            "description": describe_corpus(info),
            "inputSchema": input_schema(info),
            "outputSchema": SimilarReply.model_json_schema(),
            "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        }

    return tool


def describe_corpus(info: IndexInfo) -> str:
    """Return the description that a language model reads: which texts are searched, and by which columns."""
    columns = ", ".join(f"{name} ({kind})" for name, kind in info.columns.items())
    metadata = f" Each text has these columns, by which a filter can choose: {columns}." if columns else ""
    return f"Search the {info.rows:,} texts of {info.corpus} by meaning and return those closest to a text.{metadata}"


def input_schema(info: IndexInfo) -> dict[str, Any]:
    """Return the JSON Schema of a call: that of a request to /similar, with only what this corpus has."""
    schema = SimilarRequest.model_json_schema()
    properties = schema["properties"]
    if info.keywords is None:
        properties["mode"] |= {"enum": ["semantic"], "description": "Texts with a similar meaning."}
    if info.columns:
        properties["filter"] |= {"anyOf": [{"$ref": "#/components/schemas/Filter"}, {"type": "null"}]}
        schema["$defs"] = filter_schemas(info.columns)
    else:
        del properties["filter"]
    schema["description"] = "What to search for."
    found: dict[str, Any] = json.loads(json.dumps(schema).replace("#/components/schemas/", "#/$defs/"))
    return found


def make_call(search: Search, settings: Settings) -> Callable[[dict[str, Any], Stopwatch], Awaitable[dict[str, Any]]]:
    """Return the function that answers a call of the tool; wrong arguments get a result that describes the error."""

    async def call(arguments: dict[str, Any], stopwatch: Stopwatch) -> dict[str, Any]:
        try:
            refuse_fields(arguments, "arguments")
            request = SimilarRequest.model_validate(arguments)
            refuse_characters([request.text or request.id or ""], settings)
            found = await search(request.query(), stopwatch.lap)
        except ValidationError as error:
            return _failed(describe_errors([{**each, "loc": ("arguments", *each["loc"])} for each in error.errors()]))
        except HTTPException as error:
            return _failed(error.detail)
        except (SearchError, BackendError) as error:
            return _failed(str(error))
        content = found.reply()
        # clients of older revisions read the text
        result = {"content": [{"type": "text", "text": json_text(content)}], "structuredContent": content}
        if beyond := bytes_beyond(json_reply(result), settings.max_reply_bytes):
            return _failed(too_large(len(found.results), beyond, settings.max_reply_bytes))
        return result | {"isError": False}

    return call


def _failed(message: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": message}], "isError": True}
