"""The largest allowed value of each field, sent through the real handler: none may cost much more than a long text.

A caller can send each value again and again. So the processor time of a value is compared with that of the longest text
of a search: for a value of LONG bytes or more the time for each byte, for others the whole time. The time of a request
without the value is not counted. Fields that are true or false, or one of a few words, are left out.
"""

import os
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bench.emulator import CONTEXT, sample_event
from bench.warm import Handler

if TYPE_CHECKING:
    from semsearch.engine.loading import LoadedBundle

MOST_TIMES_TEXT = 10  # largest allowed time for a byte, compared with that of a text
LONG = 1_000  # bytes from which a value is measured by its bytes
TEXTS, TOKENS = 16, 1_024  # MAX_TEXTS and MAX_TOKENS of a stack that is open to all (template.yaml)
ROUNDS = 2  # requests of each kind, of which the fastest counts
Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Values:
    """The largest values of the fields of a route or of a tool of MCP."""

    path: str
    smallest: Body  # the fields of the smallest request
    largest: dict[str, Body]  # the name of a field, and the fields that differ for it; None leaves one out
    tool: str = ""

    def body(self, field: str = "") -> Body:
        """Return the body with the largest value of a field, or the smallest one."""
        fields = self.smallest | self.largest.get(field, {})
        fields = {name: value for name, value in fields.items() if value is not None}
        if self.tool:
            params = {"name": self.tool, "arguments": fields}
            return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return fields


@dataclass(frozen=True, slots=True)
class Cost:
    """What a value cost: its bytes, and the processor time of its request beyond that of the smallest one."""

    route: str
    field: str
    bytes: int
    milliseconds: float

    def beside(self, text: "Cost") -> float:
        """Return how many times as much it cost as a text: for each byte, or the whole of a short value."""
        times = self.milliseconds / text.milliseconds
        if self.bytes < LONG:
            return times
        return times * text.bytes / self.bytes


def limits(*, bundle: Path = Path("bundle")) -> int:
    """What the largest allowed value of each field costs. Returns 1 if one costs too much.

    Args:
        bundle: what `make demo` made, or another one.
    """
    from semsearch.engine.loading import load_bundle

    os.environ |= {"BUNDLE_DIR": str(bundle), "MAX_TEXTS": str(TEXTS), "MAX_TOKENS": str(TOKENS)}
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # the log
        from function.handler import handler

        costs = [cost for values in largest_values(load_bundle(bundle)) for cost in measure(handler, values)]
    text = next(cost for cost in costs if cost.field == "text")
    print(f"{'route':20} {'field':20} {'bytes':>7} {'ms':>7} {'µs a byte':>9}  times a text")
    has_failed = False
    for cost in costs:
        times, most_times = cost.beside(text), MOST_TIMES_TEXT if cost.bytes >= LONG else 1
        has_failed |= times > most_times
        mark = f"  above {most_times}" if times > most_times else ""
        each = cost.milliseconds * 1e3 / cost.bytes
        print(f"{cost.route:20} {cost.field:20} {cost.bytes:7} {cost.milliseconds:7.1f} {each:9.2f}  {times:.2f}{mark}")
    return int(has_failed)


def measure(handler: Handler, values: Values) -> Iterator[Cost]:
    """Yield the cost of each value of a route; exit if a request with it is refused as too large or wrong."""
    least, size = _processor_time(handler, values, "")
    for field in values.largest:
        seconds, found = _processor_time(handler, values, field)
        name = f"MCP {values.tool}" if values.tool else values.path
        yield Cost(name[:20], field, max(1, found - size), max(0.0, seconds - least) * 1e3)


def _processor_time(handler: Handler, values: Values, field: str) -> tuple[float, int]:
    """Return the seconds of the fastest of some requests, and the bytes of what is sent."""
    body: Body | None = values.body(field)
    path = values.path
    if "{}" in path:  # a GET, whose only field is in the path
        path, body = path.format(quote(str(values.body(field)["path"]))), None
    event, taken = sample_event(path, body), []
    for _ in range(ROUNDS):
        begin = time.process_time()
        reply = handler(event, CONTEXT)
        taken.append(time.process_time() - begin)
    is_refused = reply["statusCode"] not in (200, 404) or '"isError":true' in reply["body"]
    if is_refused and "expected the id of" not in reply["body"]:
        raise SystemExit(f"{values.path}, {field or 'the smallest request'}: {reply['body'][:200]}")
    return min(taken), len(path) + len(event["body"] or "")


def largest_values(bundle: "LoadedBundle") -> Iterator[Values]:
    """Yield the largest values of each route and tool over a bundle, searches first."""
    from semsearch.app.mcp.fetching import MOST_IDS
    from semsearch.app.mcp.names import tool_name
    from semsearch.app.middleware import MOST_BODY_VALUES
    from semsearch.app.settings import CHARACTERS_PER_TOKEN
    from semsearch.engine.hits import MOST_HITS
    from semsearch.engine.metadata.filters import MOST_FILTER_VALUES
    from semsearch.search.query import (
        CHARACTERS_PER_TEXT,
        MOST_AROUND,
        MOST_CANDIDATES,
        MOST_COLUMNS,
        MOST_IN_GROUP,
        MOST_OFFSET,
    )
    from semsearch.search.request import CHARACTERS_PER_NAME, LONGEST_WITHOUT, MOST_WITHOUT

    corpus, most = bundle.manifest.corpus, TOKENS * CHARACTERS_PER_TOKEN
    words = " ".join(bundle.passages.text(row) for row in range(len(bundle.passages))).replace('"', "")
    words = (words + " ") * (1 + CHARACTERS_PER_TEXT // len(words))
    text, name, id = words[:most], "x" * CHARACTERS_PER_NAME, bundle.passages.id(0)
    # As many characters and tokens as are allowed. A text has two tokens besides its words.
    texts = [f"{'goose':{CHARACTERS_PER_TOKEN}}" * (TOKENS // TEXTS - 2)] * TEXTS
    without = [words[place:][: LONGEST_WITHOUT - 9] for place in range(0, most - LONGEST_WITHOUT, LONGEST_WITHOUT)]
    some = [f"{id}{number}" for number in range(MOST_FILTER_VALUES)]
    strings = [column for column, kind in corpus.columns.items() if kind == "string"]
    columns = [column for column, kind in corpus.columns.items() if kind not in ("list", "numbers")][:MOST_COLUMNS]
    many: Body = {"num_results": MOST_HITS, "highlights": True}
    search: dict[str, Body] = {
        "text": {"text": text},
        "text by its words": {"text": text, "mode": "keyword"},
        "id": {"id": "x" * most, "text": None},
        "without": {"without": without[:MOST_WITHOUT]},
        "filter, ranges": {"filter": {"$or": [{"id": {"$gt": each}} for each in some[: MOST_FILTER_VALUES // 3 - 1]]}},
        "filter, values": {"filter": {"id": {"$in": some[:-3]}}},
        "filter, a string": {"filter": {"id": {"$startsWith": (id + words)[:CHARACTERS_PER_TEXT]}}},
        "boost": {"boost": {column: {"equals": text, "weight": 1} for column in strings[:5]}},
        "facets": {"facets": (columns * MOST_COLUMNS)[:MOST_COLUMNS]},
        "sort": many | {"sort": dict.fromkeys(columns, "desc")},
        "include": many | {"include": ["text", "metadata", "source"]},
        "group_by": many | {"group_by": strings[0], "group_size": MOST_IN_GROUP},
        "offset": many | {"offset": MOST_OFFSET},
        "num_results": many,
        "min_score": {"min_score": 0.1},
        "vector": {"text": None, "vector": [-0.12345678901234567] * bundle.manifest.model.dim},
        "fusion_weight": {"fusion_weight": 0.1},
    }
    if bundle.manifest.rerank is not None:
        search["rerank"] = {"rerank": {"candidates": MOST_CANDIDATES}}
    ids = [bundle.passages.id(row) for row in range(min(MOST_IDS, len(bundle.passages)))]
    fetched: dict[str, Body] = {
        "id": {"id": "x" * CHARACTERS_PER_TEXT},
        "ids": {"id": None, "ids": ids},
        "max_characters": {"max_characters": 10**6},
    }
    if corpus.columns.get("path") == "string":
        fetched |= {"before": {"before": MOST_AROUND}, "after": {"after": MOST_AROUND}}
        yield Values("/mcp", {}, {"offset": {"offset": 10**9}}, tool="list_documents")
    message: Body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    yield Values("/similar", {"text": "goose"}, search)
    own = {name: search[name] for name in ("text", "id", "without", "filter, ranges")}
    yield Values("/mcp", {"text": "goose"}, own, tool=tool_name(corpus))
    yield Values("/mcp", {"query": "goose"}, {"query": {"query": text}}, tool="search")
    yield Values("/mcp", {"id": id}, fetched, tool="fetch")
    yield Values("/mcp", message, {"id": {"id": name}, "params": {"params": {"x": [0] * (MOST_BODY_VALUES - 9)}}})
    yield Values("/passages/{}", {"path": id}, {"id": {"path": "x" * CHARACTERS_PER_TEXT}})
    yield Values("/documents/{}", {"path": id}, {"path": {"path": "x" * CHARACTERS_PER_TEXT}})
    yield Values("/v1/models/{}", {"path": id}, {"name": {"path": "x" * CHARACTERS_PER_TEXT}})
    yield Values("/predict", {"text": "goose"}, {"text": {"text": texts}})
    openai: dict[str, Body] = {"input": {"input": texts}, "model": {"model": name}, "dimensions": {"dimensions": 1}}
    yield Values("/v1/embeddings", {"input": "goose"}, openai)
    embed: dict[str, Body] = {"inputs": {"inputs": texts}, "dimensions": {"dimensions": 1}}
    yield Values("/embed", {"inputs": "goose"}, embed)
    pair = {"source_sentence": "goose", "sentences": ["ferry"]}
    compared: dict[str, Body] = {"inputs": {"inputs": {"source_sentence": texts[0], "sentences": texts[1:]}}}
    yield Values("/similarity", {"inputs": pair}, compared)
    yield Values("/tokenize", {"inputs": "goose"}, {"inputs": {"inputs": texts}})
    if bundle.manifest.rerank is not None:
        half = CHARACTERS_PER_TOKEN * (TOKENS // TEXTS // 2 - 2)  # the query counts with each text
        pairs, query = [texts[0][:half]] * TEXTS, texts[0][:half]
        asked: dict[str, Body] = {"texts": {"texts": pairs}, "query": {"query": query}}
        yield Values("/rerank", {"query": "goose", "texts": ["goose"]}, asked)
        documents = [{"text": each} for each in pairs]
        ranked: dict[str, Body] = {"documents": {"documents": documents}, "query": {"query": query}}
        ranked |= {"model": {"model": name}, "top_n": {"top_n": 1}, "max_tokens_per_doc": {"max_tokens_per_doc": 1}}
        yield Values("/v2/rerank", {"query": "goose", "documents": ["goose"]}, ranked)
