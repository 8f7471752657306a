"""The lines of a text file in UTF-8, plain or gzipped."""

import os
from collections.abc import Iterator
from pathlib import Path

from export.corpus.corpus import READ, corpus_error
from export.corpus.formats.compressed import open_bytes
from export.corpus.formats.first_bytes import ENOUGH, refuse_other_formats
from export.progress import OnProgress

BYTE_ORDER_MARK = "\ufeff"
LINES_BETWEEN_REPORTS = 1000  # of progress


def read_lines(path: Path, on_progress: OnProgress) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their ends, without the byte order mark that it may start with.

    Raises CorpusError for bytes that are not UTF-8, for NUL, and for a byte order mark at the start of a later line.
    A gzip file must have passed `require_whole_gzip`.
    """
    offset = 0
    with path.open("rb") as stored, open_bytes(path, stored) as file:
        size = max(1, os.fstat(stored.fileno()).st_size)
        refuse_other_formats(path, file.read(ENOUGH))
        file.seek(0)
        for line, raw in enumerate(file, 1):
            place = f"line {line}"
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                found = f"the byte 0x{raw[error.start]:02x} at byte offset {offset + error.start}"
                remedy = "save the file as UTF-8, or correct that line"
                raise corpus_error(path, place, found, "UTF-8", remedy) from error
            if "\0" in text:
                found = f"a NUL byte at byte offset {offset + raw.index(0)}"
                remedy = "fetch or write the file again, or remove the byte"
                raise corpus_error(path, place, found, "UTF-8 text", remedy)
            if line == 1:
                text = text.removeprefix(BYTE_ORDER_MARK)
            if text.startswith(BYTE_ORDER_MARK):
                found, expected = "a byte order mark (U+FEFF)", "it at most once, at the start of the file"
                remedy = "remove it, and if files were joined here, also the second one's header"
                raise corpus_error(path, place, found, expected, remedy)
            if line % LINES_BETWEEN_REPORTS == 0:
                on_progress(READ, min(0.99, stored.tell() / size))
            yield text
            offset += len(raw)
