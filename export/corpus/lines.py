"""The lines of a UTF-8 file, plain or gzipped."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from export.corpus.corpus import corpus_error


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, plain or gzipped, with their ends and without a byte order mark.

    Raises CorpusError for other bytes and for a damaged gzip file.
    """
    line, offset = 0, 0
    with _open(path) as file:
        try:
            for line, raw in enumerate(file, 1):
                text = raw.decode()
                yield text.removeprefix("\ufeff") if line == 1 else text
                offset += len(raw)
        except UnicodeDecodeError as error:
            found = f"the byte 0x{error.object[error.start]:02x} at byte offset {offset + error.start}"
            remedy = "save the file as UTF-8, or correct that line"
            raise corpus_error(path, f"line {line}", found, "UTF-8", remedy) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            found = f"damaged or no gzip data ({error})"
            remedy = "fetch the file again, or drop .gz from its name if it is not compressed"
            raise corpus_error(path, f"line {line + 1}", found, "a whole gzip file", remedy) from error


def _open(path: Path) -> BinaryIO:
    if path.name.lower().endswith(".gz"):
        return cast(BinaryIO, gzip.open(path))
    return path.open("rb")
