"""Texts become embeddings on all cores of this machine, and a corpus becomes the rows of its index.

A corpus is embedded in shards, and each finished shard is kept on the disk. While the cores embed one shard, the next
one is read and tokenized and the last one is written, so that no core waits between two of them. export/cluster.py
embeds the same shards on other machines.
"""

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np

from export.corpus.digests import Places, digest_texts, find_digests, mark_first
from export.index.shards import KnownRows, Truncated, gather_rows, join_digests, read_shards, save_shard
from export.progress import OnProgress, no_progress
from function.engine.embedder import Embedder, TokenIds, plan_batches
from function.engine.quantization import Codes, Embeddings, Scales, quantize
from function.engine.tensors import TensorsError

TEXTS_PER_SHARD = 4096  # about 15 seconds of work for one core; a stopped export loses the unfinished shards
TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 1024, 1_000_000  # maxima that are tokenized together: tokens take many bytes

Item = TypeVar("Item")
Quantized = tuple[Codes, Scales]
Count = Callable[[int], None]  # takes the number of texts embedded since its last call


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows of TEXTS_PER_SHARD texts, or of the last ones. The number counts shards from 0 in the texts' order."""

    number: int
    codes: Codes  # (n, dim) int8
    scales: Scales  # (n,) float32
    is_truncated: Truncated  # (n,)


EmbedShards = Callable[[Embedder, Iterator[str], Count], Iterator[Shard]]  # in any order


@dataclass(frozen=True, slots=True)
class EmbeddedCorpus:
    """The rows of an index in the corpus's order, and where they came from."""

    codes: Codes  # (rows, dim) int8, memory-mapped
    scales: Scales  # (rows,) float32
    embedded: int  # texts that were embedded now
    is_truncated: Truncated  # (rows,): whether the text is longer than the model reads
    resumed: int  # rows reused from an export that was stopped
    older_rows: Places  # (rows,): the row of the older bundle that each row is, -1 for one that is not from there

    @property
    def updated(self) -> int:
        """Return the number of rows reused from an older bundle."""
        return int(np.count_nonzero(self.older_rows >= 0))


def embed_texts(embedder: Embedder, texts: Sequence[str], role: str = "") -> Embeddings:
    """Return the unit embeddings of the texts, (n, dim) float32, on all cores. All of them are tokenized at once."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return embedder.embed(embedder.tokenize(texts, role), pool.map)


def take_shard(texts: Iterator[str]) -> Iterator[str]:
    """Return the texts of the next shard: shards are divided in the same way on a cluster."""
    return islice(texts, TEXTS_PER_SHARD)


def embed_shard(embedder: Embedder, number: int, texts: Sequence[str]) -> Shard:
    """Return the rows of one shard, embedded on one core in the batches that `embed_here` makes of it."""
    tokens = _tokenize(embedder, texts)
    batches = plan_batches([len(text.ids) for text in tokens])
    results = (_embed_batch(embedder, tokens, rows) for rows in batches)
    return _collect(embedder.model.dim, number, tokens, zip(batches, results, strict=True), lambda done: None)


def embed_here(embedder: Embedder, texts: Iterator[str], count: Count) -> Iterator[Shard]:
    """Embed the texts on all cores of this machine, and yield their shards in order.

    At most three shards of tokens are in memory.
    """
    waiting: deque[tuple[int, list[TokenIds], list[tuple[list[int], Future[Quantized]]]]] = deque()

    def collect() -> Shard:
        number, tokens, batches = waiting.popleft()
        return _collect(embedder.model.dim, number, tokens, ((rows, one.result()) for rows, one in batches), count)

    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        number = 0
        while tokens := _tokenize(embedder, take_shard(texts)):
            batches = plan_batches([len(text.ids) for text in tokens])
            futures = [(rows, pool.submit(_embed_batch, embedder, tokens, rows)) for rows in batches]
            waiting.append((number, tokens, futures))
            number += 1
            if len(waiting) > 1:  # the cores have the newer shard to go on with
                yield collect()
        while waiting:
            yield collect()
    finally:
        pool.shutdown(cancel_futures=True)  # after an interruption too


def embed_corpus(
    embedder: Embedder,
    texts: Collection[str],
    fresh: Path,
    model: str,
    older: KnownRows | None = None,
    on_progress: OnProgress = no_progress,
    embed_shards: EmbedShards = embed_here,
) -> EmbeddedCorpus:
    """Return the rows of the texts.

    fresh is the unfinished folder: its finished shards are reused, and the new ones are kept there under the name
    `model`, which `name_model` returns. Rows of `older`, a bundle's, are reused too. A row depends on its text alone.
    Equal texts are embedded once. `embed_shards` yields the shards of the other texts, embedded here or elsewhere; each
    is kept as soon as it comes.
    """
    digests = digest_texts(texts)
    before = [older] if older is not None else []
    known = [*before, *read_shards(fresh, model, digests)]
    places = find_digests(digests, join_digests(known))
    older_rows = np.where(places < sum(len(rows.digests) for rows in before), places, -1)
    resumed = int(np.count_nonzero(places >= 0) - np.count_nonzero(older_rows >= 0))
    is_wanted = mark_first(digests) & (places < 0)
    wanted = digests[is_wanted]
    left, embedded = len(wanted), 0

    def count(done: int) -> None:
        nonlocal embedded
        embedded += done
        on_progress("embed texts", 1 - (left - embedded) / len(texts), embedded)

    count(0)
    for shard in embed_shards(embedder, compress(texts, is_wanted), count):
        begin = shard.number * TEXTS_PER_SHARD
        own = wanted[begin : begin + len(shard.codes)]
        save_shard(fresh, model, own, shard.codes, shard.scales, shard.is_truncated)
    known = [*before, *read_shards(fresh, model, digests)]
    places = find_digests(digests, join_digests(known))
    if (places < 0).any():
        raise TensorsError(f"{fresh}: a shard is damaged that was just written; expected a disk that works; check it")
    is_truncated = np.concatenate([rows.is_truncated for rows in known])[places]
    codes, scales = gather_rows(known, places, embedder.model.dim, fresh)
    return EmbeddedCorpus(codes, scales, embedded, is_truncated, resumed, older_rows)


def _embed_batch(embedder: Embedder, tokens: list[TokenIds], rows: list[int]) -> Quantized:
    return quantize(embedder.embed_batch([tokens[row].ids for row in rows]))


def _collect(
    dim: int, number: int, tokens: list[TokenIds], batches: Iterable[tuple[list[int], Quantized]], count: Count
) -> Shard:
    """Return a shard as soon as all its batches are embedded."""
    codes, scales = np.empty((len(tokens), dim), np.int8), np.empty(len(tokens), np.float32)
    for rows, batch in batches:
        codes[rows], scales[rows] = batch
        count(len(rows))
    return Shard(number, codes, scales, np.array([text.is_truncated for text in tokens], bool))


def _tokenize(embedder: Embedder, texts: Iterable[str]) -> list[TokenIds]:
    """Return the tokens of the texts, at most TEXTS_AT_ONCE texts or CHARACTERS_AT_ONCE characters at once."""
    pieces = group(texts, TEXTS_AT_ONCE, CHARACTERS_AT_ONCE, len)
    return [tokens for piece in pieces for tokens in embedder.tokenize(piece, role="document")]


def group(items: Iterable[Item], most: int, most_size: int, size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield the items in lists of at most `most` items and a total size of most_size; a larger item is alone."""
    found: list[Item] = []
    room = most_size
    for item in items:
        size = size_of(item)
        if found and (len(found) == most or size > room):
            yield found
            found, room = [], most_size
        found.append(item)
        room -= size
    if found:
        yield found
