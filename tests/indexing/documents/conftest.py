"""A splitter with the tiny model's tokenizer, for which each word and each mark is a token."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.engine.bundle import TOKENIZER, Manifest
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.documents import Splitter


@pytest.fixture(scope="session")
def make_splitter(bundle: Path, manifest: Manifest) -> Callable[..., Splitter]:
    """Return what makes a splitter for passages of some tokens, for a model that reads 500."""

    def make(passage_tokens: int, overlap: int = 0, max_tokens: int = 500) -> Splitter:
        model = replace(manifest.model, max_tokens=max_tokens)
        return Splitter(read_tokenizer(bundle / TOKENIZER), model, passage_tokens, overlap)

    return make
