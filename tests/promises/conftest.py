"""The small indexes of the promises: plain examples of what docs/api.md says, a file for each family of fields.

Each test has the marker `promise`, with the name of the request's field and, behind a dot, the operator.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semsearch import Hit, Search
from semsearch.aws.s3.fetch import without_rows
from semsearch.client.folder import LocalBundle
from semsearch.engine.loading import load
from semsearch.indexing.columns import choose_types
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.facts import read_facts
from tests.world import WHAT, WHO, write_bundle

Row = Mapping[str, Any]
SearchOf = Callable[[Sequence[Row]], Search]

# a and h are equal but for their ids. f has no metadata, e has a value of each column that is zero, false or empty.
SHELF: list[dict[str, Any]] = [
    {"id": "a", "copies": 3, "price": 2.5, "genre": "novel", "lent": True, "printed": "2024-02-29", "tags": ["sea"]},
    {"id": "b", "copies": 1, "price": 0.5, "genre": "novel", "lent": False, "printed": "1969-12-31", "tags": ["war"]},
    {"id": "c", "copies": 2, "price": 1.5, "genre": "poem", "lent": True, "tags": ["sea", "war"]},
    {"id": "d", "copies": 2, "price": -0.5, "genre": "nov", "printed": "2024-02-29T12:00:00Z", "tags": ["seaside"]},
    {"id": "e", "copies": 0, "price": 0.0, "genre": "", "lent": False, "printed": "1970-01-01", "tags": []},
    {"id": "f"},
    {"id": "g", "copies": 3, "genre": "novel", "lent": True, "printed": "2024-03-01", "tags": ["sea", "sea"]},
]
SHELF = [{"text": f"{WHO[row].capitalize()} {WHAT[row]}."} | metadata for row, metadata in enumerate(SHELF)]
SHELF.append(SHELF[0] | {"id": "h"})


def corpus_of(rows: Sequence[Row]) -> Corpus:
    """Return rows as a corpus. A row without an id has its number, one without a text has a text of its own."""
    texts = [row.get("text", f"{WHO[number % len(WHO)]} {number}") for number, row in enumerate(rows)]
    ids = [row.get("id", str(number)) for number, row in enumerate(rows)]
    metadata = [json.dumps({name: row[name] for name in row if name not in ("id", "text")}) for row in rows]
    corpus = Corpus(texts, ids, metadata, facts=read_facts(metadata))
    return replace(corpus, columns=choose_types(corpus, {}, Path("rows")))


@pytest.fixture(scope="session")
def search_of(tmp_path_factory: pytest.TempPathFactory) -> SearchOf:
    """Return what makes a small index of rows, each with an id, a text and metadata."""

    def make(rows: Sequence[Row]) -> Search:
        return Search(write_bundle(tmp_path_factory.mktemp("promises") / "bundle", corpus_of(rows)))

    return make


@pytest.fixture(scope="session")
def shelf(search_of: SearchOf) -> Search:
    """The index of SHELF, which has each type of column, ties and rows without a value."""
    return search_of(SHELF)


@pytest.fixture(scope="session")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> Search:
    """The index of SHELF whose texts were all removed: `index` makes none without a text."""
    folder = write_bundle(tmp_path_factory.mktemp("promises") / "bundle", corpus_of(SHELF))
    search = Search(folder)
    search._source = LocalBundle(without_rows(load(folder), range(len(SHELF))), version="")
    return search


def ids_of(hits: Iterable[Hit]) -> list[str]:
    """Return the ids of hits in their order."""
    return [hit.id for hit in hits]
