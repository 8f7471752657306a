"""The model that embeds the passages, if it is not the one that the bundle has for queries.

The export keeps it with the cached model and deletes it in the end, so a bundle alone cannot embed new passages.
"""

from pathlib import Path

from export.files.replace import FINISHED
from export.index.indexer import check_checksum
from export.terminal import python_module
from function.engine.bundle import BundleError, Manifest, read_manifest

DOCUMENTS = "documents"  # in a cached model: the folder of the model for passages


def find_documents_model(fresh: Path, manifest: Manifest) -> tuple[Path, Manifest]:
    """Return the folder of the model that embeds passages, and its manifest: the bundle's own, or a cached one.

    fresh is the unfinished folder, manifest that of its model.
    Raises BundleError if the cached model is damaged.
    """
    if not manifest.model.documents:
        return fresh, manifest
    (folder,) = (fresh / FINISHED).glob(f"model-*/{DOCUMENTS}")
    found = read_manifest(folder)
    for name in found.files:
        check_checksum(folder, name, found)
    return folder, found


def require_own_documents_model(bundle: Path) -> None:
    """Raise BundleError if the bundle lacks the model that embedded its passages, so that it cannot embed others."""
    model = read_manifest(bundle).model
    if model.documents:
        command = python_module("export", "MODEL", "--update", bundle, "--corpus", "FILE", "--out", bundle)
        raise BundleError(
            f"{bundle}: holds the model for queries of {model.name}, and its passages were embedded by another one; "
            f"expected MODEL, which has both; name it again: {command}"
        )
