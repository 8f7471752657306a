"""Recognize files that are not text in UTF-8 by their first bytes."""

import codecs
from pathlib import Path

from export.corpus.corpus import corpus_error
from export.corpus.formats.compressed import GZIP_MAGIC

ENOUGH = 4096  # bytes that show which encoding a file has

# the first bytes, the name of the format, what to do
OTHER_FORMATS = (
    (GZIP_MAGIC, "gzip data", "decompress it, or add .gz to its name"),
    (b"PK\x03\x04", "a zip file or an Excel workbook", "unpack it, or save the sheet as CSV UTF-8"),
    (b"PAR1", "Parquet data", "name the file .parquet"),
)
# UTF-32 comes first, because its byte order mark begins with that of UTF-16
OTHER_ENCODINGS = (
    (codecs.BOM_UTF32_LE, "UTF-32LE"),
    (codecs.BOM_UTF32_BE, "UTF-32BE"),
    (codecs.BOM_UTF16_LE, "UTF-16LE"),
    (codecs.BOM_UTF16_BE, "UTF-16BE"),
)


def refuse_other_formats(path: Path, start: bytes) -> None:
    """Raise CorpusError if start, a file's first bytes, are those of another format or encoding than UTF-8."""
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

    In UTF-16 a zero byte stands beside each line feed and each ASCII character; a damaged UTF-8 file hardly ever has
    one in just that place. Two zero bytes together are a NUL, which is an error in UTF-16 too.
    """
    even = start[: len(start) // 2 * 2]
    texts = {name: even.decode(name, errors="replace") for name in ("UTF-16LE", "UTF-16BE")}
    texts = {name: text for name, text in texts.items() if "\0" not in text}
    with_lines = (name for name, text in texts.items() if "\n" in text)
    with_ascii = (name for name, text in texts.items() if text and text[0].isascii())
    return next(with_lines, None) or next(with_ascii, None)
