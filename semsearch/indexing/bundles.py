"""Write the models and the manifest of a bundle, which it has before its texts, and copy models from another bundle."""

import os
import shutil
from pathlib import Path

from semsearch.engine import bundle as layout
from semsearch.engine.bundle import FileInfo, Manifest, ModelInfo, RerankInfo, describe_file

KNOWN_FILES: dict[tuple[int, ...], FileInfo] = {}  # by the status of a file
MOST_KNOWN_FILES = 64


def write_model(folder: Path, model: ModelInfo, rerank: RerankInfo | None = None) -> Manifest:
    """Write the manifest of a folder that holds a model, a tokenizer and perhaps a reranker, and return it."""
    names = [layout.MODEL, layout.TOKENIZER]
    if rerank is not None:
        names += [name for name in (layout.RERANK, layout.RERANK_TOKENIZER) if (folder / name).exists()]
    files = {name: describe(folder / name) for name in names}
    manifest = Manifest(model=model, corpus_or_none=None, files=files, rerank=rerank)
    write_manifest(folder, manifest)
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder, when all its files are there."""
    (folder / layout.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")


def take_model(bundle: Path, folder: Path) -> Manifest:
    """Copy model, tokenizer and reranker of a bundle into a folder, and return the manifest written there.

    Raises BundleError if the bundle's manifest or one of these files is damaged.
    """
    manifest = layout.read_manifest(bundle)
    for name in (layout.MODEL, layout.TOKENIZER):
        take(bundle, manifest, name, folder / name)
    return take_reranker(bundle, folder, write_model(folder, manifest.model))


def take_reranker(bundle: Path, folder: Path, manifest: Manifest) -> Manifest:
    """Copy the reranker of a bundle, if it has one, beside the model in a folder, and return the folder's manifest.

    manifest is that of the folder until now. Raises BundleError if the bundle's manifest or a file is damaged.
    """
    older = layout.read_manifest(bundle)
    if older.rerank is None:
        return manifest
    take(bundle, older, layout.RERANK, folder / layout.RERANK)
    own = layout.RERANK_TOKENIZER if layout.RERANK_TOKENIZER in older.files else layout.TOKENIZER
    if older.files[own].sha256 != manifest.files[layout.TOKENIZER].sha256:
        take(bundle, older, own, folder / layout.RERANK_TOKENIZER)
    return write_model(folder, manifest.model, older.rerank)


def take(bundle: Path, manifest: Manifest, name: str, copy: Path) -> None:
    """Copy a file of a bundle. Raises BundleError if it is damaged.

    The unfinished folder of the same bundle gets a link to the file, which is quicker.
    """
    check_file(bundle, name, manifest)
    if not copy.parent.parent.samefile(bundle) or not _link(bundle / name, copy):
        shutil.copyfile(bundle / name, copy)


def check_file(bundle: Path, name: str, manifest: Manifest) -> None:
    """Check the length and the checksum of a file. Raises BundleError if they are not those of the manifest.

    A file that `describe` has read is not read again while its size, its inode and its time stay the same.
    """
    if (bundle / name).exists() and describe(bundle / name) == manifest.files.get(name):
        return
    layout.check_file(bundle, name, manifest)


def describe(path: Path) -> FileInfo:
    """Return the length and the checksum of a file. It is read again only if its inode, size or time changes."""
    status = path.stat()
    key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    if key not in KNOWN_FILES:
        if len(KNOWN_FILES) >= MOST_KNOWN_FILES:
            KNOWN_FILES.clear()
        KNOWN_FILES[key] = describe_file(path)
    return KNOWN_FILES[key]


def _link(file: Path, copy: Path) -> bool:
    """Return whether a link to the file could be made: some file systems have none."""
    try:
        os.link(file, copy)
    except OSError:
        return False
    return True
