"""A splitter with the tiny model's tokenizer, for which each word and each mark is a token, and what it divides."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.engine.bundle import TOKENIZER, Manifest
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.documents.passages import DocumentPassage, Splitter, divide
from semsearch.indexing.documents.reading import READERS, format_as_read
from tests.indexing.documents.files import ReadPassages


@pytest.fixture(scope="session")
def make_splitter(bundle: Path, manifest: Manifest) -> Callable[..., Splitter]:
    """Return what makes a splitter for passages of some tokens, for a model that reads 500."""

    def make(passage_tokens: int, overlap: int = 0, max_tokens: int = 500) -> Splitter:
        model = replace(manifest.model, max_tokens=max_tokens)
        return Splitter(read_tokenizer(bundle / TOKENIZER), model, passage_tokens, overlap)

    return make


@pytest.fixture
def passages(make_splitter: Callable[..., Splitter], tmp_path: Path) -> ReadPassages:
    """Return what writes a document with this suffix, and returns its passages."""

    def read(content: str, tokens: int = 40, suffix: str = ".md", anchors: str = "github") -> list[DocumentPassage]:
        path = tmp_path / f"page{suffix}"
        path.write_bytes(content.encode())
        return list(divide(READERS[format_as_read(path, {})](path, anchors), make_splitter(tokens)))

    return read
