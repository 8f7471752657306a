"""Converted models: a model is converted once on a machine, or only on another one, with PyTorch.

A converted model is a folder with the model part of a bundle. Its name has a digest of everything that it depends on.
It is in the user's cache; if its calibration texts are the user's own, it is in the unfinished bundle, which a
stopped run leaves for the next one. Where PyTorch is not installed, the digest cannot be computed, and a model of the
cache is found by its name and options. So is the default model in the package semsearch-model, on any machine.
"""

import errno
import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from semsearch.engine.bundle import MANIFEST, BundleError, Manifest, ModelInfo, read_manifest
from semsearch.indexing.bundles import take_model, write_model
from semsearch.indexing.cache import cache_folder
from semsearch.indexing.digests import digest_texts
from semsearch.indexing.errors import EXTRAS
from semsearch.indexing.models.calibration import CalibrationTexts, documentation_texts
from semsearch.indexing.models.converting import convert
from semsearch.indexing.models.source import DEFAULT_MODEL, RECIPE, Source
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.replacing import FINISHED
from semsearch.indexing.vectors.shards import name_model

MODEL_PACKAGE = "semsearch_model"  # the default model, converted: deploy/model/ makes its distribution semsearch-model
PACKAGES = ("numpy", "onnx", "onnxruntime", "optimum-onnx", "tokenizers", "torch", "transformers")
# Raise it with every change of the code after which a model is converted to other bytes.
# tests/conversion/test_convert.py finds a change after which it was not raised.
CONVERSION_VERSION = 1
# Name of a folder in a converted model and in an unfinished bundle: it has the model for passages, if that is another.
DOCUMENTS_MODEL = "documents"


def models_folder() -> Path:
    """Return the folder of the user's cache."""
    return cache_folder() / "models"


def cached_folder(source: Source, fresh: Path, own_texts: CalibrationTexts | None) -> Path:
    """Return where the model of a source is kept, also if it is not there yet.

    This is in the user's cache, or in the unfinished bundle `fresh` if the user's own texts calibrate the model. The
    name depends on all that changes the model: its files and settings, CONVERSION_VERSION, the versions of its
    libraries, and the calibration texts.
    """
    stated = json.dumps(asdict(source), sort_keys=True, default=lambda path: None)  # folders have no influence
    digest = hashlib.sha256(f"{CONVERSION_VERSION} {stated}".encode())
    for package in PACKAGES:
        digest.update(f"{package} {version(package)}".encode())
    folders = [one.folder for one in (source, source.documents) if one is not None]
    stated_in = [path for folder in folders for end in ("json", "txt") for path in sorted(folder.glob(f"*.{end}"))]
    for path in stated_in:
        digest.update(path.read_bytes())
    texts = own_texts or documentation_texts()
    digest.update(digest_texts([*texts.calibration, *texts.held_out]).tobytes())
    place = models_folder() if own_texts is None else fresh / FINISHED
    return place / f"{source.name.rpartition('/')[2]}-{digest.hexdigest()[:32]}"


def can_convert() -> bool:
    """Return whether the packages that convert a model are installed."""
    return all(find_spec(module) is not None for module in EXTRAS["export"])


def packaged_models() -> list[Path]:
    """Return the folder of the package semsearch-model, or nothing if that is not installed."""
    spec = find_spec(MODEL_PACKAGE)
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent]


def cached_models() -> list[Path]:
    """Return the folders of the models in the user's cache."""
    return [path.parent for path in models_folder().glob(f"*/{MANIFEST}")]


def find_converted(
    folders: Iterable[Path],
    name: str | None,
    revision: str | None,
    pooling: str | None,
    dimensions: int | None,
    prompts: Mapping[str, str | None],
) -> Path | None:
    """Return the first of these folders whose model has this name and these settings, None if there is none.

    A model that another version has converted is left out if this one cannot read it, or quantizes otherwise.
    """
    stated = {"name": name or DEFAULT_MODEL, "revision": revision, "pooling": pooling, "dim": dimensions}
    stated |= {"quantization": RECIPE}
    for folder in folders:
        try:
            model = read_manifest(folder).model
        except BundleError:
            continue
        is_it = all(value in (None, getattr(model, field)) for field, value in stated.items())
        if is_it and all(text in (None, model.prompts.get(role, "")) for role, text in prompts.items()):
            return folder
    return None


def make_model(
    source: Source, texts: CalibrationTexts, folder: Path, fresh: Path, on_progress: OnProgress = no_progress
) -> Manifest:
    """Convert a model, keep it in this folder, copy it into an unfinished bundle and return the manifest.

    Raises ModelError as `convert` does.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        made = Path(scratch) / folder.name
        made.mkdir()
        info: ModelInfo = convert("convert", source, texts, made, on_progress)
        if source.documents is not None:
            documents = made / DOCUMENTS_MODEL
            documents.mkdir()
            named: OnProgress = lambda step, share, texts=0: on_progress(f"{step} (documents)", share)  # noqa: E731
            described: ModelInfo = convert("convert", source.documents, texts, documents, named)
            info = replace(info, documents=name_model(write_model(documents, described)))
        write_model(made, info)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return _take(folder, fresh)


def take_cached(folder: Path | None, fresh: Path) -> Manifest | None:
    """Copy a converted model into an unfinished bundle and return the manifest; None if it is missing or damaged."""
    try:
        if folder is None:
            return None
        return _take(folder, fresh)
    except BundleError:
        return None


def _take(folder: Path, fresh: Path) -> Manifest:
    manifest = take_model(folder, fresh)
    if manifest.model.documents:
        (fresh / DOCUMENTS_MODEL).mkdir(exist_ok=True)
        take_model(folder / DOCUMENTS_MODEL, fresh / DOCUMENTS_MODEL)
    return manifest


def find_documents_model(fresh: Path, manifest: Manifest) -> tuple[Path, Manifest]:
    """Return the folder of the model that embeds passages, and its manifest; often it is the unfinished bundle's own.

    fresh is the unfinished folder, manifest that of its model.
    """
    if not manifest.model.documents:
        return fresh, manifest
    return fresh / DOCUMENTS_MODEL, read_manifest(fresh / DOCUMENTS_MODEL)


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


def require_own_documents_model(bundle: Path) -> None:
    """Raise BundleError if the bundle lacks the model that embedded its passages, so that it cannot embed others."""
    model = read_manifest(bundle).model
    if model.documents:
        raise BundleError(
            f"{bundle}: holds the model for queries of {model.name}, and its passages were embedded by another one; "
            f"expected a name that has both; state it again with --model"
        )
