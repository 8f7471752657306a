"""Passages become vectors and texts on disk: a bundle's files, written into a folder, the manifest last."""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from export.corpus import Corpus
from export.recall import LEAST_RECALL, measure_own_recall
from function.engine import bundle as layout
from function.engine.arrays import AnyArray, Array
from function.engine.bundle import BundleError, IndexInfo, Manifest, ModelInfo, describe_file
from function.engine.embedder import Embedder
from function.engine.index import Bits, signs
from function.engine.passages import passage_tensors
from function.engine.quantization import Codes, Embeddings, Scales, quantize

TEXTS_PER_CHUNK = 4096  # sorted by length together: enough that a batch holds like lengths, little enough to hold
CHARACTERS_PER_CHUNK = 4_000_000  # the tokenizer takes 37 bytes a character, also for what it then cuts off
LAYOUT = "int8 codes, a scale a row, sign bits"
LAYOUT_WITHOUT_SIGNS = "int8 codes, a scale a row; no sign bits, which would find too few neighbours"


def embed_documents(
    embedder: Embedder, texts: list[str], progress: Callable[[int], None] = lambda texts: None
) -> Iterator[tuple[Embeddings, Array[np.bool_]]]:
    """Embed the texts on all cores; yield chunks: unit embeddings (n, dim) float32, and which were truncated, (n,).

    `progress` is told the number of texts done since the last call, batch by batch: a chunk of long texts may take
    minutes.
    """

    def run(embed: Callable[[list[int]], Embeddings], batches: Sequence[list[int]]) -> Iterator[Embeddings]:
        for batch, embeddings in zip(batches, pool.map(embed, batches), strict=True):
            progress(len(batch))
            yield embeddings

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for chunk in _chunks(texts):
            tokens = embedder.tokenize(chunk, role="document")
            yield embedder.embed(tokens, run), np.array([one.is_truncated for one in tokens], bool)


def _chunks(texts: list[str]) -> Iterator[list[str]]:
    """Cut the texts into lists of TEXTS_PER_CHUNK and CHARACTERS_PER_CHUNK at most; a longer text is one alone."""
    begin = characters = 0
    for end, text in enumerate(texts):
        if end > begin and (end - begin == TEXTS_PER_CHUNK or characters + len(text) > CHARACTERS_PER_CHUNK):
            yield texts[begin:end]
            begin, characters = end, 0
        characters += len(text)
    if begin < len(texts):
        yield texts[begin:]


def embed_corpus(
    embedder: Embedder, texts: list[str], progress: Callable[[int], None] = lambda texts: None
) -> tuple[Codes, Scales, int]:
    """Return the index's rows, codes (n, dim) int8 and scales (n,) float32, and how many texts were truncated.

    Equal texts are embedded once, and so have equal rows: in another batch the last bits would be others, and the rows
    would no longer be found in the order of the corpus.
    `progress` is told the number of texts done since the last call.
    """
    places: dict[str, int] = {}
    row_of_text = np.array([places.setdefault(text, len(places)) for text in texts], np.intp)
    copies = np.bincount(row_of_text, minlength=len(places))
    codes = np.empty((len(places), embedder.model.dim), np.int8)
    scales = np.empty(len(places), np.float32)
    truncated = row = 0
    if len(places) < len(texts):
        progress(len(texts) - len(places))
    for embeddings, is_truncated in embed_documents(embedder, list(places), progress):
        rows = slice(row, row + len(embeddings))
        codes[rows], scales[rows] = quantize(embeddings)
        truncated += int(copies[rows][is_truncated].sum())
        row += len(embeddings)
    if len(places) == len(texts):
        return codes, scales, truncated
    return codes[row_of_text], scales[row_of_text], truncated


def write_model(folder: Path, model: ModelInfo) -> Manifest:
    """Write the manifest of a folder that holds a model and a tokenizer, and give it."""
    files = {name: describe_file(folder / name) for name in (layout.MODEL, layout.TOKENIZER)}
    manifest = Manifest(model=model, index=None, files=files)
    _write_manifest(folder, manifest)
    return manifest


def write_index(folder: Path, manifest: Manifest, corpus: Corpus, codes: Codes, scales: Scales, name: str) -> Manifest:
    """Write the index and the passages beside the model, then the manifest, and give it.

    The index holds sign bits if a search that begins with them finds what exact search does; otherwise it is scanned
    whole in 8 bit.
    """
    bits: Bits | None = signs(codes)
    if measure_own_recall(codes, scales, bits) < LEAST_RECALL:
        bits = None
    tensors: dict[str, AnyArray] = {"codes": codes, "scales": scales}
    if bits is not None:
        tensors["bits"] = bits
    save_file(tensors, folder / layout.INDEX)
    save_file(passage_tensors(corpus.texts, corpus.ids, corpus.metadata), folder / layout.PASSAGES)
    for file in (layout.INDEX, layout.PASSAGES):
        (folder / file).chmod(0o644)  # safetensors lets only the owner read, and a container's user is another
    files = {file: describe_file(folder / file) for file in (layout.INDEX, layout.PASSAGES)}
    index = IndexInfo(
        rows=len(codes),
        layout=LAYOUT if bits is not None else LAYOUT_WITHOUT_SIGNS,
        model_sha256=manifest.files[layout.MODEL].sha256,
        tokenizer_sha256=manifest.files[layout.TOKENIZER].sha256,
        corpus=name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    manifest = replace(manifest, index=index, files=manifest.files | files)
    _write_manifest(folder, manifest)
    return manifest


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / layout.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")


def take_model(bundle: Path, folder: Path) -> Manifest:
    """Copy a bundle's model and tokenizer into the folder and give the manifest, without an index.

    Raises BundleError if the bundle or its model is not whole.
    """
    manifest = layout.read_manifest(bundle)
    for name in (layout.MODEL, layout.TOKENIZER):
        layout.check_size(bundle, name, manifest)
        shutil.copyfile(bundle / name, folder / name)
    taken = write_model(folder, manifest.model)
    for name, found in taken.files.items():
        if found != manifest.files[name]:
            raise BundleError(
                f"{bundle / name}: sha256 {found.sha256[:12]}, the manifest says {manifest.files[name].sha256[:12]}; "
                "it is damaged: run `python -m export` again, with the model"
            )
    return taken
