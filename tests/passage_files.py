"""A passages.safetensors from lists."""

from collections.abc import Sequence
from pathlib import Path

from export.corpus.passages import writing_passages


def write_passages(path: Path, texts: Sequence[str], ids: Sequence[str], metadata: Sequence[str]) -> None:
    with writing_passages(path) as append:
        for row in zip(texts, ids, metadata, strict=True):
            append(*row)
