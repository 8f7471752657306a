"""The corpus of a bundle as data files of a site: index, keywords, a file for each column, and shards of passages.

The bits of the index are left out, since the browser computes them from the codes.
"""

import json
from pathlib import Path

import numpy as np

from export.site.data_files import DataFiles
from function.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES, IndexInfo
from function.engine.metadata.columns import PARTS
from function.engine.passages import Passages
from function.engine.tensors import map_tensors

SHARD = 1 << 18  # bytes of texts, ids and metadata of a shard, before they are gzipped


def add_corpus(files: DataFiles, bundle: Path, index: IndexInfo) -> list[int]:
    """Write the data files of the corpus; return the first row of each shard of passages."""
    tensors = map_tensors(bundle / INDEX)
    files.add_tensors("index", {name: tensor for name, tensor in tensors.items() if name != "bits"})
    if index.keywords is not None:
        _add_keywords(files, bundle / KEYWORDS)
    if index.columns:
        columns = map_tensors(bundle / COLUMNS)
        for number, name in enumerate(index.columns):
            parts = {part: columns[key] for part in PARTS if (key := f"{name}.{part}") in columns}
            files.add_tensors(f"column-{number}", parts)
    return _add_passages(files, Passages(bundle / PASSAGES))


def _add_keywords(files: DataFiles, path: Path) -> None:
    """Write the postings. The terms become one text with a line for each, which a browser reads at once.

    The words are another file, which only a misspelled word needs.
    """
    tensors = map_tensors(path)
    content, offsets = tensors["terms"], tensors["terms.offsets"].astype(np.intp)
    terms = np.insert(content, offsets[1:-1], ord("\n"))
    kept = {name: tensors[name] for name in ("postings.offsets", "rows", "impacts", "scales")}
    files.add_tensors("keywords", {"terms": terms} | kept)
    files.add("words", tensors["words"].tobytes().rstrip(b"\n"))


def _add_passages(files: DataFiles, passages: Passages) -> list[int]:
    starts: list[int] = []
    shard: list[str] = []
    size = 0
    for row in range(len(passages) + 1):
        if row == len(passages) or size >= SHARD:
            files.add(f"passages-{len(starts)}", f"[{','.join(shard)}]".encode())
            starts.append(row - len(shard))
            shard, size = [], 0
        if row < len(passages):
            passage = passages[row]
            shard.append(json.dumps([passage.id, passage.text, passage.metadata], ensure_ascii=False))
            size += len(shard[-1])
    ids = [passages.id(row) for row in range(len(passages))]
    files.add("ids", json.dumps(ids, ensure_ascii=False).encode())
    return starts
