"""The rows of an older bundle, for an export that embeds only the other texts."""

import json
from pathlib import Path

import numpy as np

from export.corpus.digests import Places, digest_texts
from export.corpus.embedded import EmbeddedTexts
from export.corpus.passages import stored_columns
from export.files.tensor_file import release
from export.index.indexer import check_checksum
from export.index.shards import KnownRows, Truncated, name_model
from function.engine.bundle import INDEX, PASSAGES, TRUNCATED, BundleError, Manifest, open_bundle, read_manifest
from function.engine.quantization import Codes, Scales
from function.engine.semantic.index import Index
from function.engine.tensors import map_tensors


def open_older_rows(bundle: Path, manifest: Manifest) -> KnownRows:
    """Return the rows of a bundle; manifest describes the model that the new texts will be embedded with.

    The rows stay readable when the bundle's files are replaced.
    Raises BundleError or TensorsError if the bundle is damaged, if it was embedded by another model, or if another
    export replaces it now.
    """
    older = open_bundle(bundle)
    assert older.index is not None  # open_bundle checked it
    if older.index.vectors is not None:
        raise BundleError(f"{bundle}: its texts are in S3 Vectors; name the bundle that was published there")
    if name_model(older) != name_model(manifest):
        raise BundleError(
            f"{bundle}: was embedded by the model {older.model.name} with {_shown(older)}, the new texts would be by "
            f"{manifest.model.name} with {_shown(manifest)}; expected the same model; leave MODEL out to go on with "
            "the bundle's, or leave --update out to embed all texts"
        )
    for name in (INDEX, PASSAGES):
        check_checksum(bundle, name, older)
    Index.open(bundle / INDEX, older.index.stages)  # checks the tensors
    tensors = map_tensors(bundle / INDEX)
    is_truncated = _read_truncated(bundle, older, older.index.rows)
    texts, _, metadata = stored_columns(bundle / PASSAGES)
    digests = digest_texts(EmbeddedTexts(texts, metadata) if older.index.heading_prefix else texts)
    if read_manifest(bundle) != older:
        raise BundleError(f"{bundle}: was replaced while it was read; run the command again when no other export runs")

    def read(rows: Places) -> tuple[Codes, Scales]:
        found = tensors["codes"][rows], tensors["scales"][rows]
        release(tensors["codes"])  # otherwise the whole index would be in memory
        return found

    return KnownRows(digests, is_truncated, read)


def _read_truncated(bundle: Path, manifest: Manifest, rows: int) -> Truncated:
    """Return which texts of a bundle are truncated, (rows,). Raises BundleError if the file is damaged."""
    is_truncated = np.zeros(rows, bool)
    if TRUNCATED in manifest.files:
        check_checksum(bundle, TRUNCATED, manifest)
        with (bundle / TRUNCATED).open(encoding="utf-8") as file:
            is_truncated[[json.loads(line)["index"] for line in file]] = True
    return is_truncated


def _shown(manifest: Manifest) -> str:
    return f"sha256 {manifest.files['model.ort'].sha256[:12]}"
