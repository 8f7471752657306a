"""Files of a bundle from lists: passages.safetensors, columns.safetensors and keywords.safetensors."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from semsearch.engine.bundle import KeywordsInfo
from semsearch.engine.keyword.keywords import Keywords
from semsearch.engine.metadata.columns import Column, Columns
from semsearch.engine.tensors import AnyArray
from semsearch.indexing.columns import column_tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.corpus import PassageRow
from semsearch.indexing.corpus.passages import writing_passages
from semsearch.indexing.counting import KeywordText, count_terms
from semsearch.indexing.facts import read_facts
from semsearch.indexing.keywords import KeywordOptions, keyword_tensors


def tensors_of(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> dict[str, AnyArray]:
    """Return the tensors of columns of these types, of which some can be without a value in any row."""
    metadata = [json.dumps(row) for row in rows]
    facts = {name: np.zeros(len(rows), np.uint16) for name in types} | dict(read_facts(metadata))
    corpus = Corpus([""] * len(rows), [""] * len(rows), metadata, facts=facts)
    return column_tensors(corpus, types)


def column_of(values: Sequence[Any], kind: str) -> Column:
    """Return a column of these values, None for a row without one."""
    rows: list[Mapping[str, Any]] = [{} if value is None else {"c": value} for value in values]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "columns.safetensors"
        save_file(tensors_of(rows, {"c": kind}), path)
        return Columns(path, {"c": kind}, len(rows))["c"]


def write_passages(
    path: Path, texts: Sequence[str], ids: Sequence[str], metadata: Sequence[str], sources: Sequence[str] | None = None
) -> None:
    with writing_passages(path) as written:
        for row in zip(texts, ids, metadata, sources or repeat("", len(texts)), strict=True):
            written.append(PassageRow(*row))


def make_keywords(
    texts: Iterable[str],
    options: KeywordOptions,
    languages: Sequence[str | None] | None = None,
    names: Sequence[Sequence[str]] | None = None,
) -> tuple[dict[str, AnyArray], KeywordsInfo | None]:
    """Return the tensors of the keywords of texts, and their description. languages are those of a column."""
    if languages is not None:
        options = replace(options, language_column="language")
    columns = zip(texts, repeat(""), languages or repeat(options.stemming), names or repeat(()), strict=False)
    return keyword_tensors(count_terms(KeywordText(*row) for row in columns), options)


def write_keywords(
    path: Path,
    texts: Sequence[str],
    options: KeywordOptions,
    languages: Sequence[str | None] | None = None,
    names: Sequence[Sequence[str]] | None = None,
) -> Keywords:
    """Write the keywords of texts, of which at least one has a word, and open them."""
    tensors, info = make_keywords(texts, options, languages, names)
    assert info is not None
    save_file(tensors, path)
    return Keywords(path, info, len(texts))


def damage(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0b100
    path.write_bytes(content)
