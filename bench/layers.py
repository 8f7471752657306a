"""What the image's layers hold over its base, in megabytes unpacked: `docker save` read as tar files."""

import argparse
import json
import subprocess
import tarfile
import tempfile
from typing import IO

from bench.bundles import make_bundle
from bench.data import add_data_argument
from bench.image import IMAGE, base_image, build_image, docker, image_python
from bench.needs import require_docker
from bench.provenance import make_provenance
from bench.report import report
from bench.texts import read_texts

WRITES: tuple[str, ...] = ("layers",)
MEASURES: tuple[str, ...] = ("function", "deploy", "Dockerfile", "requirements.txt")
# the Dockerfile's last COPY lines in their order; those of the bundle name their files
LAYERS = (
    "dependencies, trimmed and compiled, with bytecode for the base",
    "function, with all that it imports in one file",
    "model and tokenizer",
    "corpus: index, passages, manifest",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=30_000, help="texts in the index")


def run(options: argparse.Namespace) -> int:
    """Build the image and report."""
    require_docker()
    texts = read_texts(options.data, options.rows)
    build_image(options.work, make_bundle(options.work, texts))
    with tempfile.TemporaryFile() as file:
        subprocess.run(["docker", "save", IMAGE], stdout=file, check=True, timeout=900)
        sizes = megabytes_of_layers(file)
    below = len(json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", base_image())))
    ours = sizes[below:]
    if len(ours) != len(LAYERS):
        raise SystemExit(
            f"{IMAGE}: {len(ours)} layers over its base, expected {len(LAYERS)}; correct LAYERS in bench/layers.py"
        )
    rows = [(name, f"{size:.0f}") for name, size in zip(LAYERS, ours, strict=True)]
    rows.append(("together", f"{sum(ours):.0f}"))
    source = make_provenance(texts.description(), image_python())
    details = {"megabytes": dict(zip(LAYERS, ours, strict=True)), "megabytes_of_the_base": sum(sizes[:below])}
    report("layers", ("layer", "MB unpacked"), rows, details, source)
    return 0


def megabytes_of_layers(saved: IO[bytes]) -> list[float]:
    """Return the unpacked megabytes of each layer of a saved image, the lowest first."""
    saved.seek(0)
    with tarfile.open(fileobj=saved) as image:
        (manifest,) = json.load(member(image, "manifest.json"))
        return [megabytes(member(image, path)) for path in manifest["Layers"]]


def megabytes(layer: IO[bytes]) -> float:
    """Return how long the files of a layer are together."""
    with tarfile.open(fileobj=layer) as files:
        return sum(file.size for file in files) / 1e6


def member(archive: tarfile.TarFile, path: str) -> IO[bytes]:
    """Return the content of a file in an archive. Raises KeyError if the archive does not hold it."""
    content = archive.extractfile(path)
    if content is None:
        raise KeyError(f"{path} is not a file")
    return content
