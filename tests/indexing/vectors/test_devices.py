"""Which devices embed, with workers in this process that stand in for those with PyTorch; test_device.py has that."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from semsearch.engine.bundle import BY_CORES
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import quantize
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.vectors import device, embed
from semsearch.indexing.vectors.device import Device, DeviceWorkers, made_ahead, plan_padded_batches
from semsearch.indexing.vectors.shards import Shard

SOURCE: Any = "the float model"
TWO_GPUS = {"cuda:0": "H200", "cuda:1": "H100"}
PROCESSOR = {"cpu": "cpu"}


class Workers:
    """Makes workers that see these devices and embed with a model of this process."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.devices: dict[str, str] = PROCESSOR
        self.found: list[str] = []
        self.made = self.ended = 0
        self.batches: list[tuple[Any, ...]] = []

    def __call__(self, name: str) -> "Workers":
        assert name == "semsearch.conversion.device:work"
        self.made += 1
        return self

    def call(self, task: str, *arguments: Any) -> Any:
        if task == "find":
            (device,) = arguments
            self.found.append(device)
            return self.devices
        *stated, ids, lengths = arguments
        assert ids.dtype == np.int32
        self.batches.append((task, *stated, lengths.tolist()))
        return self.embedder.embed_batch([part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])])

    def end(self) -> None:
        self.ended += 1


@pytest.fixture
def workers(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers(embedder)
    monkeypatch.setattr(device, "Worker", found)
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 3)
    monkeypatch.setattr(device, "SHARD_TEXTS", 5)
    monkeypatch.setattr(device, "SHARD_CHARACTERS", 400)
    return found


def shards_of(of_device: Device, texts: list[str]) -> tuple[list[Shard], list[int]]:
    counts: list[int] = []
    return list(of_device.embed(iter(texts), counts.append)), counts


def made_by(shards: list[Shard], embedder: Embedder, texts: list[str]) -> bool:
    """Return whether the shards have all texts in their order, embedded by this model."""
    codes, scales = quantize(embedder.embed(embedder.tokenize(texts, role="document")))
    begins = np.cumsum([0, *(len(shard.codes) for shard in shards)])[:-1]
    return (
        [shard.begin for shard in shards] == begins.tolist()
        and np.array_equal(np.concatenate([shard.codes for shard in shards]), codes)
        and np.array_equal(np.concatenate([shard.scales for shard in shards]), scales)
    )


@pytest.mark.parametrize("name", ["cuda", "auto"])
def test_all_gpus_embed(name: str, workers: Workers, embedder: Embedder, corpus: Corpus) -> None:
    texts = [*corpus.texts[:6], "the goose " * 30, "the goose " * 31]
    workers.devices = TWO_GPUS
    of_device = Device(name, None, lambda: SOURCE, embedder)
    assert of_device.describe() == ""
    shards, counts = shards_of(of_device, texts)
    assert made_by(shards, embedder, texts)
    assert [len(shard.codes) for shard in shards] == [5, 2, 1]
    assert counts == [5, 2, 1]
    assert [shard.is_truncated.tolist() for shard in shards] == [[False] * 5, [False, True], [True]]
    assert {shard.embedded_by for shard in shards} == {"cuda float16"}
    assert of_device.describe() == "H200, H100, float16"
    assert (workers.found, workers.made, workers.ended) == ([name], 2, 2)
    assert [batch[:4] for batch in workers.batches] == [
        ("embed", SOURCE, "float16", "cuda:0"),
        ("embed", SOURCE, "float16", "cuda:1"),
        ("embed", SOURCE, "float16", "cuda:0"),
    ]


@pytest.mark.parametrize("name", ["cpu", "auto"])
def test_the_processor_embeds_in_float32(name: str, workers: Workers, embedder: Embedder, corpus: Corpus) -> None:
    texts = list(corpus.texts[:4])
    of_device = Device(name, "float32", lambda: SOURCE, embedder)
    shards, _ = shards_of(of_device, texts)
    assert made_by(shards, embedder, texts)
    assert [len(shard.codes) for shard in shards] == [3, 1]
    assert {shard.embedded_by for shard in shards} == {"cpu float32"}
    assert of_device.describe() == "cpu, float32"
    assert [batch[:4] for batch in workers.batches] == [("embed", SOURCE, "float32", "cpu")] * 2


def test_without_a_gpu_auto_is_the_own_model(workers: Workers, embedder: Embedder, corpus: Corpus) -> None:
    of_device = Device("auto", None, lambda: SOURCE, embedder)
    shards, counts = shards_of(of_device, list(corpus.texts[:4]))
    assert made_by(shards, embedder, list(corpus.texts[:4]))
    assert ({shard.embedded_by for shard in shards}, sum(counts)) == ({BY_CORES}, 4)
    assert of_device.describe() == "the processor, int8: PyTorch sees no GPU"
    assert (workers.made, workers.ended, workers.batches) == (1, 1, [])


def test_no_text_starts_no_process(workers: Workers, embedder: Embedder) -> None:
    of_device = Device("cuda", None, lambda: SOURCE, embedder)
    assert shards_of(of_device, []) == ([], [])
    assert (of_device.describe(), workers.made) == ("", 0)


def test_a_worker_is_free_again_after_an_error(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    of_devices = DeviceWorkers()
    of_devices.find("cpu")
    of_devices.start(SOURCE, "float32")
    ids, lengths = np.array([2, 3], np.int32), np.array([2])
    with monkeypatch.context() as patch:
        patch.setattr(workers.embedder, "embed_batch", lambda batch: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            of_devices.run(ids, lengths)
    assert of_devices.run(ids, lengths).shape == (1, 48)
    of_devices.close()
    assert workers.ended == 1


def test_a_batch_has_no_more_tokens_than_it_can_or_one_text() -> None:
    assert plan_padded_batches([2, 3, 3, 1], 6) == [[1, 2], [0, 3]]
    assert plan_padded_batches([3, 3], 5) == [[0], [1]]
    assert plan_padded_batches([], 5) == []


def test_the_next_item_is_made_while_one_is_used() -> None:
    made: list[int] = []

    def make() -> Iterator[int]:
        for item in range(3):
            made.append(item)
            yield item

    assert list(made_ahead(make())) == made == [0, 1, 2]
    assert list(made_ahead(iter(()))) == []
