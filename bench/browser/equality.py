"""How many results of the site are those of the function, over requests in all modes, half of them with filters."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from function.engine.bundle import INDEX, PASSAGES, open_bundle
from function.engine.embedder import Embedder
from function.engine.hybrid import fuse
from function.engine.loading import LoadedBundle
from function.engine.metadata.filters import allowed_rows
from function.engine.passages import Passages
from function.engine.semantic.index import Index

MODES = ("semantic", "keyword", "hybrid")
TOP_K = 10
SEED = 5
LONGEST = 8  # words of a query
Answer = Callable[[Mapping[str, Any]], list[str]]


def make_requests(bundle: LoadedBundle, count: int) -> list[dict[str, Any]]:
    """Return `count` requests in each mode: some words of a text, every second one with a filter that a text passes."""
    generator, passages = random.Random(SEED), bundle.passages
    assert bundle.manifest.index is not None
    kinds = bundle.manifest.index.columns
    queries = []
    for number in range(count):
        words = passages.text(generator.randrange(len(passages))).split() or ["text"]
        begin = generator.randrange(len(words))
        request: dict[str, Any] = {"text": " ".join(words[begin : begin + generator.randint(1, LONGEST)])}
        if number % 2:
            metadata = passages.metadata(generator.randrange(len(passages)))
            request["filter"] = next(_filters(metadata, kinds, generator), {})
        queries.append(request)
    return [request | {"mode": mode, "num_results": TOP_K} for mode in MODES for request in queries]


def _filters(metadata: dict[str, Any], kinds: Mapping[str, str], generator: random.Random) -> Iterator[dict[str, Any]]:
    """Yield filters that a text with these metadata passes, in random order."""
    for name in generator.sample(sorted(kinds), len(kinds)):
        value = metadata.get(name)
        if value in (None, "", []):
            continue
        match kinds[name]:
            case "string":
                yield {name: generator.choice([value, {"$startsWith": value[:1]}, {"$in": [value, "?"]}])}
            case "list":
                yield {name: value[0]}
            case kind:
                value = float(value) if kind == "number" else value  # a table has its numbers as text
                yield {name: generator.choice([value, {"$lte": value}, {"$gte": value}])}


def open_function(folder: Path, embedder: Embedder | None = None) -> LoadedBundle:
    """Open a bundle as the function does, with its own embedder or another one."""
    manifest = open_bundle(folder)
    assert manifest.index is not None
    index = Index.open(folder / INDEX, manifest.index.stages)
    embedder = embedder or Embedder.open(folder, manifest.model)
    return LoadedBundle(manifest, embedder, Passages(folder / PASSAGES), folder, index)


def answering(bundle: LoadedBundle) -> Answer:
    """Return what answers a request with the ids of the engine's results."""

    def answer(request: Mapping[str, Any]) -> list[str]:
        text, mode = request["text"], request["mode"]
        allowed = allowed_rows(request["filter"], bundle.columns) if "filter" in request else None
        if mode != "semantic":
            assert bundle.keywords is not None
            matches = bundle.keywords.match(text, allowed)
            if mode == "keyword":
                return [bundle.passages.id(hit.row) for hit in matches.best(TOP_K)]
        (query,) = bundle.embedder.embed(bundle.embedder.tokenize([text], role="query"))
        if mode == "semantic":
            hits = bundle.index.search(query, TOP_K, allowed)
        else:
            assert bundle.keywords is not None
            hits = fuse(bundle.index, query, matches, bundle.keywords.info, TOP_K)
        return [bundle.passages.id(hit.row) for hit in hits]

    return answer


def compare(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return which share of the lists is equal, order included, and which share of the expected ids was found."""
    pairs = list(zip(found, expected, strict=True))
    same = sum(len(set(one) & set(other)) for one, other in pairs)
    return {
        "lists": float(np.mean([list(one) == list(other) for one, other in pairs])),
        "results": same / max(1, sum(len(other) for _, other in pairs)),
    }
