"""Converted models in the user's cache: a model is converted once on a machine, or only on another one, with PyTorch.

A cached model is a folder with the model part of a bundle. Its name has a digest of everything that it depends on.
Where PyTorch is not installed, that cannot be computed, and a cached model is found by its name and options. Models
that were calibrated with other texts than Python's own documentation are not kept.
"""

import argparse
import errno
import hashlib
import json
import shutil
import tarfile
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from export.errors import EXTRAS
from export.files import FINISHED, flush
from export.index.indexer import check_checksum, take_model
from export.model.source import DEFAULT_MODEL, RECIPE, Source
from export.terminal import python_module
from function.commands.options import cache_folder
from function.engine.bundle import MANIFEST, BundleError, Manifest, read_manifest

PACKAGES = ("numpy", "onnx", "onnxruntime", "optimum-onnx", "tokenizers", "torch", "transformers")
MODEL_CODE = ("export/model", "export/corpus/python_*.py", "function/engine")
DOCUMENTS_MODEL = "documents"  # in a cached model: the folder of the model for passages


def digest_source(source: Source) -> "hashlib._Hash":
    """Return a digest of a model's files and settings, of the code that converts it, and of its libraries' versions."""
    stated = json.dumps(asdict(source), sort_keys=True, default=lambda path: None)  # folders have no influence
    digest = hashlib.sha256(stated.encode())
    for package in PACKAGES:
        digest.update(f"{package} {version(package)}".encode())
    root = Path(__file__).parents[2]
    code = [path for place in MODEL_CODE for path in [*root.glob(place), *root.glob(f"{place}/**/*.py")]]
    folders = [one.folder for one in (source, source.documents) if one is not None]
    stated_in = [path for folder in folders for end in ("json", "txt") for path in sorted(folder.glob(f"*.{end}"))]
    for path in [*sorted(path for path in code if path.is_file()), *stated_in]:
        digest.update(path.read_bytes())
    return digest


def models_folder() -> Path:
    """Return the folder of the cached models."""
    return cache_folder() / "models"


def cached_folder(source: Source) -> Path:
    """Return where the model of a source is kept, also if it is not there yet."""
    return models_folder() / f"{source.name.rpartition('/')[2]}-{digest_source(source).hexdigest()[:32]}"


def can_convert() -> bool:
    """Return whether the packages that convert a model are installed."""
    return all(find_spec(module) is not None for module in EXTRAS["export"])


def find_cached(options: argparse.Namespace) -> Path | None:
    """Return a cached model that has the name and the options of a command line, None if there is none."""
    stated = {"name": options.model or DEFAULT_MODEL, "revision": options.revision, "pooling": options.pooling}
    stated |= {"dim": options.dimensions, "quantization": RECIPE}
    prompts = {"query": options.query_prompt, "document": options.document_prompt}
    for path in models_folder().glob(f"*/{MANIFEST}"):
        model = read_manifest(path.parent).model
        is_it = all(value in (None, getattr(model, name)) for name, value in stated.items())
        if is_it and all(text in (None, model.prompts.get(role, "")) for role, text in prompts.items()):
            return path.parent
    return None


def take_cached(folder: Path, fresh: Path) -> Manifest | None:
    """Copy a cached model into an unfinished bundle and return its manifest; None if it is missing or damaged."""
    if not folder.is_dir():
        return None
    kept = fresh / FINISHED / f"model-{folder.name}"  # where find_documents_model looks
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    try:
        return take_model(kept, fresh)
    except BundleError:
        shutil.rmtree(kept)
        return None


def keep_model(fresh: Path, folder: Path) -> None:
    """Copy the model that an unfinished bundle keeps into the cache."""
    (made,) = (fresh / FINISHED).glob("model-*")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        copy = Path(shutil.copytree(made, Path(scratch) / folder.name))
        flush(copy)
        shutil.rmtree(folder, ignore_errors=True)
        copy.rename(folder)


def pack(file: Path) -> None:
    """Write all cached models into a tar file."""
    if not list(models_folder().glob("*")):
        raise FileNotFoundError(errno.ENOENT, "there is no model; run `semsearch index` first", str(models_folder()))
    with tarfile.open(file, "w") as archive:
        archive.add(models_folder(), ".")


def unpack(file: Path) -> None:
    """Add the models of a tar file to the cache. Each is checked against its manifest when it is used."""
    try:
        with tarfile.open(file) as archive:
            archive.extractall(models_folder(), filter="data")
    except tarfile.TarError as error:
        expected = f"{error}, expected a file that `semsearch model pack` has written"
        raise OSError(errno.EINVAL, expected, str(file)) from error


def find_documents_model(fresh: Path, manifest: Manifest) -> tuple[Path, Manifest]:
    """Return the folder of the model that embeds passages, and its manifest: the bundle's own, or a cached one.

    fresh is the unfinished folder, manifest that of its model.
    Raises BundleError if the cached model is damaged.
    """
    if not manifest.model.documents:
        return fresh, manifest
    (folder,) = (fresh / FINISHED).glob(f"model-*/{DOCUMENTS_MODEL}")
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
