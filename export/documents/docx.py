"""DOCX: mammoth makes HTML of it, whose headings, lists and tables are then read."""

from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from export.documents.document import Document, UnreadableError
from export.documents.html import read_html_text

LARGEST_DOCX = 10_000_000  # bytes of the archive's text, unpacked, which take 40 times as much memory
NO_TEXT = ("word/media/", "word/embeddings/", "word/fonts/")  # folders of the archive that are not read
BREAKS = "br[type='page'] => br\nbr[type='column'] => br"  # mammoth leaves them out, and no blank in their place
OLE = b"\xd0\xcf\x11\xe0"  # first bytes of an encrypted file, and of files of Word before 2007


def read_docx(path: Path) -> Document:
    """Return a DOCX file as a document, without images.

    Raises UnreadableError for an encrypted file and a too large one, and what mammoth raises for a broken one.
    """
    import mammoth

    content = path.read_bytes()
    if content.startswith(OLE):
        raise UnreadableError("encrypted, or a .doc of an older Word")
    entries = [entry for entry in ZipFile(BytesIO(content)).infolist() if not entry.filename.startswith(NO_TEXT)]
    if (size := sum(entry.file_size for entry in entries)) > LARGEST_DOCX:
        raise UnreadableError(f"{size:,} bytes unpacked, more than {LARGEST_DOCX:,}: divide it")
    without_images = mammoth.images.img_element(lambda image: {})
    html = mammoth.convert_to_html(BytesIO(content), style_map=BREAKS, convert_image=without_images).value
    return read_html_text(html, path, has_anchors=False)
