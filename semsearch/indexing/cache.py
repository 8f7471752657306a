"""The user's cache: converted models, and the indexes of folders of documents."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ~/.cache/semsearch, or `semsearch` in the folder that XDG_CACHE_HOME names."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "semsearch"
