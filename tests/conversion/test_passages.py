"""The float model on a device gives the embeddings of sentence-transformers, in batches with padding."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from semsearch.conversion.passages import DeviceModel, find_devices
from semsearch.engine.embedder import TokenIds
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tensors import AnyArray
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import Source, read_source, write_tokenizer
from semsearch.indexing.vectors.device import Ids, Lengths
from tests.conversion.test_sentence_transformers import LEAST_COSINE, expected, least_cosine, router, steps
from tests.data.make_sentence_transformers import DIMENSIONS, TEXTS
from tests.export_fixtures import TINY_BERT, embed_with_transformers


def embed(source: Source, tokens: Sequence[Sequence[int]]) -> Embeddings:
    """Return the embeddings of texts in one batch, in the texts' order."""
    order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row]))
    found = np.empty((len(tokens), source.dim), np.float32)
    found[order] = embed_sorted(DeviceModel(source, "float32", "cpu"), [tokens[row] for row in order])
    return found


def embed_sorted(model: DeviceModel, tokens: Sequence[Sequence[int]]) -> Embeddings:
    """Return the embeddings of texts, longest first."""
    return np.asarray(model.embed(np.concatenate(tokens).astype(np.int32), np.array([*map(len, tokens)])), np.float32)


def tokenize(source: Source, folder: Path) -> list[list[int]]:
    write_tokenizer(source, folder / "tokenizer.txt")
    tokenizer = read_tokenizer(folder / "tokenizer.txt")
    tokenizer.enable_truncation(source.max_tokens)
    prompt = source.prompts.get("document", "")
    return [encoding.ids for encoding in tokenizer.encode_batch([prompt + text for text in TEXTS])]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_a_padded_batch_embeds_like_texts_alone(tiny_source: Source, tiny_tokens: list[TokenIds], pooling: str) -> None:
    tokens = [text.ids for text in tiny_tokens[::9]]
    assert len(set(map(len, tokens))) > 5
    found = embed(replace(tiny_source, pooling=pooling), tokens)
    np.testing.assert_allclose(found, embed_with_transformers(TINY_BERT, tokens, pooling, batch=1), atol=1e-5)


@pytest.mark.parametrize(("dimensions", "kind"), [(None, "all"), (DIMENSIONS, "first")])
def test_modules_after_pooling_and_dimensions(steps: Path, tmp_path: Path, dimensions: int | None, kind: str) -> None:
    source = read_source(steps, "steps", dimensions=dimensions)
    found = embed(source, tokenize(source, tmp_path))
    assert least_cosine(found, expected("steps", kind)) >= LEAST_COSINE


def test_passages_are_embedded_by_the_route_for_documents(router: Path, tmp_path: Path) -> None:
    source = read_source(router, "router").documents
    assert source is not None
    found = embed(source, tokenize(source, tmp_path))
    assert least_cosine(found, expected("router", "document")) >= LEAST_COSINE


class SmallDevice(DeviceModel):
    """A device whose memory is full at this number of tokens."""

    most = 200

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.batches: list[int] = []  # numbers of texts

    def _run(self, ids: Ids, lengths: Lengths) -> AnyArray:
        if len(lengths) * lengths[0] > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.batches.append(len(lengths))
        return super()._run(ids, lengths)


def test_when_memory_runs_out_a_batch_is_halved_and_stays_small(tiny_source: Source) -> None:
    small = SmallDevice(tiny_source, "float32", "cpu")
    texts = [range(2, 22)] * 30
    found = embed_sorted(small, texts)
    np.testing.assert_allclose(found, embed_sorted(DeviceModel(tiny_source, "float32", "cpu"), texts), atol=1e-6)
    assert small.batches == [7, 7, 7, 7, 2]  # 600 tokens failed, then 300; 150 are 7 texts
    small.batches.clear()
    embed_sorted(small, texts)
    assert small.batches == [7, 7, 7, 7, 2]
    small.most = 19
    with pytest.raises(ModelError, match="memory runs out with one text of 20 tokens; expected room for it"):
        embed_sorted(small, texts)


def test_values_that_are_not_finite_are_refused(tiny_source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceModel, "_run", lambda self, ids, lengths: np.full((len(lengths), 2), np.nan))
    with pytest.raises(ModelError, match="not finite; expected numbers; choose --dtype float32"):
        embed_sorted(DeviceModel(tiny_source, "float32", "cpu"), [[2, 3]])


def test_cuda_means_all_gpus_and_auto_prefers_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_devices("cpu") == {"cpu": "cpu"}
    with pytest.raises(ModelError, match=r"--device cuda: PyTorch .* sees .*cpu; expected one of these"):
        find_devices("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: f"card {number}")
    assert find_devices("cuda") == find_devices("auto") == {"cuda:0": "card 0", "cuda:1": "card 1"}
    assert find_devices("cuda:1") == {"cuda:1": "card 1"}
    with pytest.raises(ModelError, match="sees cuda:0, cuda:1, "):
        find_devices("cuda:2")


__all__ = ["router", "steps"]
