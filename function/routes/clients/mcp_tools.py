"""The tools of POST /mcp: how they are described to a language model, and how calls are answered.

`search_…` is named after the corpus and takes all that /similar takes. `search` and `fetch` are what assistants such as
ChatGPT expect of every server (https://developers.openai.com/api/docs/mcp): ids, titles and addresses for a query, and
the text for an id.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import normalize

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from function.engine.bundle import IndexInfo
from function.engine.loading import Loaded, LoadedTexts
from function.engine.metadata.columns import Column
from function.engine.metadata.facets import count_values
from function.engine.metadata.filters import STRING_TYPES
from function.errors import describe_errors, echo
from function.executor import Executor
from function.http import HttpError
from function.routes.fields import RequestText, StrictRequest, refuse_fields, refuse_texts
from function.routes.replies import json_bytes, json_text
from function.routes.schemas import SimilarReply, describe_columns, filter_schemas
from function.routes.similar import RerankOptions, SimilarRequest, refuse_large_reply
from function.search.query import BackendError, Query, Search, SearchError
from function.search.refinements import PATH, document_rows
from function.settings import Settings
from function.telemetry import Stopwatch

Object = dict[str, Any]

MOST_NAME = 40  # characters of the corpus's name in the name of a tool
LISTED_VALUES = 8  # values of a column that the description lists, the most frequent ones
LONGEST_VALUE = 40  # characters of a value that is listed
LONGEST_TITLE = 80  # characters of a text that serve as its title if it has none
LONGEST_TEXT = 50_000  # characters of a document that `fetch` returns; of a longer one, the part around the passage
SUFFIX = re.compile(r"(\.[a-z]{1,7}){1,2}$")  # such as ".csv" or ".jsonl.gz"
READS = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


class SearchArguments(StrictRequest):
    """What to search for."""

    query: RequestText = Field(description="What to look for, in a few words or a sentence.")


class FetchArguments(StrictRequest):
    """Which text to return."""

    id: RequestText = Field(description="The id of a result of a search.")


class Reference(BaseModel):
    """A text by its id, title and address, which is empty if the corpus has no column `url`."""

    id: str
    title: str
    url: str


class References(BaseModel):
    """The texts that are closest to the query, best first."""

    results: list[Reference]


class FetchedText(Reference):
    """The text of a document, of at most LONGEST_TEXT characters, and the metadata of the passage that has the id."""

    text: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools over the bundle of each request, which `current` returns."""

    current: Callable[[], Loaded]
    search: Search
    executor: Executor
    settings: Settings

    async def describe(self) -> str:
        """Return the description that a language model reads: which texts are searched, by which columns."""
        bundle = self.current()
        return await self.executor.run(lambda: describe_corpus(bundle), is_long=True)

    def names(self, *, is_corpus_alone: bool) -> list[str]:
        """Return the names of the tools; is_corpus_alone leaves out `search` and `fetch`."""
        bundle = self.current()
        own = tool_name(info_of(bundle))
        has_texts = isinstance(bundle, LoadedTexts)
        return [own, "search", "fetch"] if has_texts and not is_corpus_alone else [own]

    async def definitions(self, *, is_corpus_alone: bool) -> list[Object]:
        """Return the definitions of the tools in `names`."""
        bundle = self.current()
        info, about = info_of(bundle), await self.describe()
        title = f"Search {info.title or info.corpus}"
        inputs = input_schema(info, bundle.column_kinds, has_reranker=bundle.manifest.rerank is not None)
        finds = f"Find texts by a query; returns ids, titles and addresses for `fetch`. {about}"
        fetches = "Return the text of the document, its title and its address for a result of `search`, by its id."
        own = [
            _define(tool_name(info), title, about, inputs, SimilarReply),
            _define("search", title, finds, SearchArguments.model_json_schema(), References),
            _define("fetch", "Fetch a text", fetches, FetchArguments.model_json_schema(), FetchedText),
        ]
        return own[: len(self.names(is_corpus_alone=is_corpus_alone))]

    async def call(self, name: str, arguments: Object, stopwatch: Stopwatch) -> Object:
        """Return what a tool returns; wrong arguments get a result that describes the error."""
        try:
            refuse_fields(arguments, "arguments")
            if name == "search":
                content = await self._search_for_ids(SearchArguments.model_validate(arguments).query, stopwatch)
            elif name == "fetch":
                content = await self._fetch(FetchArguments.model_validate(arguments).id)
            else:
                request = SimilarRequest.model_validate(arguments)
                refuse_texts([request.text or request.id or ""], self.settings)
                content = (await self.search(request.query(), stopwatch.lap)).reply()
            # clients of older revisions read the text
            result = {"content": [{"type": "text", "text": json_text(content)}], "structuredContent": content}
            refuse_large_reply(json_bytes(result), len(content.get("results", ())), self.settings)
        except ValidationError as error:
            return _failed(describe_errors(error.errors(), "arguments"))
        except HttpError as error:
            return _failed(error.detail)
        except (SearchError, BackendError) as error:
            return _failed(str(error))
        return result | {"isError": False}

    async def _search_for_ids(self, text: str, stopwatch: Stopwatch) -> Object:
        bundle = self.current()
        refuse_texts([text], self.settings)
        query = Query(text, 10)
        if bundle.manifest.rerank is not None:
            query = replace(query, rerank=RerankOptions().candidates)
        if bundle.column_kinds.get(PATH) == "string":
            query = replace(query, group_by=PATH, group_size=1)
        found = await self.search(query, stopwatch.lap)
        return {"results": [_reference(hit["id"], hit["text"], hit["metadata"]) for hit in found.results]}

    async def _fetch(self, id: str) -> Object:
        bundle = self.current()
        assert isinstance(bundle, LoadedTexts)  # otherwise there is no such tool
        row = await self.executor.run(lambda: bundle.find(id), is_long=True)
        if row is None:
            raise SearchError(f"id: found {echo(id)}, expected the id of a result; search for one")
        passage = bundle.passages[row]
        text = passage.text
        if bundle.column_kinds.get(PATH) == "string" and (path := passage.metadata.get(PATH)) is not None:
            text = await self.executor.run(lambda: _document_text(bundle, path, row), is_long=True)
        return _reference(id, passage.text, passage.metadata) | {"text": text, "metadata": passage.metadata}


def info_of(bundle: Loaded) -> IndexInfo:
    """Return what the manifest says of the texts."""
    return bundle.manifest.corpus


def tool_name(info: IndexInfo) -> str:
    """Return the name of the corpus's own tool, such as `search_python_documentation`."""
    title = info.title or SUFFIX.sub("", info.corpus)
    letters = normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "_", letters.replace("'", "")).strip("_")[:MOST_NAME].rstrip("_")
    return f"search_{name or 'texts'}"


def describe_corpus(bundle: Loaded) -> str:
    """Return which texts are searched, and their columns with the most frequent values."""
    info = info_of(bundle)
    rows = bundle.rows if isinstance(bundle, LoadedTexts) else info.rows
    about = f"Search the {rows:,} texts of {info.title or info.corpus} and return those closest to a text."
    if info.description:
        about += f" {info.description}"
    columns = [f"{name} ({kind}{_frequent_values(bundle, name, kind)})" for name, kind in info.columns.items()]
    if columns:
        about += f" Each text has these columns, by which a filter can choose: {'; '.join(columns)}."
    return about


def _frequent_values(bundle: Loaded, name: str, kind: str) -> str:
    """Return the most frequent values of a column, if they are those of at least half of its rows."""
    if not isinstance(bundle, LoadedTexts) or kind not in STRING_TYPES:
        return ""
    column = bundle.columns[name]
    assert isinstance(column, Column)
    counts = count_values(column, bundle.allowed, LISTED_VALUES)
    if 2 * sum(count for _, count in counts) < np.count_nonzero(bundle.among_allowed(column.exists())):
        return ""
    shown = ", ".join(value for value, _ in counts if len(value) <= LONGEST_VALUE)
    return f": {shown}" if shown else ""


def input_schema(info: IndexInfo, kinds: Mapping[str, str], *, has_reranker: bool) -> Object:
    """Return the JSON Schema of a call: that of a request to /similar, with only what this corpus has."""
    schema = SimilarRequest.model_json_schema()
    properties = schema["properties"]
    del properties["prefix"]  # nobody types
    if info.keywords is None:
        properties["mode"] = {"enum": ["semantic"], "description": "Texts with a similar meaning."}
    if not has_reranker:
        del properties["rerank"], schema["$defs"]["RerankOptions"]
    describe_columns(properties, kinds)
    schema["$defs"] |= filter_schemas(kinds)
    schema["description"] = "What to search for."
    found: Object = json.loads(json.dumps(schema).replace("#/components/schemas/", "#/$defs/"))
    return found


def _reference(id: str, text: str, metadata: Mapping[str, Any]) -> Object:
    """Return the fields of a Reference; a text without a title or headings has its beginning as title."""
    headings = metadata.get("headings")
    title = metadata.get("title") or (headings[-1] if isinstance(headings, list) and headings else None)
    first = " ".join(text.split())
    short = first if len(first) <= LONGEST_TITLE else f"{first[: LONGEST_TITLE - 1]}…"
    url = metadata.get("url")
    return {"id": id, "title": str(title) if title else short, "url": url if isinstance(url, str) else ""}


def _document_text(bundle: LoadedTexts, path: str, row: int) -> str:
    """Return the passages of a document, or of a long one those around a row, with blank lines between them."""
    rows = document_rows(bundle, path).tolist()
    texts, place = [bundle.passages.text(each) for each in rows], rows.index(row)
    found = [texts[place]]
    for reach in range(1, len(texts)):
        wider = texts[max(0, place - reach) : place + reach + 1]
        if sum(map(len, wider)) > LONGEST_TEXT:
            break
        found = wider
    return "\n\n".join(found)


def _define(name: str, title: str, description: str, inputs: Object, reply: type[BaseModel]) -> Object:
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": inputs,
        "outputSchema": reply.model_json_schema(),
        "annotations": READS,
    }


def _failed(message: str) -> Object:
    return {"content": [{"type": "text", "text": message}], "isError": True}
