"""truncated.jsonl: which texts of a bundle are longer than the model reads, for whoever made it. No function reads it.

It has one line for each of these texts, in the order of the corpus: {"index": 12, "id": "…"}. A bundle without such
texts has no such file.
"""

import json
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

import numpy as np

from export.index.indexer import check_checksum
from export.index.shards import Truncated
from function.engine.bundle import TRUNCATED, Manifest


def write_truncated(folder: Path, ids: Sequence[str], is_truncated: Truncated) -> None:
    """Write the file into an unfinished bundle if a text is truncated. is_truncated is (rows,), as many as ids."""
    if not is_truncated.any():
        return
    with (folder / TRUNCATED).open("w", encoding="utf-8") as file:
        for index, name in compress(enumerate(ids), is_truncated):
            file.write(json.dumps({"index": index, "id": name}, ensure_ascii=False) + "\n")


def read_truncated(bundle: Path, manifest: Manifest, rows: int) -> Truncated:
    """Return which texts of a bundle are truncated, (rows,). Raises BundleError if the file is damaged."""
    is_truncated = np.zeros(rows, bool)
    if TRUNCATED in manifest.files:
        check_checksum(bundle, TRUNCATED, manifest)
        with (bundle / TRUNCATED).open(encoding="utf-8") as file:
            is_truncated[[json.loads(line)["index"] for line in file]] = True
    return is_truncated
