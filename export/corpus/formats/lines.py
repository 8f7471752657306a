"""The lines of a text file in UTF-8, plain or gzipped; another format or encoding is named in the error."""

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from export.corpus.corpus import READ, corpus_error
from export.progress import OnProgress

BYTE_ORDER_MARK = "\ufeff"
REPORT_EVERY = 1000  # lines between two reports of progress
GZIP_MAGIC = b"\x1f\x8b"  # RFC 1952, section 2.3.1
CHUNK = 1 << 20  # bytes of a gzip file that are checked at a time
ENOUGH = 4096  # bytes that are enough to recognize the encoding of a file

# first bytes, name of the format, remedy
OTHER_FORMATS = (
    (GZIP_MAGIC, "gzip data", "decompress it, or add .gz to its name"),
    (b"PK\x03\x04", "a zip file or an Excel workbook", "unpack it, or save the sheet as CSV UTF-8"),
    (b"PAR1", "Parquet data", "name the file .parquet"),
)
# UTF-32 comes first, because its byte order mark begins with the one of UTF-16
OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)


def read_lines(path: Path, on_progress: OnProgress) -> Iterator[str]:
    """Yield the lines of a UTF-8 file with their ends, without the byte order mark that it may start with.

    Raises CorpusError for bytes that are not UTF-8, for NUL, and for a byte order mark at the start of a later line.
    A gzip file must have passed `require_whole_gzip`.
    """
    offset = 0
    with path.open("rb") as stored, gzip.open(stored) if is_gzipped(path) else stored as file:
        size = max(1, os.fstat(stored.fileno()).st_size)
        _refuse_other_formats(path, file.read(ENOUGH))
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
            if line % REPORT_EVERY == 0:
                on_progress(READ, min(0.99, stored.tell() / size))
            yield text
            offset += len(raw)


def is_gzipped(path: Path) -> bool:
    """Return whether the file's name says that it is compressed."""
    return path.name.lower().endswith(".gz")


def require_whole_gzip(path: Path) -> None:
    """Read a gzip file to its end; raises CorpusError if it is damaged or not gzip.

    Call it before reading rows: the checksum is at the end of the file, and damage would appear as wrong rows first.
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


def _refuse_other_formats(path: Path, start: bytes) -> None:
    """Raise CorpusError if `start`, a file's first bytes, shows another format or encoding than UTF-8."""
    for magic, found, remedy in OTHER_FORMATS:
        if start.startswith(magic):
            raise corpus_error(path, None, found, "text in UTF-8", remedy)
    marked = (encoding for mark, encoding in OTHER_ENCODINGS if start.startswith(mark))
    encoding = next(marked, None) or _unmarked_utf_16(start)
    if encoding is not None:
        remedy = f"save the file as UTF-8, or convert it with iconv -f {encoding} -t UTF-8"
        raise corpus_error(path, None, encoding[: len("UTF-16")], "UTF-8", remedy)


def _unmarked_utf_16(start: bytes) -> str | None:
    """Return "UTF-16LE" or "UTF-16BE" if the bytes are UTF-16 without a byte order mark, else None.

    In UTF-16 each line feed and each ASCII character has a zero byte beside it; a damaged UTF-8 file hardly ever has
    one in that place. Two zero bytes together are a NUL, which is an error in UTF-16 too.
    """
    even = start[: len(start) // 2 * 2]
    texts = {name: even.decode(name, errors="replace") for name in ("UTF-16LE", "UTF-16BE")}
    texts = {name: text for name, text in texts.items() if "\0" not in text}
    with_lines = (name for name, text in texts.items() if "\n" in text)
    with_ascii = (name for name, text in texts.items() if text and text[0].isascii())
    return next(with_lines, None) or next(with_ascii, None)
