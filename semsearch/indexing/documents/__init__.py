"""Documents become passages: a piece of one section each, with its place in the document and the path of its headings.

A reader of each format returns the text, headings and blocks of a document. `passages` divides them.
Left out: text in images (OCR), the layout of a PDF beyond its lines, and comments and footnotes of a DOCX.
"""

from semsearch.indexing.documents.folder import Documents, is_documents
from semsearch.indexing.documents.passages import Splitter
from semsearch.indexing.documents.reading import DocumentOptions, Reading
from semsearch.indexing.documents.recipe import key_of_reading
from semsearch.indexing.documents.records import FileRecord, read_records, write_records

__all__ = [
    "DocumentOptions",
    "Documents",
    "FileRecord",
    "Reading",
    "Splitter",
    "is_documents",
    "key_of_reading",
    "read_records",
    "write_records",
]
