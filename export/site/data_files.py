"""The files of a site that hold data: gzipped, and named by the hash of their bytes.

A static host needs no configuration for them: it serves them as plain bytes, and the code of the page unpacks them. The
bytes behind a name never change, so a browser can keep each file for good.
"""

import hashlib
import zlib
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np

from export.files.tensor_file import save_tensors
from function.engine.arrays import AnyArray

FOLDER = "data"
GZIP = 16 + zlib.MAX_WBITS  # selects zlib's gzip format, without a time in the header: the same bytes each time
HASH = 16  # hexadecimal digits of a hash in a name


class DataFiles:
    """The data files of one site; `listed` has the path, the bytes and the SHA-256 of each by its name."""

    def __init__(self, site: Path) -> None:
        """Take the site's folder."""
        self._site = site
        self.listed: dict[str, dict[str, str | int]] = {}
        (site / FOLDER).mkdir()

    def add(self, name: str, content: bytes, level: int = 9) -> None:
        """Write one file."""
        packer = zlib.compressobj(level, zlib.DEFLATED, GZIP)
        packed = packer.compress(content) + packer.flush()
        digest = hashlib.sha256(packed).hexdigest()
        path = f"{FOLDER}/{name}-{digest[:HASH]}.bin"
        (self._site / path).write_bytes(packed)
        self.listed[name] = {"path": path, "bytes": len(packed), "sha256": digest}

    def add_tensors(self, name: str, tensors: dict[str, AnyArray]) -> None:
        """Write tensors as one safetensors file. Offsets become 32 bit, which JavaScript reads as numbers."""
        narrow = {
            key: tensor.astype(np.uint32) if _is_offset(key, tensor) else tensor for key, tensor in tensors.items()
        }
        with NamedTemporaryFile() as file:
            save_tensors(Path(file.name), narrow)
            self.add(name, Path(file.name).read_bytes())

    def bytes_of(self, *names: str) -> int:
        """Return the bytes of some files together."""
        return sum(int(self.listed[name]["bytes"]) for name in names)


def _is_offset(name: str, tensor: AnyArray) -> bool:
    return tensor.dtype == np.uint64 and name.endswith("offsets")
