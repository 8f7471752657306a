"""Bundles without a model, whose embeddings are made elsewhere: those of other tests, without what embeds texts."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from semsearch.engine.bundle import (
    KEYWORDS,
    MODEL,
    QUERY_TABLE,
    RERANK,
    RERANK_TOKENIZER,
    TOKENIZER,
    ModelInfo,
    read_manifest,
)
from semsearch.indexing.bundles import write_manifest

ELSEWHERE = "openai/text-embedding-3-small"  # what has embedded the texts


@pytest.fixture(scope="session")
def no_model(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of all tests, without its model. It is everyone's."""
    return without_model(Path(shutil.copytree(bundle, tmp_path_factory.mktemp("no-model") / "bundle")))


@pytest.fixture(scope="session")
def no_model_no_words(no_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without keywords."""
    folder = Path(shutil.copytree(no_model, tmp_path_factory.mktemp("no-words") / "bundle"))
    return without(folder, KEYWORDS, keywords=None)


def without_model(bundle: Path, name: str = ELSEWHERE) -> Path:
    """Remove the model from a bundle, and return its folder. `name` is the word for what embeds."""
    manifest = read_manifest(bundle)
    write_manifest(bundle, replace(manifest, model=ModelInfo.elsewhere(name, manifest.model.dim)))
    keywords = manifest.corpus.keywords
    if keywords is not None:
        keywords = replace(keywords, known_words=0.0)
    files = (MODEL, TOKENIZER, QUERY_TABLE, RERANK, RERANK_TOKENIZER)
    return without(bundle, *files, model_sha256="", tokenizer_sha256="", floor={}, keywords=keywords)


def without(bundle: Path, *files: str, **corpus: object) -> Path:
    """Remove files from a bundle, change these fields of its corpus, and return its folder."""
    manifest = read_manifest(bundle)
    for name in files:
        (bundle / name).unlink(missing_ok=True)
    kept = {name: info for name, info in manifest.files.items() if name not in files}
    rerank = None if RERANK in files else manifest.rerank
    queries = None if QUERY_TABLE in files else manifest.queries
    changed = replace(manifest.corpus, **corpus)  # type: ignore[arg-type]
    write_manifest(bundle, replace(manifest, corpus_or_none=changed, files=kept, rerank=rerank, queries=queries))
    return bundle
