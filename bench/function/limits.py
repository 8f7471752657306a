"""The costliest requests that each route accepts: their processor time, and for how long they block the event loop.

The app runs as in `python -m function`: one process, with one thread for the model and one for other long work, and all
on one core, which is what a function of 1,769 MB has. Seconds are those of the processor, so other programs do not
count. While a request is answered, a task of the event loop wakes up every millisecond. The longest time between two of
its turns is how long nothing else could be answered. Other programs can only lengthen it, so the shortest of the rounds
counts. Of the kinds of text for one route, the table has the one that takes longest.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unicodedata import normalize

import httpx

from bench.bundles import make_bundle
from bench.function.emulator import compute
from bench.report import make_provenance, report
from bench.texts import add_data_argument, read_texts
from function.engine.bundle import read_manifest
from function.engine.keyword.analyzer import split_terms
from function.engine.metadata.filters import MOST_VALUES
from function.settings import CHARACTERS_PER_TEXT, LAMBDA_TOKENS, Settings

WRITES: tuple[str, ...] = ("limits",)
MEASURES: tuple[str, ...] = ("function.server.uvicorn_server", "requirements.txt")
MEMORY = 1_769  # megabytes: one core; https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
LOTS = 1_000  # values of the column that filters compare
TURN = 0.001  # seconds that the watching task sleeps
# WordPiece splits words of up to 100 characters and looks for each piece from the longest one down. The vocabulary has
# only single letters of this word, so the tokenizer looks up 5,050 pieces (100 + 99 + ... + 1).
SLOWEST_WORD = "q" * 100 + " "


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its route, what decides how it is answered ("" if nothing does), what it contains, and its body."""

    method: str
    path: str
    mode: str = ""
    content: str = ""
    body: Any = None

    @property
    def name(self) -> str:
        """Return a name without slashes."""
        return ", ".join(part for part in (self.path.strip("/").replace("/", " ") or "root", self.mode) if part)


@dataclass(slots=True)
class Seen:
    """Measurements of one request, a value for each round: the processor's seconds, and seconds of a blocked loop."""

    seconds: list[float] = field(default_factory=list)
    blocked: list[float] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")
    parser.add_argument("--rounds", type=int, default=2, help="how often each request is sent, after once to warm up")


def run(options: argparse.Namespace) -> int:
    """Measure and report."""
    texts = read_texts(options.data, options.rows)
    bundle = make_bundle(options.work, texts, LOTS)
    settings = Settings(bundle_dir=bundle)
    embedded = Settings(max_tokens=LAMBDA_TOKENS)  # the tokens that a server accepts would take minutes
    requests = list(make_requests(texts.texts, read_manifest(bundle).model.max_tokens, settings, embedded))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    seen = measure(settings, requests, options.rounds)
    costliest: dict[str, tuple[Request, Seen]] = {}
    for request, one in zip(requests, seen, strict=True):
        if request.name not in costliest or _seconds(one) > _seconds(costliest[request.name][1]):
            costliest[request.name] = request, one
    dollars = {name: compute(_seconds(one) * 1e3, MEMORY) for name, (_, one) in costliest.items()}
    rows = [
        (
            f"`{request.method} {request.path}`",
            request.mode,
            request.content,
            f"{_seconds(one) * 1e3:,.1f}",
            f"{min(one.blocked) * 1e3:,.1f}",
            f"{dollars[name] * 1e6:,.2f}",
        )
        for name, (request, one) in costliest.items()
    ]
    columns = ("route", "mode", "content", "milliseconds of the processor", "event loop blocked, ms", "$ per million")
    details = {
        "rows": len(texts.texts),
        "memory": MEMORY,
        "seconds": {name: one.seconds for name, (_, one) in costliest.items()},
        "dollars_per_million": {name: value * 1e6 for name, value in dollars.items()},
        "blocked_milliseconds": {name: min(one.blocked) * 1e3 for name, (_, one) in costliest.items()},
        "all": [
            {"name": request.name, "content": request.content, "seconds": one.seconds, "blocked": one.blocked}
            for request, one in zip(requests, seen, strict=True)
        ],
    }
    report("limits", columns, rows, details, make_provenance(texts.description()))
    return 0


def _seconds(seen: Seen) -> float:
    return statistics.median(seen.seconds)


def make_requests(corpus: Sequence[str], max_tokens: int, settings: Settings, embedded: Settings) -> Iterator[Request]:
    """Yield the requests, for a model that reads max_tokens tokens of a text.

    `embedded` has the limits of requests for embeddings, and `settings` those of all others. The filters are over a
    column `lot` of numbers below LOTS.
    """
    yield from (Request("GET", path) for path in ("/", "/health", "/info", "/openapi.json", "/metrics", "/v1/models"))
    for content, text in costly_texts(corpus).items():
        for mode in ("semantic", "keyword", "hybrid"):
            arguments = {"text": text, "mode": mode, "num_results": 100}
            yield Request("POST", "/similar", mode, content, arguments)
        params = {"name": "search", "arguments": {"query": text}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        yield Request("POST", "/mcp", "search", content, message)
        marked = {"text": text, "mode": "hybrid", "num_results": 100, "highlights": True}
        yield Request("POST", "/similar", "highlights", content, marked)
        yield Request("POST", "/predict", "one text", content, {"text": text})
        yield Request("POST", "/tokenize", "one text", content, {"inputs": text})
    others: dict[str, dict[str, Any]] = {
        "exact": {"exact": True},
        "facets": {"facets": ["lot"]},
        "offset": {"offset": 10_000},
    }
    for name, fields in (others | {"sort": {"sort": {"lot": "desc"}, "mode": "keyword"}}).items():
        yield Request("POST", "/similar", name, "", {"text": "word", "num_results": 100} | fields)
    numbers = list(range(min(LOTS, MOST_VALUES - 3)))  # the filter, the operator and the list count too
    conditions: list[Any] = [{"lot": {"$ne": number}} for number in range((MOST_VALUES - 2) // 3)]
    for content, condition in (("one list", {"lot": {"$in": numbers}}), ("many comparisons", {"$or": conditions})):
        yield Request("POST", "/similar", "filter", content, {"text": "word", "filter": condition})
    full = "word " * max_tokens  # truncated to max_tokens, because special tokens are added
    most = embedded.max_tokens // max_tokens
    for content, texts in (
        ("all characters", [repeat(SLOWEST_WORD, embedded.max_characters // most)] * most),
        ("as many texts as allowed", ["word"] * embedded.max_texts),
    ):
        yield Request("POST", "/predict", "texts", content, {"text": texts})
        yield Request("POST", "/embed", "texts", content, {"inputs": texts})
        yield Request("POST", "/", "texts", content, {"inputs": texts})
        yield Request("POST", "/v1/embeddings", "texts", content, {"input": texts})
        comparison = {"source_sentence": texts[0], "sentences": texts[1:]}
        yield Request("POST", "/similarity", "texts", content, {"inputs": comparison})
    yield Request("POST", "/predict", "texts", "all tokens", {"text": [full] * most})
    ids = [[1] * (max_tokens - 2)] * most
    yield Request("POST", "/v1/embeddings", "token ids", "all tokens", {"input": ids, "encoding_format": "base64"})
    words = [repeat(". ", CHARACTERS_PER_TEXT)] * (settings.max_tokens // (CHARACTERS_PER_TEXT // 2))
    yield Request("POST", "/tokenize", "texts", "all tokens", {"inputs": words, "add_special_tokens": False})


def costly_texts(corpus: Sequence[str]) -> dict[str, str]:
    """Return texts of as many characters as one may have, each costly for a step of its own, by what they contain."""
    counts = Counter(term for text in corpus for term in split_terms(text) if term.isalpha())
    frequent = [term for term, _ in counts.most_common()]
    texts = {
        "one word": "a",
        "combining marks": "\u0301\u0316",  # their normal form has the second one first
        "U+FDFA": "\ufdfa",  # NFKC makes eighteen characters of it
        "Chinese characters": "東",
        "words of 100 letters": SLOWEST_WORD,
        "hyphens": "a-",
        "punctuation": ".",
        "frequent words": " ".join(frequent) + " ",
        "quoted words": " ".join(f'"{term}"' for term in frequent) + " ",
        "words of no text": " ".join(f"q{number}" for number in range(CHARACTERS_PER_TEXT // 5)) + " ",
    }
    # the limit holds for the text and for its normal form
    lengths = {content: max(1, len(normalize("NFKC", text)) // len(text)) for content, text in texts.items()}
    return {content: repeat(text, CHARACTERS_PER_TEXT // lengths[content]) for content, text in texts.items()}


def repeat(text: str, length: int) -> str:
    """Return this many characters of a text that is repeated."""
    return (text * (length // len(text) + 1))[:length]


def measure(settings: Settings, requests: Sequence[Request], rounds: int) -> list[Seen]:
    """Return what was seen of each request. Raises SystemExit if a reply's status is not 200."""
    from function.server.cli import DEFAULT_QUEUE  # sets the threads of libraries
    from function.server.uvicorn_server import Batching, make_app

    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):  # log lines are written, as to a log
        app = make_app(settings, Batching(1, DEFAULT_QUEUE))
        with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
            return runner.run(_measure(httpx.ASGITransport(app), requests, rounds))


async def _measure(transport: httpx.ASGITransport, requests: Sequence[Request], rounds: int) -> list[Seen]:
    seen = [Seen() for _ in requests]
    gaps: list[float] = []

    async def watch() -> None:
        while True:
            begin = time.perf_counter()
            await asyncio.sleep(TURN)
            gaps.append(time.perf_counter() - begin - TURN)

    watching = asyncio.create_task(watch())
    async with httpx.AsyncClient(transport=transport, base_url="http://bench", timeout=None) as client:
        for number in range(rounds + 1):  # the first round warms up
            for request, one in zip(requests, seen, strict=True):
                content = None if request.body is None else json.dumps(request.body).encode()
                await asyncio.sleep(2 * TURN)
                gaps.clear()
                begin = time.process_time()
                reply = await client.request(request.method, request.path, content=content, headers=JSON)
                seconds = time.process_time() - begin
                await asyncio.sleep(2 * TURN)
                if reply.status_code != 200:
                    found = f"{reply.status_code}: {reply.text[:200]}"
                    raise SystemExit(f"{request.name}, {request.content}: the app answered {found}")
                if number:
                    one.seconds.append(seconds)
                    one.blocked.append(max(gaps))
    watching.cancel()
    return seen


JSON = {"content-type": "application/json"}
