"""Read one document into passages, in a process of its own."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from semsearch.indexing.corpus.corpus import CorpusError, PassageRow
from semsearch.indexing.corpus.folder import refusing_changes
from semsearch.indexing.corpus.formats import compact_json
from semsearch.indexing.documents.addresses import AS_FILES, DOCUSAURUS, HTML, MARKDOWN, page_address
from semsearch.indexing.documents.document import Document, NoTextError, UnreadableError
from semsearch.indexing.documents.docusaurus import page_of
from semsearch.indexing.documents.docx import read_docx
from semsearch.indexing.documents.front_matter import LATER, why_unlisted
from semsearch.indexing.documents.html import read_html
from semsearch.indexing.documents.kinds import kind_of
from semsearch.indexing.documents.looks import Looks, is_rst_in, site_around
from semsearch.indexing.documents.markdown import read_markdown, read_mdx
from semsearch.indexing.documents.notebook import read_notebook
from semsearch.indexing.documents.pages import path_columns
from semsearch.indexing.documents.passages import Splitter, divide
from semsearch.indexing.documents.pdf import read_pdf
from semsearch.indexing.documents.plain_text import read_other, read_plain
from semsearch.indexing.documents.records import FileRecord, record_file
from semsearch.indexing.documents.rst import read_rst
from semsearch.indexing.documents.sphinx_suffix import has_marks
from semsearch.indexing.errors import first_line
from semsearch.indexing.file_choice import FORMATS, OTHER_TEXT, suffix_of
from semsearch.indexing.processes import Limits
from semsearch.indexing.walking import as_text

RST_FORMAT, PLAIN_TEXT = FORMATS[".rst"], FORMATS[".txt"]
READERS: dict[str, Callable[[Path, str], Document]] = {  # by format
    "Markdown": read_markdown,
    "MDX": read_mdx,
    RST_FORMAT: lambda path, anchors: read_rst(path),
    "notebook": read_notebook,
    "HTML": lambda path, anchors: read_html(path),
    "PDF": lambda path, anchors: read_pdf(path),
    "DOCX": lambda path, anchors: read_docx(path),
    PLAIN_TEXT: lambda path, anchors: read_plain(path),
    OTHER_TEXT: lambda path, anchors: read_other(path),
}
OF_SITE = ("language", "version")  # columns of the pages of a site that has several
LARGEST_FILE = 200_000_000  # bytes of a file, except a PDF: it is read at once, and takes up to 15 times as much memory
# what reading a file can take: bytes of memory and seconds of processor time, and how much more for its size
MEMORY, MEMORY_OF_BYTE, MEMORY_OF_ZIPPED_BYTE = 256_000_000, 15, 100
READING_SECONDS, SECONDS_OF_MB = 10, 10


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How documents are read. The options of `index` of these names explain the fields."""

    base_url: str
    anchors: str
    exclude: Sequence[str]
    include: Sequence[str]
    ignore: bool
    follow_symlinks: bool
    drafts: bool
    strict: bool
    describe: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """How the documents of a folder are read and divided."""

    splitter: Splitter
    options: DocumentOptions
    folder: str = ""  # name of the folder, if the index is made of several
    about: str = ""  # what the user says of that folder
    today: date = field(default_factory=date.today)  # a page that is published later is left out
    seconds: int = READING_SECONDS  # see READING_SECONDS
    memory: int = MEMORY  # see MEMORY

    def name_in_index(self, name: str) -> str:
        """Return the path of a document from its folder on, with the folder's name before it if there are several."""
        return f"{self.folder}/{name}" if self.folder else name

    def folder_columns(self) -> dict[str, object]:
        """Return the columns that say of which folder a document is, if there are several."""
        if not self.folder:
            return {}
        return {"folder": as_text(self.folder), "folder_description": self.about or None}

    def limits(self, file: Path) -> Limits:
        """Return what reading this file can take."""
        size = size_of(file)
        factor = MEMORY_OF_ZIPPED_BYTE if file.suffix.lower() == ".docx" else MEMORY_OF_BYTE
        return Limits(self.seconds + SECONDS_OF_MB * size // 1_000_000, self.memory + factor * size)


def size_of(file: Path) -> int:
    """Return the bytes of a file, 0 if the system refuses to say: reading the file reports that."""
    with suppress(OSError):
        return file.stat().st_size
    return 0


class ReadDocument(NamedTuple):
    """The passages of a document, and what an index notes of it."""

    rows: list[PassageRow]
    record: FileRecord


def format_as_read(path: Path, looks: Looks) -> str:
    """Return the format that a file is read as, one of READERS. Raises OSError if it cannot be read."""
    found = FORMATS.get(suffix_of(path), OTHER_TEXT)
    if found == PLAIN_TEXT and (is_rst_in(path.parent, looks) or has_marks(path)):
        return RST_FORMAT
    return found


def read_document(folder: Path, reading: Reading, path: Path) -> ReadDocument:
    """Return the passages of a document below this folder, none of one that is unlisted or has no text.

    Raises UnreadableError if it is broken, OSError if the file cannot be read, and ChangedFileError if it is written
    meanwhile.
    """
    if suffix_of(path) != ".pdf" and (size := path.stat().st_size) > LARGEST_FILE:
        raise UnreadableError(f"{size:,} bytes, more than {LARGEST_FILE:,}: divide it")
    try:
        with refusing_changes(path):
            record = record_file(str(path))
            looks: Looks = {}
            format = format_as_read(path, looks)
            if format != FORMATS.get(suffix_of(path), OTHER_TEXT):
                record = replace(record, format=format)
            document = READERS[format](path, reading.options.anchors)
            unlisted = document.unlisted or why_unlisted(document.fields, reading.today)
            looks |= document.looks
            if unlisted and not reading.options.drafts:
                day = reading.today.isoformat() if unlisted == LATER else ""
                return ReadDocument([], replace(record, unlisted=unlisted, day=day, looks=looks))
            if document.problem and reading.options.strict:
                raise UnreadableError(document.problem)
            name = path.relative_to(folder).as_posix()
            rows = _rows(document, folder, name, reading, looks, is_rst=format == RST_FORMAT)
    except NoTextError as error:
        return ReadDocument([], replace(record, no_text=str(error)))
    except (UnreadableError, CorpusError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything in a parser
        raise UnreadableError(f"broken: {first_line(error)}") from error
    if not rows:
        return ReadDocument([], replace(record, no_text="empty", looks=looks))
    stated = json.loads(rows[0].metadata)
    record = replace(
        record,
        rows=len(rows),
        running_lines=document.running_lines,
        problem=document.problem,
        canonical=document.canonical,
        of_site={column: stated[column] for column in OF_SITE if isinstance(stated.get(column), str)},
        looks=looks,
    )
    return ReadDocument(rows, record)


def _rows(
    document: Document, folder: Path, name: str, reading: Reading, looks: Looks, *, is_rst: bool
) -> list[PassageRow]:
    rows = list[PassageRow]()
    address, of_site = _place_in_site(document, folder, name, reading, looks, is_rst=is_rst)
    if reading.folder and not reading.options.base_url and "://" not in address:
        address = f"{quote(reading.folder, errors='surrogateescape')}/{address.removeprefix('./')}"
    document = replace(document, fields=of_site | document.fields)
    name = as_text(reading.name_in_index(name))
    document = replace(document, title=as_text(document.title))  # it can be the file's name
    numbers: Counter[str] = Counter()
    passages = list(divide(document, reading.splitter))
    kind = kind_of(name, document.title, (passage.headings for passage in passages))
    fields = {"kind": kind} | document.fields
    for number, passage in enumerate(passages):
        anchor, place = passage.anchor, passage.place
        if passage.page is not None:
            anchor = place = f"page={passage.page}"
        numbers[anchor] += 1
        stated: dict[str, object] = {"path": name, "url": address + quote(_fragment(place), safe="#=:@!$&'()*+,;/?")}
        stated |= {"title": document.title, "headings": passage.headings, "page": passage.page}
        stated |= {"start": passage.start, "end": passage.end, "passage": number, "table": passage.table or None}
        stated |= reading.folder_columns()
        others = {column: value for column, value in fields.items() if column not in stated}
        stated = {column: value for column, value in stated.items() if value is not None}
        id, metadata = f"{name}{_fragment(anchor)}:{numbers[anchor]}", compact_json(stated | others)
        source = passage.source if passage.source != passage.text else ""
        rows.append(PassageRow(passage.text, id, metadata, source, passage.lines))
    return rows


def _fragment(anchor: str) -> str:
    if anchor:
        return f"#{anchor}"
    return ""


def _place_in_site(
    document: Document, folder: Path, name: str, reading: Reading, looks: Looks, *, is_rst: bool
) -> tuple[str, dict[str, object]]:
    """Return the address of a page, and the language and version that its site has for it, if any."""
    fields, options = document.fields, reading.options
    suffix = (folder / name).suffix.lower()
    if suffix in HTML:
        address = page_address(name, options.base_url, options.anchors, document.canonical)
        return address, path_columns(folder, name, looks)
    of_site: dict[str, object] = {}
    if isinstance(fields.get("version"), int | float):
        fields["version"] = str(fields["version"])
    if isinstance(fields.get("lang"), str):
        of_site["language"] = fields["lang"]
    is_file = AS_FILES in options.base_url or options.base_url.startswith("file:")
    site = None
    if options.anchors == DOCUSAURUS and suffix in MARKDOWN:
        site = site_around(folder, looks)
    if site is None or is_file:
        return page_address(name, options.base_url, options.anchors, is_rst=is_rst), of_site
    page = page_of(site, (folder / name).resolve(), fields, looks)
    stated = {"language": page.language, "version": page.version}
    of_site |= {column: value for column, value in stated.items() if value}
    return page.address(folder, options.base_url), of_site
