"""What decides, beside the files, what is read of documents."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from sys import version_info
from typing import Any

from semsearch.indexing.documents.folder import placed_options
from semsearch.indexing.documents.reading import Reading
from semsearch.indexing.errors import EXTRAS

# Raise this number when a reader returns something else for the same file: an update then reads all documents again.
READERS_VERSION = 7
DISTRIBUTIONS = {"yaml": "PyYAML"}  # modules of packages with another name


def key_of_readings(readings: Sequence[tuple[Path, Reading]]) -> str:
    """Return a text that is equal as long as a document of the paths is read as before.

    Left out are options that decide only which files are read. Python has its own part in reading: the data of Unicode.
    """
    return json.dumps([_stated(path, reading) for path, reading in readings])


def _stated(path: Path, reading: Reading) -> dict[str, Any]:
    options = placed_options(path, reading)
    return {
        "readers": READERS_VERSION,
        "python": version_info[:2],
        "packages": _versions(),
        "tokenizer": reading.splitter.tokenizer_sha256,
        "passages": reading.splitter.sizes,
        "base_url": options.base_url,
        "anchors": options.anchors,
        "drafts": options.drafts,
    }


@cache
def _versions() -> dict[str, str]:
    packages = ["tokenizers", *(DISTRIBUTIONS.get(module, module) for module in EXTRAS["documents"])]
    return {package: version(package) for package in packages}
