"""Texts become embeddings on all cores of this machine, and a corpus becomes the rows of its index.

A corpus is embedded in shards, and each finished shard is kept on the disk. semsearch/indexing/cluster.py embeds the
same shards on other machines.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import compress, islice
from itertools import count as numbers
from pathlib import Path
from typing import TypeVar

import numpy as np

from semsearch.engine.bundle import INDEX, PASSAGES, TRUNCATED, BundleError, Manifest, check_bundle, read_manifest
from semsearch.engine.embedder import Embedder, plan_batches
from semsearch.engine.quantization import Codes, Embeddings, Scales, quantize
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import TensorsError, map_tensors
from semsearch.indexing.bundles import check_checksum
from semsearch.indexing.corpus.corpus import PrefixedTexts
from semsearch.indexing.corpus.passages import stored_columns, stored_sources
from semsearch.indexing.digests import Positions, digest_texts, find_digests, mark_first
from semsearch.indexing.files import release
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.vectors.shards import (
    KnownRows,
    Truncated,
    gather_rows,
    join_digests,
    name_model,
    read_shards,
    save_shard,
)

TEXTS_PER_SHARD = 4096  # about 15 seconds of work for one core; a stopped run loses the unfinished shards
TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 1024, 1_000_000  # maxima that are tokenized together: tokens take many bytes

Item = TypeVar("Item")
EmbedBatches = Callable[[Callable[[list[int]], tuple[Codes, Scales]], list[list[int]]], Iterable[tuple[Codes, Scales]]]
OnEmbedded = Callable[[int], None]  # takes the number of texts embedded since its last call


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows of TEXTS_PER_SHARD texts, or of the last ones. The number counts shards from 0 in the texts' order."""

    number: int
    codes: Codes  # (n, dim) int8
    scales: Scales  # (n,) float32
    is_truncated: Truncated  # (n,)


EmbedShards = Callable[[Embedder, Iterator[str], OnEmbedded], Iterator[Shard]]  # in any order


@dataclass(frozen=True, slots=True)
class EmbeddedCorpus:
    """The rows of an index in the corpus's order, and where they came from."""

    codes: Codes  # (rows, dim) int8, memory-mapped
    scales: Scales  # (rows,) float32
    embedded: int  # texts that were embedded now
    is_truncated: Truncated  # (rows,): whether the text is longer than the model reads
    resumed: int  # rows reused from a run that was stopped
    older_rows: Positions  # (rows,): the row of the older bundle that each row is, -1 for one that is not from there

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


def embed_shard(
    embedder: Embedder,
    number: int,
    texts: Sequence[str],
    run: EmbedBatches = map,
    count: OnEmbedded = lambda done: None,
) -> Shard:
    """Return the rows of one shard; `run` embeds its batches, one after the other or on all cores.

    At most TEXTS_AT_ONCE texts or CHARACTERS_AT_ONCE characters are tokenized at once.
    """
    pieces = group(texts, TEXTS_AT_ONCE, CHARACTERS_AT_ONCE, len)
    tokens = [found for piece in pieces for found in embedder.tokenize(piece, role="document")]
    batches = plan_batches([len(text.ids) for text in tokens])

    def embed(batch: list[int]) -> tuple[Codes, Scales]:
        return quantize(embedder.embed_batch([tokens[row].ids for row in batch]))

    codes, scales = np.empty((len(tokens), embedder.model.dim), np.int8), np.empty(len(tokens), np.float32)
    for batch, rows in zip(batches, run(embed, batches), strict=True):
        codes[batch], scales[batch] = rows
        count(len(batch))
    return Shard(number, codes, scales, np.array([text.is_truncated for text in tokens], bool))


def embed_here(embedder: Embedder, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
    """Embed the texts on all cores of this machine, and yield their shards in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number in numbers():
            if not (shard := list(take_shard(texts))):
                return
            yield embed_shard(embedder, number, shard, pool.map, count)


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
    known = [*before, *read_shards(fresh, model)]
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
    known = [*before, *read_shards(fresh, model)]
    places = find_digests(digests, join_digests(known))
    if (places < 0).any():
        raise TensorsError(f"{fresh}: a shard is damaged that was just written; expected a disk that works; check it")
    is_truncated = np.concatenate([rows.is_truncated for rows in known])[places]
    codes, scales = gather_rows(known, places, embedder.model.dim, fresh)
    return EmbeddedCorpus(codes, scales, embedded, is_truncated, resumed, older_rows)


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


def open_older_rows(bundle: Path, manifest: Manifest) -> KnownRows:
    """Return the rows of a bundle; manifest describes the model that the new texts will be embedded with.

    The rows stay readable when the bundle's files are replaced.
    Raises BundleError or TensorsError if the bundle is damaged, if it was embedded by another model, or if another
    export replaces it now.
    """
    older = check_bundle(bundle)
    if older.corpus.vectors is not None:
        raise BundleError(f"{bundle}: its texts are in S3 Vectors; name the bundle that was published there")
    if name_model(older) != name_model(manifest):
        raise BundleError(
            f"{bundle}: was embedded by the model {older.model.name} with {_shown(older)}, the new texts would be by "
            f"{manifest.model.name} with {_shown(manifest)}; expected the same model; leave MODEL out to go on with "
            "the bundle's, or leave --update out to embed all texts"
        )
    for name in (INDEX, PASSAGES):
        check_checksum(bundle, name, older)
    Index.open(bundle / INDEX, older.corpus.stages)  # checks the tensors
    tensors = map_tensors(bundle / INDEX)
    is_truncated = np.zeros(older.corpus.rows, bool)
    if TRUNCATED in older.files:
        check_checksum(bundle, TRUNCATED, older)
        with (bundle / TRUNCATED).open(encoding="utf-8") as file:
            is_truncated[[json.loads(line)["index"] for line in file]] = True
    texts, _, metadata = stored_columns(bundle / PASSAGES)
    embedded: Collection[str] = texts
    if older.corpus.heading_prefix:
        embedded = PrefixedTexts(texts, metadata, stored_sources(bundle / PASSAGES))
    digests = digest_texts(embedded)
    if read_manifest(bundle) != older:
        raise BundleError(f"{bundle}: was replaced while it was read; run the command again when no other one runs")

    def read(rows: Positions) -> tuple[Codes, Scales]:
        found = tensors["codes"][rows], tensors["scales"][rows]
        release(tensors["codes"])  # otherwise the whole index would be in memory
        return found

    return KnownRows(digests, is_truncated, read)


def _shown(manifest: Manifest) -> str:
    return f"sha256 {manifest.files['model.ort'].sha256[:12]}"
