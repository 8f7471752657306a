"""What runs a search: in the calling thread, with texts that were embedded together or one by one."""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import Manifest
from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.search.executor import BatchedExecutor, Executor, finish


def test_texts_of_queries_are_embedded_once_and_others_when_they_are_needed(
    bundle: Path, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Embedder.open(bundle, replace(manifest.model, prompts={"query": "angry "}))
    assert embedder.is_open
    known, other = embedder.tokenize(["ferry", "goose"], "query"), embedder.tokenize(["ferry", "spoon"], "")
    expected = embedder.embed(known), embedder.embed(other)
    assert len(BatchedExecutor(embedder, [], map)._tokens) == 0
    executor, runs = BatchedExecutor(embedder, ["goose", "ferry", "goose"], map), list[int]()
    embed = embedder.embed

    def counted(tokens: list[TokenIds]) -> Embeddings:
        runs.append(len(tokens))
        return embed(tokens)

    monkeypatch.setattr(embedder, "embed", counted)
    assert finish(executor.tokenize(["ferry", "goose"], "query")) == known
    np.testing.assert_array_equal(finish(executor.embed(known)), expected[0])
    assert runs == []
    assert finish(executor.tokenize(["ferry", "spoon"])) == other
    np.testing.assert_array_equal(finish(executor.embed(other)), expected[1])
    assert runs == [2]


def test_the_time_of_the_last_embedding_is_noted(bundle: Path, manifest: Manifest, embedder: Embedder) -> None:
    executor = Executor(Embedder.open(bundle, manifest.model, is_lazy=True))
    assert executor.embedded_at == np.inf
    finish(executor.embed(embedder.tokenize(["goose"])))
    assert 0 < executor.embedded_at <= Executor(embedder).embedded_at < np.inf


def test_work_that_waits_needs_an_event_loop() -> None:
    assert finish(Executor.run(Executor, lambda: 3)) == 3  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="does not wait"):
        finish(asyncio.sleep(0))
