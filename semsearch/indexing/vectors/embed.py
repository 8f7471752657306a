"""Texts become embeddings on all cores of this machine, and a corpus becomes the rows of its index.

A corpus is embedded in shards, and each finished shard is kept on the disk. semsearch/indexing/cluster.py embeds the
same shards on other machines.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count as numbers
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from semsearch.engine.bundle import BY_CORES, INDEX, TRUNCATED
from semsearch.engine.cores import usable_cores
from semsearch.engine.embedder import Embedder, TokenIds, plan_batches
from semsearch.engine.quantization import Codes, Embeddings, Scales, quantize
from semsearch.engine.tensors import TensorsError, map_tensors
from semsearch.indexing.corpus.passages import strings_at
from semsearch.indexing.digests import Digests, Positions, digest_texts, find_digests, mark_first
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.tensor_files import release
from semsearch.indexing.vectors.shards import (
    KnownRows,
    Shard,
    Truncated,
    gather_rows,
    join_digests,
    read_shards,
    save_shard,
)

TEXTS_PER_SHARD = 4096  # about 15 seconds of work for one core; a stopped run loses the unfinished shards
TEXTS_AT_ONCE, CHARACTERS_AT_ONCE = 1024, 1_000_000  # maxima that are tokenized together: tokens take many bytes

Item = TypeVar("Item")
EmbedTokens = Callable[[Sequence[TokenIds]], tuple[Codes, Scales]]
EmbedRows = Callable[[list[int]], tuple[Codes, Scales]]
EmbedBatches = Callable[[EmbedRows, Sequence[list[int]]], Iterable[tuple[Codes, Scales]]]
OnEmbedded = Callable[[int], None]  # takes the number of texts embedded since its last call


class PassageEmbedder(Protocol):
    """Who embeds the passages of an index: this machine's cores, a Ray cluster, or PyTorch on a GPU."""

    def embed(self, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
        """Embed the texts, and yield their shards in any order. `count` is called while a shard is embedded."""

    def describe(self) -> str:
        """Return the line of the summary about it, "" for none."""


@dataclass(frozen=True, slots=True)
class EmbeddedCorpus:
    """The rows of an index in the corpus's order, and where they came from."""

    codes: Codes  # (rows, dim) int8, memory-mapped
    scales: Scales  # (rows,) float32
    embedded_by: list[str]  # what embedded the rows now or earlier, as in the manifest
    embedded: int  # texts that were embedded now
    given: int  # rows whose embeddings the caller has handed in
    is_truncated: Truncated  # (rows,): whether the text is longer than the model reads
    resumed: int  # rows reused from a run that was stopped
    older_rows: Positions  # (rows,): the row of the older bundle that each row is, -1 for one that is not from there

    @property
    def updated(self) -> int:
        """Return the number of rows reused from an older bundle."""
        return int(np.count_nonzero(self.older_rows >= 0))


def embed_texts(embedder: Embedder, texts: Sequence[str], role: str = "") -> Embeddings:
    """Return the unit embeddings of the texts, (n, dim) float32, on all cores. All of them are tokenized at once."""
    with ThreadPoolExecutor(usable_cores()) as pool:
        return embedder.embed(embedder.tokenize(texts, role), pool.map)


def take_shards(texts: Iterator[str], texts_per_shard: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the texts of each shard, with the place of its first text."""
    for begin in numbers(step=texts_per_shard):
        shard = list(islice(texts, texts_per_shard))
        if not shard:
            return
        yield begin, shard


def tokenize_passages(embedder: Embedder, texts: Sequence[str]) -> Iterator[TokenIds]:
    """Yield the tokens of each text. At most CHARACTERS_AT_ONCE characters are encoded at once."""
    for piece in group(texts, TEXTS_AT_ONCE, CHARACTERS_AT_ONCE, len):
        yield from embedder.tokenize(piece, role="document")


def embed_shard(
    begin: int,
    tokens: Sequence[TokenIds],
    batches: Sequence[list[int]],
    embed_batch: EmbedTokens,
    embedded_by: str,
    run: EmbedBatches = map,
    count: OnEmbedded = lambda done: None,
) -> Shard:
    """Return the rows of one shard. batches has the rows of each batch; `run` embeds them one by one, or in threads."""
    found = run(lambda batch: embed_batch([tokens[row] for row in batch]), batches)
    codes, scales = None, np.empty(len(tokens), np.float32)
    for batch, (batch_codes, batch_scales) in zip(batches, found, strict=True):
        if codes is None:
            codes = np.empty((len(tokens), batch_codes.shape[1]), np.int8)
        codes[batch], scales[batch] = batch_codes, batch_scales
        count(len(batch))
    assert codes is not None  # a shard has texts
    return Shard(begin, codes, scales, np.array([text.is_truncated for text in tokens], bool), embedded_by)


def embed_on_cores(
    embedder: Embedder,
    begin: int,
    texts: Sequence[str],
    run: EmbedBatches = map,
    count: OnEmbedded = lambda done: None,
) -> Shard:
    """Return the rows of one shard, embedded by the bundle's own model."""
    tokens = list(tokenize_passages(embedder, texts))
    batches = plan_batches([len(text.ids) for text in tokens])

    def embed_batch(batch: Sequence[TokenIds]) -> tuple[Codes, Scales]:
        return quantize(embedder.embed_batch([text.ids for text in batch]))

    return embed_shard(begin, tokens, batches, embed_batch, BY_CORES, run, count)


class Cores(PassageEmbedder):
    """All cores of this machine, with the 8-bit model of the bundle."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
        """Embed the texts, and yield their shards in order."""
        with ThreadPoolExecutor(usable_cores()) as pool:
            for begin, shard in take_shards(texts, TEXTS_PER_SHARD):
                yield embed_on_cores(self._embedder, begin, shard, pool.map, count)

    def describe(self) -> str:
        """Return "": this is what everybody expects."""
        return ""


def embed_corpus(
    passage_embedder: PassageEmbedder,
    texts: Collection[str],
    fresh: Path,
    model: str,
    dim: int,
    older: KnownRows | None = None,
    given: Sequence[KnownRows] = (),
    on_progress: OnProgress = no_progress,
    *,
    digests: Digests | None = None,
    older_rows: Positions | None = None,
) -> EmbeddedCorpus:
    """Return the rows of the texts, which have `dim` values.

    fresh is the unfinished folder: its finished shards are reused, and the new ones are kept there under the name
    `model`, which `name_model` returns. Rows of the older bundle are reused too, and so are those that the caller of
    `index` has given, except for texts that the older bundle has. A row depends on its text alone. Equal texts are
    embedded once. passage_embedder embeds the other texts; each of its shards is kept as soon as it comes.
    digests (n,) are those of the texts, if they are known, and older_rows (n,) the rows of `older` that are known, -1
    where they are not.
    """
    if digests is None:
        digests = digest_texts(texts)
    if older is None or older_rows is None:
        older_rows = np.full(len(digests), -1, np.intp)
    before = [*([] if older is None else [older]), *given]
    known = [*before, *read_shards(fresh, model)]
    places = _find_rows(digests, known, older_rows)
    from_older = 0 if older is None else len(older.digests)
    from_before = sum(len(rows.digests) for rows in before)
    older_rows = np.where(places < from_older, places, -1)
    resumed = int(np.count_nonzero(places >= from_before))
    number_given = int(np.count_nonzero((places >= from_older) & (places < from_before)))
    missing = np.flatnonzero(places < 0)
    missing = missing[mark_first(digests[missing])]
    wanted = digests[missing]
    left, embedded = len(wanted), 0

    def count(done: int) -> None:
        nonlocal embedded
        embedded += done
        on_progress("embed texts", 1 - (left - embedded) / len(texts), embedded)

    count(0)
    for shard in passage_embedder.embed(strings_at(texts, missing), count):
        save_shard(fresh, model, wanted[shard.begin : shard.begin + len(shard.codes)], shard)
    known = [*before, *read_shards(fresh, model)]
    places = _find_rows(digests, known, older_rows)
    if (places < 0).any():
        raise TensorsError(f"{fresh}: a shard is damaged that was just written; expected a disk that works; check it")
    is_truncated = np.concatenate([rows.is_truncated for rows in known])[places]
    codes, scales = gather_rows(known, places, dim, fresh)
    embedded_by = sorted({each for rows in _used(known, places) for each in rows.embedded_by})
    return EmbeddedCorpus(codes, scales, embedded_by, embedded, number_given, is_truncated, resumed, older_rows)


def _find_rows(digests: Digests, known: Sequence[KnownRows], places: Positions) -> Positions:
    """Return the place of each text among the known rows, joined, -1 where there is none; places has those found."""
    found = places.copy()
    missing = np.flatnonzero(places < 0)
    if len(missing):
        found[missing] = find_digests(digests[missing], join_digests(known))
    return found


def _used(known: Sequence[KnownRows], places: Positions) -> Iterator[KnownRows]:
    """Yield the sources of known rows from which a row is taken; places are rows of all sources, joined."""
    ends = np.cumsum([len(rows.digests) for rows in known])
    for number in np.unique(np.searchsorted(ends, places, side="right")):
        yield known[number]


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


def open_rows(older: OlderIndex) -> KnownRows:
    """Return the rows of the older index. They stay readable when its files are replaced."""
    tensors = map_tensors(older.folder / INDEX)
    is_truncated = np.zeros(older.rows, bool)
    if TRUNCATED in older.manifest.files:
        with (older.folder / TRUNCATED).open(encoding="utf-8") as file:
            is_truncated[[json.loads(line)["index"] for line in file]] = True

    def read(rows: Positions) -> tuple[Codes, Scales]:
        found = tensors["codes"][rows], tensors["scales"][rows]
        release(tensors["codes"])  # otherwise the whole index would be in memory
        return found

    return KnownRows(older.digests.embedded, is_truncated, read, older.manifest.corpus.embedded_by)
