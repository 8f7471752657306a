"""Write the data files of a static site: what its search reads of the bundle."""

import hashlib
import json
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES, CorpusInfo
from semsearch.engine.metadata.columns import PARTS, SECTIONS
from semsearch.engine.passages import Passages
from semsearch.engine.tensors import AnyArray, map_tensors
from semsearch.indexing.tensor_files import save_tensors

FOLDER = "data"
GZIP = 16 + zlib.MAX_WBITS  # selects zlib's gzip format, without a time in the header: the same bytes each time
HASH = 16  # hexadecimal digits of a hash in a name


class DataFiles:
    """The data files of one site; `listed` has the path, the bytes and the SHA-256 of each by its name."""

    def __init__(self, site: Path) -> None:
        """Take the site's folder."""
        self._site = site
        self.listed: dict[str, dict[str, str | int]] = {}
        (site / FOLDER).mkdir()

    def add(self, name: str, content: bytes) -> None:
        """Write one file, gzipped."""
        # vectors repeat nothing: without a search for repetitions they become a sixth smaller
        packed = min((_gzip(content, strategy) for strategy in (zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY)), key=len)
        digest = hashlib.sha256(packed).hexdigest()
        path = f"{FOLDER}/{name}-{digest[:HASH]}.bin"
        (self._site / path).write_bytes(packed)
        self.listed[name] = {"path": path, "bytes": len(packed), "sha256": digest}

    def add_tensors(self, name: str, tensors: dict[str, AnyArray]) -> None:
        """Write tensors as one safetensors file, offsets in 32 bits, which JavaScript reads as numbers."""
        narrow = dict(tensors)
        for key, tensor in tensors.items():
            if _is_offset(key, tensor):
                narrow[key] = tensor.astype(np.uint32)
        with NamedTemporaryFile() as file:
            save_tensors(Path(file.name), narrow)
            self.add(name, Path(file.name).read_bytes())

    def bytes_of(self, *names: str) -> int:
        """Return the sum of the bytes of these files."""
        return sum(int(self.listed[name]["bytes"]) for name in names)


def _gzip(content: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP, zlib.DEF_MEM_LEVEL, strategy)
    return packer.compress(content) + packer.flush()


def _is_offset(name: str, tensor: AnyArray) -> bool:
    return tensor.dtype == np.uint64 and name.endswith("offsets")


SHARD = 1 << 18  # bytes of passages from which on a shard ends, before it is gzipped


def add_corpus(files: DataFiles, bundle: Path, index: CorpusInfo) -> list[int]:
    """Write the data files of the corpus, and return the first row of each shard of passages."""
    tensors = map_tensors(bundle / INDEX)
    files.add_tensors("index", {name: tensor for name, tensor in tensors.items() if name != "bits"})
    if index.keywords is not None:
        _add_keywords(files, bundle / KEYWORDS)
    if index.columns:
        columns = map_tensors(bundle / COLUMNS)
        for number, name in enumerate(index.columns):
            parts = {part: columns[key] for part in PARTS if (key := f"{name}.{part}") in columns}
            files.add_tensors(f"column-{number}", parts)
        if SECTIONS in columns:
            files.add_tensors(SECTIONS, {SECTIONS: columns[SECTIONS]})
    return _add_passages(files, Passages(bundle / PASSAGES))


def _add_keywords(files: DataFiles, path: Path) -> None:
    """Write the postings, and the words as another file, which only a misspelled word needs.

    The terms become one text with a term in each line, which a browser reads at once.
    """
    tensors = map_tensors(path)
    strings = tensors.strings("terms", "terms.offsets").check()
    terms = np.insert(strings.content, strings.offsets[1:-1].astype(np.intp), ord("\n"))
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
