"""The rows of a bundle as vectors of Amazon S3 Vectors, checked against the limits of the service.

The limits are those of https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-vectors-limitations.html. That page
does not say how bytes of metadata are counted; here the bytes of compact JSON in UTF-8 count.
"""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from export.index.columns import stored_values
from function.engine.bundle import COLUMNS, INDEX, PASSAGES, BundleError, Manifest
from function.engine.passages import Passages
from function.engine.quantization import dequantize
from function.engine.semantic.index import Index
from function.engine.semantic.s3_vectors import (
    EMPTY,
    ID,
    LARGEST_NUMBER,
    METADATA,
    NOT_FILTERED,
    TEXT,
    key_of,
    metadata_value,
)

MOST_DIMENSIONS = 4_096
MOST_KEYS = 50  # metadata keys of a vector
MOST_BYTES, MOST_FILTERABLE_BYTES = 40 * 1024, 2 * 1024  # bytes of a vector's metadata
LONGEST_NAME = 63  # characters of a metadata key
ROWS_AT_ONCE = 4_096
DIGITS = 16  # hexadecimal digits of a SHA-256 with which all keys of this bundle begin, and no others

Vector = dict[str, Any]


class BundleVectors:
    """A bundle's rows, each read when it is used."""

    def __init__(self, bundle: Path, manifest: Manifest, keeps_texts: bool) -> None:
        """Open the files. With keeps_texts, the vectors get the metadata that filters compare, but no texts.

        Raises TensorsError if the files are damaged.
        """
        assert manifest.index is not None
        self.rows, self.dim, self.kinds = manifest.index.rows, manifest.model.dim, manifest.index.columns
        parts = (manifest.files[name].sha256 for name in (INDEX, PASSAGES, COLUMNS) if name in manifest.files)
        # vectors without texts must not be taken for those of the same bundle with texts
        self.keys = sha256("".join((*parts, *(["no texts"] if keeps_texts else []))).encode()).hexdigest()[:DIGITS]
        self._keeps_texts = keeps_texts
        self._bundle = bundle
        self._index = Index.open(bundle / INDEX, manifest.index.stages)
        self._passages = Passages(bundle / PASSAGES)

    def vectors(self, rows: list[int]) -> Iterator[Vector]:
        """Yield the vectors of some rows, as PutVectors takes them."""
        embeddings = dequantize(*self._index.codes_of(np.array(rows, np.intp)))
        for row, embedding in zip(rows, embeddings.tolist(), strict=True):
            filterable, shown = self._metadata(row)
            yield {"key": key_of(self.keys, row), "data": {"float32": embedding}, "metadata": filterable | shown}

    def check(self) -> Iterator[float]:
        """Check every row, and yield the share that is done. Raises BundleError, with the row's number."""
        self._check_columns()
        for begin in range(0, self.rows, ROWS_AT_ONCE):
            rows = np.arange(begin, min(begin + ROWS_AT_ONCE, self.rows))
            zeros = np.flatnonzero(self._index.codes_of(rows)[1] == 0)
            if len(zeros):
                self._refuse(begin + int(zeros[0]), "its embedding is all zeros", "S3 Vectors takes none; leave it out")
            for row in rows.tolist():
                self._check_row(row)
            yield (begin + len(rows)) / self.rows

    def _check_columns(self) -> None:
        if self.dim > MOST_DIMENSIONS:
            raise BundleError(f"{self._bundle}: {self.dim} dimensions, S3 Vectors takes at most {MOST_DIMENSIONS}")
        most = MOST_KEYS - len(NOT_FILTERED) - 1
        advice = "export the texts again with --column NAME=none"
        if len(self.kinds) > most:
            raise BundleError(f"{self._bundle}: {len(self.kinds)} columns, expected at most {most}; {advice}")
        for name in self.kinds:
            if name in (*NOT_FILTERED, EMPTY) or name.startswith("$") or len(name) > LONGEST_NAME:
                expected = f"at most {LONGEST_NAME} characters, no $ at its beginning, and no name that is in use"
                raise BundleError(f"{self._bundle}: the column {name!r}, expected {expected}; {advice}")

    def _check_row(self, row: int) -> None:
        filterable, shown = self._metadata(row)
        for name, value in filterable.items():
            if isinstance(value, int | float) and abs(value) > LARGEST_NUMBER:
                self._refuse(row, f"{name} is {value}", f"numbers up to {LARGEST_NUMBER}; use --column {name}=string")
        found, total = _json_bytes(filterable), _json_bytes(filterable | shown)
        if found > MOST_FILTERABLE_BYTES:
            advice = "leave long columns out of filters with --column NAME=none"
            self._refuse(row, f"{found} bytes of columns for filters", f"at most {MOST_FILTERABLE_BYTES}; {advice}")
        if total > MOST_BYTES:
            advice = "split long texts into several rows"
            self._refuse(row, f"{total} bytes of text and metadata", f"at most {MOST_BYTES}; {advice}")

    def _refuse(self, row: int, found: str, expected: str) -> None:
        raise BundleError(f"{self._bundle}: row {row} (id {self._passages.id(row)}): {found}, expected {expected}")

    def _metadata(self, row: int) -> tuple[Vector, Vector]:
        """Return the metadata that filters compare, and the metadata that a hit shows, if the service has them."""
        passage = self._passages[row]
        if self._keeps_texts:
            return filterable_metadata(passage.metadata, self.kinds), {}
        shown = {TEXT: passage.text, ID: passage.id}
        if passage.metadata:
            shown[METADATA] = json.dumps(passage.metadata, ensure_ascii=False)
        return filterable_metadata(passage.metadata, self.kinds), shown


def filterable_metadata(metadata: Mapping[str, Any], kinds: Mapping[str, str]) -> Vector:
    """Return the part of a row's metadata that filters compare, typed; EMPTY names the columns with an empty list."""
    found: Vector = {}
    for name, kind in kinds.items():
        if name not in metadata:
            continue
        stored = stored_values(kind, metadata[name])
        assert stored is not None  # the export checked it
        values = [metadata_value(kind, value) for value in stored]
        if kind != "list":
            (found[name],) = values
        elif values:
            found[name] = values
        else:
            found.setdefault(EMPTY, []).append(name)
    return found


def _json_bytes(metadata: Vector) -> int:
    return len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
