"""Shards: the 8-bit rows of some thousand texts, each in a file that is kept until the run is done.

A shard has the digest of each text, so the next run reuses every row whose text it needs, in any order of its own
texts. The rows of an older bundle are reused in the same way.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from semsearch.engine.bundle import MODEL, TOKENIZER, Manifest
from semsearch.engine.quantization import Codes, Embeddings, Scales, dequantize
from semsearch.engine.tensors import AnyArray, Array, TensorsError, map_tensors
from semsearch.indexing.digests import BYTES, Digests, Positions
from semsearch.indexing.replacing import FINISHED, finishing
from semsearch.indexing.tensor_files import save_tensors

GATHERED_AT_ONCE = 65_536 * 384  # bytes of codes in memory while rows are gathered: 65,536 rows of 384 dimensions

Truncated = Array[np.bool_]  # (n,): whether a text was truncated


@dataclass(frozen=True, slots=True)
class Shard:
    """The rows of n texts in a row. `begin` is the place of the first one among all texts that are embedded."""

    begin: int
    codes: Codes  # (n, dim) int8
    scales: Scales  # (n,) float32
    is_truncated: Truncated  # (n,)
    embedded_by: str  # what embedded them, as in the manifest


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Rows that exist already: the digests of their texts, and a function that reads the rows at some places."""

    digests: Digests
    is_truncated: Truncated
    read: Callable[[Positions], tuple[Codes, Scales]]
    embedded_by: Sequence[str]  # what embedded them, as in the manifest
    unit: Callable[[Positions], Embeddings] | None = None  # the unit embeddings of those that the caller has given


def name_model(manifest: Manifest) -> str:
    """Return a short name for everything except its text that an embedding depends on: model files and settings."""
    model = manifest.model
    if model.documents:
        return model.documents
    files = [manifest.files[name].sha256 for name in (MODEL, TOKENIZER)]
    stated = json.dumps([*files, model.prompts.get("document", ""), model.max_tokens])
    return hashlib.sha256(stated.encode()).hexdigest()[:16]


def save_shard(fresh: Path, model: str, digests: Digests, shard: Shard) -> None:
    """Keep a shard as a finished piece of the unfinished folder. digests are those of its n texts."""
    name = f"{model}-{hashlib.sha256(digests.tobytes()).hexdigest()[:16]}.safetensors"
    tensors: dict[str, AnyArray] = {
        "texts": np.frombuffer(digests.tobytes(), np.uint8).reshape(-1, BYTES),
        "codes": shard.codes,
        "scales": shard.scales,
        "is_truncated": shard.is_truncated.astype(np.uint8),
        "embedded_by": np.frombuffer(shard.embedded_by.encode(), np.uint8),
    }
    with finishing(fresh, name) as path:
        save_tensors(path, tensors)


def read_shards(fresh: Path, model: str) -> list[KnownRows]:
    """Return the finished shards of this model; delete those of other models, and damaged ones."""
    found = []
    for path in sorted((fresh / FINISHED).glob("*.safetensors")):
        tensors: dict[str, AnyArray] = {}
        if path.name.startswith(f"{model}-"):
            with suppress(TensorsError):  # the disk lost it: its texts are embedded again
                tensors = map_tensors(path)
        if not tensors:
            path.unlink()
            continue
        texts = np.frombuffer(tensors["texts"].tobytes(), f"S{BYTES}")
        is_truncated, embedded_by = tensors["is_truncated"].astype(bool), tensors["embedded_by"].tobytes().decode()
        found.append(KnownRows(texts, is_truncated, partial(_read_rows, path), [embedded_by]))
    return found


def _read_rows(path: Path, places: Positions) -> tuple[Codes, Scales]:
    tensors = map_tensors(path)  # mapped for each use, so that the shard does not stay in memory
    return tensors["codes"][places], tensors["scales"][places]


def join_digests(known: Sequence[KnownRows]) -> Digests:
    """Return the digests of all rows, joined."""
    return np.concatenate([np.empty(0, f"S{BYTES}"), *(rows.digests for rows in known)])


def copy_rows(known: KnownRows, dim: int, folder: Path) -> KnownRows:
    """Return rows that stay as they are now, when the caller of `index` changes the array that they are read from."""
    codes, scales = gather_rows([known], np.arange(len(known.digests)), dim, folder)

    def read(places: Positions) -> tuple[Codes, Scales]:
        return codes[places], scales[places]

    return replace(known, read=read, unit=lambda places: dequantize(*read(places)))


def gather_rows(known: Sequence[KnownRows], places: Positions, dim: int, folder: Path) -> tuple[Codes, Scales]:
    """Return copies of known rows: codes (n, dim) int8, scales (n,) float32.

    places (n,) are numbers of rows in all of `known` together: the rows of the first, then those of the next.

    The codes are memory-mapped from a temporary file without a name in the folder: its space on the disk is free again
    when they are no longer used.
    """
    scales, begin = np.empty(len(places), np.float32), 0
    with TemporaryFile(dir=folder) as file:
        codes = np.memmap(file, np.int8, "w+", shape=(len(places), dim))
    step = max(1, GATHERED_AT_ONCE // dim)
    for rows in known:
        here = np.flatnonzero((places >= begin) & (places < begin + len(rows.digests)))
        for block in np.split(here, range(step, len(here), step)):
            codes[block], scales[block] = rows.read(places[block] - begin)
        begin += len(rows.digests)
    codes.flags.writeable = False  # so that its pages can be released
    return codes, scales
