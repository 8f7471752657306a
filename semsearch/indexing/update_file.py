"""update.safetensors: what an update of an index needs and a search does not, beside the other files of a bundle.

It is for whoever made the bundle: the manifest does not list it, and it is not published. Without it, or with one that
does not fit, an update reads and analyses all texts again.

    recipe          JSON, uint8: the version of this package, the recorded options, and the checksums of the files that
                    the rows are in
    checksum        SHA-256 of the other tensors (32,) uint8: nothing else would notice a damaged file
    measured        the number of rows that were added or removed since the recall was measured (1,) uint64
    digests.*       digests of each row: see `RowDigests`
    facts.*         what the values of each column are: see semsearch/indexing/facts.py
    sections.*      digests of the section of each row: see `SectionDigests`
    terms.*         the terms of each row: see semsearch/indexing/term_counts.py
    documents       JSON, uint8: the states of the files of a folder: see semsearch/indexing/documents/records.py
    documents.key   what decides, beside the files, what is read: see semsearch/indexing/documents/recipe.py
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np

from semsearch.engine.bundle import COLUMNS, INDEX, KEYWORDS, PASSAGES, UPDATE, Manifest
from semsearch.engine.tensors import AnyArray, Tensors, TensorsError, map_tensors
from semsearch.indexing.corpus.corpus import PassageRow, heading_prefix
from semsearch.indexing.digests import BYTES, Digests, Positions, digest_bytes
from semsearch.indexing.documents.records import FileRecords, read_records, write_records
from semsearch.indexing.facts import Facts
from semsearch.indexing.tensor_files import save_tensors
from semsearch.version import VERSION

OWN_RECIPE, OWN_CHECKSUM, MEASURED = "recipe", "checksum", "measured"
DOCUMENTS, DOCUMENTS_KEY = "documents", "documents.key"
# Raise this number when digests or facts are made in another way: an update then makes all of them again.
KEPT_VERSION = 1
FACTS = "facts."  # before the names of columns
DIGEST_NAMES = ("rows", "ids", "texts", "embedded")  # the fields of RowDigests
KIND = f"S{BYTES}"
OWN_FILES = (INDEX, PASSAGES, COLUMNS, KEYWORDS)  # the files that have the rows


@dataclass(frozen=True, slots=True)
class RowDigests:
    """Digests of each row of an index, each (rows,)."""

    rows: Digests  # digest of the text, the id, the metadata and the source together
    ids: Digests
    texts: Digests
    embedded: Digests  # digest of what the model reads: the text, in documents after its headings

    @classmethod
    def of(cls, passages: Iterable[PassageRow], *, has_prefixes: bool) -> Self:
        """Return the digests of passages; with has_prefixes, the model reads them after the path of their headings."""
        rows, ids, texts, embedded = bytearray(), bytearray(), bytearray(), bytearray()
        for passage in passages:
            encoded = [value.encode() for value in passage.strings]
            rows += digest_bytes(b"".join(len(value).to_bytes(8, "little") + value for value in encoded))
            ids += digest_bytes(encoded[1])
            texts += digest_bytes(encoded[0])
            if has_prefixes:
                read = passage.source or passage.text
                embedded += digest_bytes((heading_prefix(json.loads(passage.metadata)) + read).encode())
        return cls(
            rows=np.frombuffer(rows, KIND),
            ids=np.frombuffer(ids, KIND),
            texts=np.frombuffer(texts, KIND),
            embedded=np.frombuffer(embedded if has_prefixes else texts, KIND),
        )

    @classmethod
    def read(cls, tensors: Tensors) -> Self:
        """Return the digests that are in a file."""
        return cls(**{name: read_digests(tensors[f"digests.{name}"]) for name in DIGEST_NAMES})

    def tensors(self) -> dict[str, AnyArray]:
        """Return the tensors of the file."""
        return {f"digests.{name}": digests_tensor(getattr(self, name)) for name in DIGEST_NAMES}

    def at(self, rows: Positions) -> Self:
        """Return the digests of some rows."""
        return type(self)(**{name: getattr(self, name)[rows] for name in DIGEST_NAMES})

    def updated(self, older_rows: Positions, new: Self) -> Self:
        """Return the digests of rows of which some are older ones, and the others are `new`, in their order."""
        return type(self)(
            **{name: update_digests(getattr(self, name), older_rows, getattr(new, name)) for name in DIGEST_NAMES}
        )


def read_digests(tensor: AnyArray) -> Digests:
    """Return digests that are in a file."""
    return np.frombuffer(tensor.tobytes(), KIND)


def digests_tensor(digests: Digests) -> AnyArray:
    """Return the tensor of the file for digests, (n, BYTES) uint8."""
    return np.frombuffer(digests.tobytes(), np.uint8).reshape(-1, BYTES)


def update_digests(older: Digests, older_rows: Positions, new: Digests) -> Digests:
    """Return the digests of rows of which some are older ones, -1 for the others, which are `new`, in their order."""
    found = np.empty(len(older_rows), KIND)
    found[older_rows >= 0] = older[older_rows[older_rows >= 0]]
    found[older_rows < 0] = new
    return found


def kept_facts(tensors: Tensors) -> Facts:
    """Return the facts of each column that are in a file."""
    return {name.removeprefix(FACTS): tensor for name, tensor in tensors.items() if name.startswith(FACTS)}


def facts_tensors(facts: Facts) -> dict[str, AnyArray]:
    """Return the tensors of the file for the facts of each column."""
    return {FACTS + name: column for name, column in facts.items()}


def kept_records(tensors: Tensors | None, key: str) -> FileRecords | None:
    """Return the records of documents that are in a file, None if there are none, or if they were read otherwise."""
    if tensors is None or DOCUMENTS not in tensors or tensors[DOCUMENTS_KEY].tobytes() != key.encode():
        return None
    return read_records(tensors[DOCUMENTS].tobytes())


def records_tensors(records: FileRecords, key: str) -> dict[str, AnyArray]:
    """Return the tensors of the file for the records of documents. key is that of `key_of_readings`."""
    return {
        DOCUMENTS: np.frombuffer(write_records(records), np.uint8),
        DOCUMENTS_KEY: np.frombuffer(key.encode(), np.uint8),
    }


def recipe_of(options: Mapping[str, Any]) -> str:
    """Return what the kept parts depend on beside the texts: these options, and versions."""
    stated = {"version": VERSION, "kept": KEPT_VERSION, "options": options}
    return json.dumps(stated, sort_keys=True, ensure_ascii=False)


def write_update(
    folder: Path, manifest: Manifest, recipe: str, parts: Mapping[str, AnyArray], *, changed_rows: int
) -> None:
    """Write the file of a bundle, which the manifest describes.

    changed_rows is the number of rows that were added or removed since the recall was measured.
    """
    tensors = dict(parts)
    tensors[OWN_RECIPE] = np.frombuffer(_of_bundle(recipe, manifest).encode(), np.uint8)
    tensors[MEASURED] = np.array([changed_rows], np.uint64)
    save_tensors(folder / UPDATE, tensors | {OWN_CHECKSUM: _checksum(tensors)})


def read_update(folder: Path, manifest: Manifest, recipe: str) -> Tensors | None:
    """Return the tensors of the file of a bundle; None if it is missing, damaged, of another bundle or recipe."""
    try:
        tensors = map_tensors(folder / UPDATE)
        others = {name: tensor for name, tensor in tensors.items() if name != OWN_CHECKSUM}
        is_whole = tensors[OWN_CHECKSUM].tobytes() == _checksum(others).tobytes()
        is_fitting = tensors[OWN_RECIPE].tobytes() == _of_bundle(recipe, manifest).encode()
    except (OSError, TensorsError):
        return None
    return tensors if is_whole and is_fitting else None


def _of_bundle(recipe: str, manifest: Manifest) -> str:
    return json.dumps([recipe, [manifest.files[name].sha256 for name in OWN_FILES if name in manifest.files]])


def _checksum(tensors: Mapping[str, AnyArray]) -> AnyArray:
    digest = sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).data)
    return np.frombuffer(digest.digest(), np.uint8)
