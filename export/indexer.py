"""The files of a bundle, written into a folder: those of the model, those of the corpus, and the manifest last."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from export.columns import NONE, column_tensors
from export.corpus import Corpus
from export.keywords import KeywordOptions, keyword_tensors
from export.mapped import release
from export.recall import LEAST_RECALL, measure_own_recall
from export.tensor_file import save_tensors
from function.engine import bundle as layout
from function.engine.arrays import AnyArray, Array
from function.engine.bundle import BundleError, IndexInfo, Manifest, ModelInfo, describe_file
from function.engine.index import signs
from function.engine.quantization import Codes, Scales

KEYWORDS_BY_DEFAULT = KeywordOptions()
LAYOUT = "int8 codes, a scale a row, sign bits"
LAYOUT_WITHOUT_SIGNS = "int8 codes, a scale a row; no sign bits, which would find too few neighbours"
ROWS_AT_ONCE = 65_536


def write_model(folder: Path, model: ModelInfo) -> Manifest:
    """Write the manifest of a folder that holds a model and a tokenizer, and return it."""
    files = {name: describe_file(folder / name) for name in (layout.MODEL, layout.TOKENIZER)}
    manifest = Manifest(model=model, index=None, files=files)
    _write_manifest(folder, manifest)
    return manifest


def write_index(
    folder: Path,
    manifest: Manifest,
    corpus: Corpus,
    codes: Codes,
    scales: Scales,
    name: str,
    keywords: KeywordOptions | None = KEYWORDS_BY_DEFAULT,
) -> Manifest:
    """Write the index, columns and keywords beside the model and the passages, then the manifest, and return that.

    codes (rows, dim) int8 and scales (rows,) float32 are in the corpus's order, and may be memory-mapped.
    keywords is None for a bundle without them.
    """
    tensors = index_tensors(codes, scales)
    save_tensors(folder / layout.INDEX, tensors)
    written = [layout.INDEX, layout.PASSAGES]
    columns = {name: kind for name, kind in corpus.columns.items() if kind != NONE}
    if columns:
        save_tensors(folder / layout.COLUMNS, column_tensors(map(json.loads, corpus.metadata), columns))
        written.append(layout.COLUMNS)
    postings, described = keyword_tensors(corpus.texts, keywords) if keywords is not None else ({}, None)
    if described is not None:
        save_tensors(folder / layout.KEYWORDS, postings)
        written.append(layout.KEYWORDS)
    files = {file: describe_file(folder / file) for file in written}
    index = IndexInfo(
        rows=len(codes),
        layout=LAYOUT if "bits" in tensors else LAYOUT_WITHOUT_SIGNS,
        model_sha256=manifest.files[layout.MODEL].sha256,
        tokenizer_sha256=manifest.files[layout.TOKENIZER].sha256,
        corpus=name,
        columns=columns,
        keywords=described,
    )
    manifest = replace(manifest, index=index, files=manifest.files | files)
    _write_manifest(folder, manifest)
    return manifest


def index_tensors(codes: Codes, scales: Scales) -> dict[str, AnyArray]:
    """Return the tensors of an index.safetensors of these rows, which are in the corpus's order.

    The index holds sign bits if a search that begins with them reaches LEAST_RECALL. Without sign bits a search scans
    all codes.
    """
    bits = np.empty((len(codes), -(-codes.shape[1] // 8)), np.uint8)
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(begin, begin + ROWS_AT_ONCE)
        bits[rows] = signs(codes[rows])
        release(codes)
    tensors: dict[str, AnyArray] = {"codes": codes, "scales": scales}
    return tensors | ({"bits": bits} if measure_own_recall(codes, scales, bits) >= LEAST_RECALL else {})


def stored_rows(tensors: Mapping[str, AnyArray], rows: Array[np.intp] | slice) -> tuple[Codes, Scales]:
    """Return the codes and the scales of some of the corpus's rows from the tensors of an index.safetensors."""
    return tensors["codes"][rows], tensors["scales"][rows]


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / layout.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")


def take_model(bundle: Path, folder: Path) -> Manifest:
    """Copy the model and the tokenizer of a bundle into a folder, and return the manifest written there.

    Raises BundleError if the bundle's manifest, model or tokenizer is damaged.
    """
    manifest = layout.read_manifest(bundle)
    for name in (layout.MODEL, layout.TOKENIZER):
        layout.check_size(bundle, name, manifest)
        check_checksum(bundle, name, manifest)
        shutil.copyfile(bundle / name, folder / name)
    return write_model(folder, manifest.model)


def check_checksum(bundle: Path, name: str, manifest: Manifest) -> None:
    """Raise BundleError if a file of a bundle is damaged, which reads all of it."""
    found, expected = describe_file(bundle / name).sha256, manifest.files[name].sha256
    if found != expected:
        raise BundleError(
            f"{bundle / name}: sha256 {found[:12]}, the manifest says {expected[:12]}; it is damaged: run "
            "`python -m export` again, with the model"
        )
