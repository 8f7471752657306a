"""Where an index is: a bundle that a user names, or one in the cache that is made of a folder of documents."""

import os
import sys
from hashlib import sha256
from pathlib import Path

from function.commands.options import cache_folder
from function.engine.bundle import FORMAT_VERSION, MANIFEST, MODEL

AGENTS = ("claude-code", "claude-desktop", "cursor", "vscode")
MODULE = [sys.executable, "-P", "-m"]  # -P: the current folder can hold a folder export/ or a file function.py


def is_bundle(path: str | Path) -> bool:
    """Return whether an export has made this folder."""
    return (Path(path) / MANIFEST).is_file() and (Path(path) / MODEL).is_file()


def bundle_of(path: Path) -> Path:
    """Return the folder itself if it is a bundle, or else that of its index in the cache."""
    whole = path.resolve()
    digest = sha256(os.fsencode(whole)).hexdigest()[:12]
    return path if is_bundle(path) else cache_folder() / "indexes" / f"{whole.name}-{digest}-{FORMAT_VERSION}"


def index_command(path: Path, bundle: Path) -> list[str]:
    """Return the command that makes or updates the index of documents, whose addresses are those of the files."""
    folder = path if path.is_dir() else path.parent
    return [*MODULE, "semsearch", "index", str(path), "--out", str(bundle), "--base-url", folder.resolve().as_uri()]
