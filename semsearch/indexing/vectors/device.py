"""Embed passages with the float model on devices that PyTorch knows: GPUs, or the processor in float32.

Each device has a worker, a process of its own that runs semsearch/conversion/device.py and imports PyTorch. Token ids
go to it, and unit embeddings come back. While the devices embed a shard, this process tokenizes the next one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from semsearch.engine.embedder import Embedder, TokenIds
from semsearch.engine.quantization import Codes, Scales, quantize
from semsearch.engine.tensors import AnyArray, Array
from semsearch.indexing.models.source import Source
from semsearch.indexing.processes import Worker
from semsearch.indexing.vectors import embed
from semsearch.indexing.vectors.embed import (
    Cores,
    EmbedBatches,
    EmbedRows,
    OnEmbedded,
    PassageEmbedder,
    embed_shard,
    group,
    tokenize_passages,
)
from semsearch.indexing.vectors.shards import Shard

Item = TypeVar("Item")
FindSource = Callable[[], Source]
Ids = Array[np.int32]  # (tokens,): the token ids of all texts, one text after the other
Lengths = Array[np.intp]  # (n,): the number of tokens of each text, longest first

# Maximum tokens of a batch, padding included. An H200 makes 1.6 times the texts/s with 262,144 that it makes with
# 65,536; on a processor, a larger batch does not fit its cache.
TOKENS_PER_DEVICE_BATCH = {"cuda": 262_144, "mps": 32_768, "cpu": 4_096}
# Maximum texts and characters of a shard on a GPU. Texts are sorted by length within a shard, so a large one has little
# padding in its batches.
SHARD_TEXTS, SHARD_CHARACTERS = 65_536, 8_000_000
WORK = "semsearch.conversion.device:work"  # a name, because this package never imports the conversion


class Device(PassageEmbedder):
    """The devices that a name means, and the float model that they run."""

    def __init__(self, device: str, dtype: str | None, find_source: FindSource, embedder: Embedder) -> None:
        """Take the name (auto, cpu, mps, cuda or cuda:N), the dtype (float16, float32), and the bundle's own model.

        Without a dtype, it is float16. `find_source` returns the float model. `embedder` tokenizes the texts. It also
        embeds them if the name is auto, PyTorch sees no GPU, and nobody asked for float32.
        """
        self._device, self._dtype = device, dtype or "float16"
        self._find_source, self._embedder = find_source, embedder
        self._description = ""

    def embed(self, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
        """Embed the texts, and yield their shards in order.

        Raises ModelError if PyTorch sees no such device, or if the model cannot be loaded or run.
        """
        first = next(texts, None)
        if first is None:  # an update without new texts starts no process
            return
        texts = chain([first], texts)
        with closing(DeviceWorkers()) as workers:
            workers.find(self._device)
            self._description = f"{', '.join(workers.names)}, {self._dtype}"
            if self._device == "auto" and workers.kind == "cpu" and self._dtype != "float32":
                self._description = "the processor, int8: PyTorch sees no GPU"
                yield from Cores(self._embedder).embed(texts, count)
                return
            workers.start(self._find_source(), self._dtype)
            texts_per_shard = embed.TEXTS_PER_SHARD if workers.kind == "cpu" else SHARD_TEXTS
            shards = group(texts, texts_per_shard, SHARD_CHARACTERS, len)
            begin = 0
            for tokens in made_ahead(list(tokenize_passages(self._embedder, shard)) for shard in shards):
                yield embed_on_device(workers.run, workers.kind, self._dtype, begin, tokens, workers.map, count)
                begin += len(tokens)

    def describe(self) -> str:
        """Return the names of the devices and the dtype, such as "NVIDIA H100 80GB HBM3, float16"; "" if idle."""
        return self._description


class DeviceWorkers:
    """A worker process for each device, and a thread that waits for each."""

    def __init__(self) -> None:
        """Start the first process, which finds the devices."""
        self._workers, self._pool = [Worker(WORK)], ThreadPoolExecutor()
        self._free = SimpleQueue[tuple[Worker, str]]()

    def find(self, device: str) -> None:
        """Find the devices that a name means. Raises ModelError if PyTorch sees no such device."""
        self._devices: dict[str, str] = self._workers[0].call("find", device)
        self.names = list(self._devices.values())
        self.kind = next(iter(self._devices)).partition(":")[0]  # a key of TOKENS_PER_DEVICE_BATCH

    def start(self, source: Source, dtype: str) -> None:
        """Start the other processes. Each loads the model for its first batch."""
        self._source, self._dtype = source, dtype
        self._workers += [Worker(WORK) for _ in self.names[1:]]
        for each in zip(self._workers, self._devices, strict=True):
            self._free.put(each)

    def map(self, call: EmbedRows, batches: Sequence[list[int]]) -> Iterator[tuple[Codes, Scales]]:
        """Map a function over batches in threads, which is what `embed_shard` needs."""
        return self._pool.map(call, batches)

    def run(self, ids: Ids, lengths: Lengths) -> AnyArray:
        """Return the embeddings of a batch, (n, dim), made by the next device that is free."""
        worker, device = self._free.get()
        try:
            found: AnyArray = worker.call("embed", self._source, self._dtype, device, ids, lengths)
        finally:
            self._free.put((worker, device))
        return found

    def close(self) -> None:
        """End the processes, also while they embed: the threads that wait for them get a KilledError."""
        for worker in self._workers:
            worker.end()
        self._pool.shutdown(cancel_futures=True)


def embed_on_device(
    run_batch: Callable[[Ids, Lengths], AnyArray],
    kind: str,
    dtype: str,
    begin: int,
    tokens: Sequence[TokenIds],
    run: EmbedBatches = map,
    count: OnEmbedded = lambda done: None,
) -> Shard:
    """Return the rows of one shard, embedded by the float model.

    `run_batch` embeds a batch.
    """
    batches = plan_padded_batches([len(text.ids) for text in tokens], TOKENS_PER_DEVICE_BATCH[kind])

    def embed_batch(batch: Sequence[TokenIds]) -> tuple[Codes, Scales]:
        lengths = np.array([len(text.ids) for text in batch])
        found = run_batch(np.fromiter(chain.from_iterable(text.ids for text in batch), np.int32), lengths)
        return quantize(np.asarray(found, np.float32))

    return embed_shard(begin, tokens, batches, embed_batch, f"{kind} {dtype}", run, count)


def plan_padded_batches(lengths: Sequence[int], most_tokens: int) -> list[list[int]]:
    """Return the rows of each batch, longest texts first, whose length the others are padded to.

    A batch has at most most_tokens tokens, padding included, or one text.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    batches = []
    while order:
        texts = max(1, most_tokens // lengths[order[0]])
        batches.append(order[:texts])
        order = order[texts:]
    return batches


def made_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items. A thread makes the next one while the caller uses this one."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
