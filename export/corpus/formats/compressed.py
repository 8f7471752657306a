"""Read the bytes of a file, plain or gzipped."""

import gzip
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from export.corpus.corpus import corpus_error

GZIP_MAGIC = b"\x1f\x8b"  # RFC 1952, section 2.3.1
CHUNK = 1 << 20


def is_gzipped(path: Path) -> bool:
    """Return whether the file's name says that it is compressed."""
    return path.name.lower().endswith(".gz")


def open_bytes(path: Path, stored: BinaryIO) -> BinaryIO:
    """Return a file of the uncompressed bytes; `stored` is the open file that they come from, compressed or not."""
    return cast(BinaryIO, gzip.open(stored)) if is_gzipped(path) else stored


def require_whole_gzip(path: Path) -> None:
    """Read a gzip file to its end; raises CorpusError if it is damaged or not gzip.

    Call it before reading rows. Damage otherwise appears as nonsense in the rows before the checksum, which is at the
    end of the file, reveals it.
    """
    with path.open("rb") as file:
        start = file.read(len(GZIP_MAGIC))
    if start and start != GZIP_MAGIC:
        remedy = "drop .gz from its name if it is not compressed"
        raise corpus_error(path, None, "data that is not gzip", "a gzip file", remedy)
    expected, remedy = "a whole gzip file", "fetch or write the file again"
    try:
        with gzip.open(path) as content:
            while content.read(CHUNK):
                pass
    except EOFError as error:
        raise corpus_error(path, None, "gzip data that breaks off", expected, remedy) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise corpus_error(path, None, "damaged gzip data", expected, remedy) from error
