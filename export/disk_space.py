"""Estimate what an export will write, and check before the work that the disk has room for it."""

import shutil
from pathlib import Path

from export.corpus import Corpus
from export.files.disk_errors import OTHER_FOLDER, DiskError, in_words
from export.model.source.source import Source
from function.engine.tensors import map_tensors

MODEL_MARGIN = 4_000_000  # bytes: tokenizer, manifest, and the small tables that stay float32
FLOAT32_GRAPHS = 3  # graphs on the disk at once: as exported, with pooling, and fused

SHARD_BYTES = 4 + 16 + 1  # bytes of a row in a shard beside its codes: scale, digest, whether it is truncated
COLUMN_BYTES = 16  # bytes of a value in columns.safetensors beside its text: code, row, offset and bit


def model_bytes(source: Source) -> int:
    """Return how many bytes the model's part of a bundle takes, overestimated by some percent.

    If passages have another model, its bytes count too: it is beside the bundle until the export is complete.
    Each weight becomes a byte. The estimate assumes float32 weights; 16-bit weights will take twice as many bytes.
    """
    return _weights_bytes(source) // 4 + MODEL_MARGIN


def temporary_bytes(source: Source) -> int:
    """Return how many bytes the export of a model writes beside the model, and removes again."""
    return FLOAT32_GRAPHS * _weights_bytes(source) + MODEL_MARGIN


def _weights_bytes(source: Source) -> int:
    folders = [source.folder, *(step.folder for step in source.steps)]
    own = sum(path.stat().st_size for folder in folders for path in folder.glob("*.safetensors"))
    return own + (_weights_bytes(source.documents) if source.documents is not None else 0)


def corpus_bytes(corpus: Corpus, passages: Path, dim: int) -> int:
    """Return how many bytes the index, the passages and the columns of the corpus take, without headers.

    passages is the corpus's passages.safetensors. Columns are overestimated: no value takes more than its text in the
    metadata and COLUMN_BYTES.
    """
    codes, scale, signs = dim, 4, -(-dim // 8)
    rows = len(corpus.texts)
    columns = len(corpus.columns) * rows * COLUMN_BYTES + len(map_tensors(passages)["metadata"])
    return rows * (codes + scale + signs) + passages.stat().st_size + (columns if corpus.columns else 0)


def keywords_bytes(passages: Path, heading_prefix: bool = False) -> int:
    """Return how many bytes keywords.safetensors takes for a corpus, overestimated by half or more.

    The headings before a passage are in its metadata. The postings of headlines take about as many bytes as the
    headlines, the postings of longer texts fewer.
    """
    tensors = map_tensors(passages)
    return 2 * (len(tensors["texts"]) + (len(tensors["metadata"]) if heading_prefix else 0))


def shards_bytes(rows: int, dim: int) -> int:
    """Return how many bytes embedding takes beside the bundle: finished shards, and a copy of their codes in order."""
    return rows * (2 * dim + SHARD_BYTES)


def folder_bytes(folder: Path) -> int:
    """Return the total bytes of the files in a folder and below it."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def check_space(out: Path, needed: int) -> None:
    """Raise DiskError unless `needed` bytes fit on the disk of the folder `out`."""
    disk = shutil.disk_usage(out)
    if disk.total and disk.free < needed:  # some network file systems report zeros only
        raise DiskError(
            f"{out}: {in_words(disk.free)} are free, expected {in_words(needed)} for the new bundle; delete what you "
            f"no longer need there or {OTHER_FOLDER}"
        )
