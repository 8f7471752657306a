"""What decides, beside the files, what is read of documents."""

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from sys import version_info

from semsearch.indexing.documents.folder import anchors_of, folder_of
from semsearch.indexing.documents.reading import Reading
from semsearch.indexing.errors import EXTRAS

# Raise this number when a reader returns something else for the same file: an update then reads all documents again.
READERS_VERSION = 5
DISTRIBUTIONS = {"yaml": "PyYAML"}  # modules of packages with another name


def key_of_reading(path: Path, reading: Reading) -> str:
    """Return a text that is equal as long as a document of the path is read as before.

    Left out are options that decide only which files are read. Python has its own part in reading: the data of Unicode.
    """
    options = reading.options
    stated = {
        "readers": READERS_VERSION,
        "python": version_info[:2],
        "packages": _versions(),
        "tokenizer": reading.splitter.tokenizer_sha256,
        "passages": reading.splitter.sizes,
        "base_url": options.base_url,
        "anchors": anchors_of(folder_of(path), options),
        "drafts": options.drafts,
    }
    return json.dumps(stated)


@cache
def _versions() -> dict[str, str]:
    packages = ["tokenizers", *(DISTRIBUTIONS.get(module, module) for module in EXTRAS["documents"])]
    return {package: version(package) for package in packages}
