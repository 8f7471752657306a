"""The queries that `scale` and `nearest` search for, and how much of exact search's results a search finds for them.

Recall depends on the queries. A passage is the easiest query for its own corpus, and a text of another field the
hardest; a few words of a passage are most like what people type.
"""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from export.index.recall import Recall, search_exactly
from function.engine.bundle import INDEX, PASSAGES, open_bundle, read_manifest
from function.engine.embedder import Embedder
from function.engine.passages import Passages
from function.engine.quantization import Embeddings
from function.engine.semantic.index import Index

WHOLE, WORDS, HALVES = "passages", "four words of a passage", "half of a passage's words, shuffled"
CLAIMS = "claims of SciFact"  # texts of another field, none of which is in a corpus
SEED = 7


def make_queries(bundle: Path, count: int, claims: Sequence[str]) -> dict[str, list[str]]:
    """Return queries by their kind: `count` made from passages of a bundle, evenly spread, and all claims."""
    passages, chance = Passages(bundle / PASSAGES), random.Random(SEED)
    texts = [passages.text(row) for row in np.linspace(0, len(passages) - 1, count).astype(int).tolist()]
    found: dict[str, list[str]] = {WHOLE: texts, WORDS: [], HALVES: [], CLAIMS: list(claims)}
    for words in map(str.split, texts):
        first = chance.randint(0, max(0, len(words) - 4))
        found[WORDS].append(" ".join(words[first : first + 4]))
        found[HALVES].append(" ".join(chance.sample(words, -(-len(words) // 2))))
    return found


def write_queries(path: Path, bundle: Path, queries: Mapping[str, Sequence[str]]) -> Path:
    """Write the embeddings of queries by kind, (n, dim) float32, as .npz, and the texts beside them as JSON.

    Return the path of the embeddings.
    """
    embedder = Embedder.open(bundle, read_manifest(bundle).model)
    embeddings = {kind: embedder.embed(embedder.tokenize(texts, role="query")) for kind, texts in queries.items()}
    np.savez(path, **embeddings)  # type: ignore[arg-type] # its stub takes the names for those of its options
    path.with_suffix(".json").write_text(json.dumps(queries), encoding="utf-8")
    return path


def measure_recall(bundle: Path, queries: Mapping[str, Embeddings]) -> dict[str, Recall]:
    """Return the recall of a bundle's search against exact search by the kind of queries, (n, dim) float32 each."""
    described = open_bundle(bundle).index
    assert described is not None  # open_bundle checked it
    index = Index.open(bundle / INDEX, described.stages)
    rows = index.codes_of(np.arange(described.rows))
    return {kind: search_exactly(each, *rows).recall_of(index) for kind, each in queries.items()}
