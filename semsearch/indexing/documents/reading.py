"""Read a folder of documents, or one, into the passages of a corpus."""

import json
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

from semsearch.engine.cores import usable_cores
from semsearch.indexing.corpus.corpus import READ, Corpus, CorpusError, PassageRow, PassageRows, corpus_error
from semsearch.indexing.corpus.folder import SUFFIXES, as_text, find_files, refusing_changes
from semsearch.indexing.corpus.formats import compact_json, is_table, unknown_suffix
from semsearch.indexing.corpus.report import ReadReport, Skipped
from semsearch.indexing.documents.document import (
    AS_FILES,
    DOCUSAURUS,
    GITHUB,
    HTML,
    MARKDOWN,
    Document,
    NoTextError,
    UnreadableError,
    page_address,
    read_plain,
)
from semsearch.indexing.documents.docusaurus import page_of
from semsearch.indexing.documents.docx import read_docx
from semsearch.indexing.documents.front_matter import why_unlisted
from semsearch.indexing.documents.html import read_html
from semsearch.indexing.documents.markdown import read_markdown, read_mdx
from semsearch.indexing.documents.notebook import read_notebook
from semsearch.indexing.documents.older import OlderPassages
from semsearch.indexing.documents.pages import path_columns
from semsearch.indexing.documents.passages import Splitter, divide
from semsearch.indexing.documents.pdf import read_pdf
from semsearch.indexing.documents.rst import read_rst
from semsearch.indexing.errors import first_line
from semsearch.indexing.processes import KilledError, Limits, in_workers
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.walking import DOCUSAURUS_CONFIG, WalkRules, find_above

FORMATS: dict[str, tuple[str, Callable[[Path, str], Document]]] = {
    **dict.fromkeys(MARKDOWN, ("Markdown", read_markdown)),
    ".mdx": ("MDX", read_mdx),
    ".rst": ("reStructuredText", lambda path, anchors: read_rst(path)),
    ".ipynb": ("notebook", read_notebook),
    **dict.fromkeys(HTML, ("HTML", lambda path, anchors: read_html(path))),
    ".pdf": ("PDF", lambda path, anchors: read_pdf(path)),
    ".docx": ("DOCX", lambda path, anchors: read_docx(path)),
    ".txt": ("plain text", lambda path, anchors: read_plain(path)),
}
READABLE = f"documents ({', '.join(FORMATS)}) or tables ({SUFFIXES})"
# pages of a built site (one with an index.html) that are no content: its search, its error page, indexes and licences
EXCLUDED_OF_SITE = (
    "404.html",
    "search.html",
    "search/index.html",
    "genindex.html",
    "py-modindex.html",
    "*LICENSE*.txt",
)
OF_SITE = ("language", "version")  # columns of the pages of a site that has several
LARGEST_FILE = 200_000_000  # bytes of a file, except a PDF: it is read at once, and takes up to 15 times as much memory
# what reading a file can take: bytes of memory and seconds of processor time, and how much more for its size
MEMORY, MEMORY_OF_BYTE, MEMORY_OF_ZIPPED_BYTE = 256_000_000, 15, 100
READING_SECONDS, SECONDS_OF_MB = 10, 10


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """How documents are read. The options of `index` of these names explain the fields."""

    base_url: str = ""
    anchors: str = "auto"
    exclude: Sequence[str] = ()
    ignore: bool = True
    follow_symlinks: bool = False
    drafts: bool = False
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """How documents are read and divided."""

    splitter: Splitter
    options: DocumentOptions = field(default_factory=DocumentOptions)
    today: date = field(default_factory=date.today)  # a page that is published later is left out
    seconds: int = READING_SECONDS  # see READING_SECONDS
    memory: int = MEMORY  # see MEMORY

    def limits(self, file: Path) -> Limits:
        """Return what reading this file can take."""
        size = 0
        with suppress(OSError):  # reading the file reports it
            size = file.stat().st_size
        factor = MEMORY_OF_ZIPPED_BYTE if file.suffix.lower() == ".docx" else MEMORY_OF_BYTE
        return Limits(self.seconds + SECONDS_OF_MB * size // 1_000_000, self.memory + factor * size)


def anchors_of(folder: Path, anchors: str) -> str:
    """Return the style of anchors for a folder: the chosen one, or the one of its site."""
    if anchors != "auto":
        return anchors
    if find_above(folder, DOCUSAURUS_CONFIG) is not None:
        return DOCUSAURUS
    return GITHUB


def is_documents(path: Path, *, ignore: bool = True, follow_symlinks: bool = False) -> bool:
    """Return whether a path is a document or a folder with one.

    Raises CorpusError for a file that is neither a document nor a table, and for a folder without either.
    """
    expected = f"{READABLE}, in it or in a folder below it"
    unread: dict[Path, OSError] = {}
    rules = WalkRules(path, ignore=ignore, follow_symlinks=follow_symlinks)
    read, skipped = find_files(path, rules, expected, unread)
    files = [*read, *unread]
    if any(file.suffix.lower() in FORMATS for file in files):
        return True
    if not any(map(is_table, files)) and path.exists():
        if path.is_file():
            raise unknown_suffix(path, READABLE)
        others = f"only other files, such as {as_text(str(files[0].relative_to(path)))}"
        found = "; ".join([others, *map(str, skipped)])
        raise corpus_error(path, None, found, expected, "check the path")
    return False


class Documents:
    """The passages of a document, or of all documents of a folder, in the order of their paths.

    The files are read by processes of their own, one for each core, whose memory and time are limited. Documents that
    cannot be read are in the report's `unreadable`, and those of which a part could not be in its `incomplete`; other
    files are counted in `skipped`, by suffix.
    """

    def __init__(self, path: Path, reading: Reading, older: Path | None = None) -> None:
        """Take the path. `older` is an index of the same folder, of which an unreadable document keeps its passages."""
        self._path = path
        self._folder = path if path.is_dir() else path.parent
        self._options = replace(reading.options, anchors=anchors_of(self._folder, reading.options.anchors))
        self._reading = replace(reading, options=self._options)
        self._older = OlderPassages(older)
        self._found = _Found()

    def passages(self, on_progress: OnProgress = no_progress) -> PassageRows:
        """Yield the passages.

        Raises CorpusError if a file changes while it is read, and with the option `strict` for the first document that
        cannot be read, or not as a whole.
        """
        self._found = _Found()
        unread: dict[Path, OSError] = {}
        files = self._files(unread)
        names = {self._name(file) for file in files}
        calls = [((file,), self._reading.limits(file)) for file in files if file not in unread]
        workers = min(usable_cores(), len(calls))
        with closing(in_workers(workers, read_document, (self._folder, self._reading), calls)) as results:
            for number, file in enumerate(files):
                on_progress(READ, number / len(files))
                result = unread.get(file) or next(results)
                if isinstance(result, ReadDocument):
                    yield from self._take(file, result, names)
                else:
                    yield from self._older_passages(file, result)

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written, and what was counted. Raises CorpusError without one."""
        found = self._found
        if not written.texts:
            no_text = "; ".join(["no text", *found.unreadable[:1]])
            raise corpus_error(self._path, None, no_text, "documents with text", "check the path")
        others = [Skipped(reason, len(names), names[0]) for reason, names in sorted(found.others.items())]
        report = ReadReport(
            files=found.formats.total(),
            skipped=(*found.skipped, *others),
            documents=dict(found.formats),
            unreadable=tuple(found.unreadable),
            outdated=tuple(found.outdated),
            refused=tuple(found.refused),
            incomplete=tuple(found.incomplete),
            running_lines=found.running_lines,
            of_site={column: tuple(sorted(values)) for column, values in found.of_site.items()},
        )
        return replace(written, heading_prefix=True), report

    def _files(self, unread: dict[Path, OSError]) -> list[Path]:
        """Return the documents, and those files and folders of which `unread` then has the error."""
        options = self._options
        rules = WalkRules(
            self._path, ignore=options.ignore, drafts=options.drafts, follow_symlinks=options.follow_symlinks
        )
        entries, self._found.skipped = find_files(self._path, rules, unread=unread)
        patterns = [*map(as_text, options.exclude)]
        if self._folder / "index.html" in entries:
            patterns += EXCLUDED_OF_SITE
        files = []
        for file in sorted([*entries, *unread]):
            name, suffix = self._name(file), file.suffix.lower()
            is_folder = file in unread and os.path.isdir(file)  # noqa: PTH112  `is_dir` can raise the same error
            if any(fnmatchcase(f"/{name}", f"*/{pattern}") for pattern in patterns):
                self._found.skip("an excluded path", name)
            elif suffix not in FORMATS and not is_folder:
                self._found.skip(f"the suffix {suffix!r}", name)
            else:
                files.append(file)
        return files

    def _name(self, file: Path) -> str:
        return as_text(file.relative_to(self._folder).as_posix())

    def _take(self, file: Path, document: "ReadDocument", names: Collection[str]) -> Iterator[PassageRow]:
        """Yield the passages of a document, none for a page that is not to be found; names are those of all files."""
        found, name = self._found, self._name(file)
        if copied_page(name, document.canonical, names):
            found.skip("a copy of the page that it names as canonical", name)
            return
        if document.unlisted:
            found.skip(f"a page with {document.unlisted}", name)
            return
        found.formats[FORMATS[file.suffix.lower()][0]] += 1
        found.running_lines += document.running_lines
        for column, value in document.of_site.items():
            found.of_site[column].add(value)
        if document.problem:
            found.incomplete.append(f"{name}: {document.problem}")
        yield from document.rows

    def _older_passages(self, file: Path, error: Exception) -> list[PassageRow]:
        """Return the passages that the older index has of a document that cannot be read."""
        if not isinstance(error, UnreadableError | MemoryError | OSError):
            raise error
        found, name = self._found, self._name(file)
        reason = _reason(error, self._reading.limits(file))
        if self._options.strict:
            remedy = "repair or remove it, or leave --strict out"
            raise corpus_error(file, None, reason, "a document with text", remedy) from error
        rows = [] if isinstance(error, NoTextError) else self._older.of(name)
        found.unreadable.append(f"{name}: {reason}")
        if rows:
            found.unreadable[-1] += f"; its {len(rows):,} older passages stay"
        is_refused = isinstance(error, OSError) and not isinstance(error, KilledError)
        if is_refused:
            found.refused.append(name)
        if rows or is_refused:
            found.outdated.append(found.unreadable[-1])
        return rows


@dataclass(slots=True)
class _Found:
    """What was found in a folder of documents. The fields of ReadReport of these names explain most of them."""

    skipped: tuple[Skipped, ...] = ()  # what was not looked at
    others: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # files left out, by the reason
    formats: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    of_site: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    running_lines: int = 0

    def skip(self, reason: str, name: str) -> None:
        self.others[reason].append(name)


def _reason(error: Exception, limits: Limits) -> str:
    memory = f"more than {limits.memory // 1_000_000:,} MB of memory"
    match error:
        case KilledError(code=code) if code == -signal.SIGXCPU:
            return f"it takes more than {limits.seconds:,} s of processor time"
        case KilledError(code=code):
            return f"its reader crashed (exit code {code}): it is broken, or takes {memory}"
        case MemoryError():
            return f"it takes {memory}"
        case OSError(strerror=str(reason)):
            return reason
    return str(error)


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What was read of a document."""

    rows: list[PassageRow]
    running_lines: int
    problem: str  # what of it could not be read
    unlisted: str = ""  # why it is not to be found
    canonical: str = ""  # the address that the page states
    of_site: Mapping[str, str] = field(default_factory=dict)  # its language and version


def read_document(folder: Path, reading: Reading, path: Path) -> ReadDocument:
    """Return the passages of a document below this folder.

    Raises UnreadableError if it has none, OSError if the file cannot be read, and CorpusError if it changes meanwhile.
    """
    suffix = path.suffix.lower()
    if suffix != ".pdf" and (size := path.stat().st_size) > LARGEST_FILE:
        raise UnreadableError(f"{size:,} bytes, more than {LARGEST_FILE:,}: divide it")
    try:
        with refusing_changes(path):
            document = FORMATS[suffix][1](path, reading.options.anchors)
            unlisted = document.unlisted or why_unlisted(document.fields, reading.today)
            if unlisted and not reading.options.drafts:
                return ReadDocument([], 0, "", unlisted=unlisted)
            if document.problem and reading.options.strict:
                raise UnreadableError(document.problem)
            rows = _rows(document, folder, path.relative_to(folder).as_posix(), reading)
    except (UnreadableError, CorpusError, OSError, MemoryError):
        raise
    except Exception as error:  # a damaged file can raise anything in a parser
        raise UnreadableError(f"broken: {first_line(error)}") from error
    if not rows:
        raise NoTextError("empty")
    stated = json.loads(rows[0][2])
    of_site = {column: stated[column] for column in OF_SITE if isinstance(stated.get(column), str)}
    return ReadDocument(rows, document.running_lines, document.problem, "", document.canonical, of_site)


def _rows(document: Document, folder: Path, name: str, reading: Reading) -> list[PassageRow]:
    rows = []
    address, of_site = _place_in_site(document, folder, name, reading)
    document = replace(document, fields=of_site | document.fields)
    name, document = as_text(name), replace(document, title=as_text(document.title))  # it can be the file's name
    numbers: Counter[str] = Counter()
    for number, passage in enumerate(divide(document, reading.splitter)):
        anchor = passage.anchor if passage.page is None else f"page={passage.page}"
        fragment = ""
        if anchor:
            fragment = f"#{anchor}"
        numbers[anchor] += 1
        stated: dict[str, object] = {"path": name, "url": address + quote(fragment, safe="#=:@!$&'()*+,;/?")}
        stated |= {"title": document.title, "headings": passage.headings, "page": passage.page}
        stated |= {"start": passage.start, "end": passage.end, "passage": number, "table": passage.table or None}
        others = {column: value for column, value in document.fields.items() if column not in stated}
        stated = {column: value for column, value in stated.items() if value is not None}
        id, metadata = f"{name}{fragment}:{numbers[anchor]}", compact_json(stated | others)
        source = passage.source if passage.source != passage.text else ""
        rows.append((passage.text, id, metadata, source))
    return rows


def _place_in_site(document: Document, folder: Path, name: str, reading: Reading) -> tuple[str, dict[str, object]]:
    """Return the address of a page, and the language and version that its site has for it, if any."""
    fields, suffix = document.fields, (folder / name).suffix.lower()
    if suffix in HTML:
        return page_address(name, reading.options.base_url, reading.options.anchors, document.canonical), path_columns(
            folder, name
        )
    of_site: dict[str, object] = {}
    if isinstance(fields.get("version"), int | float):
        fields["version"] = str(fields["version"])
    if isinstance(fields.get("lang"), str):
        of_site["language"] = fields["lang"]
    is_file = AS_FILES in reading.options.base_url or reading.options.base_url.startswith("file:")
    site = None
    if reading.options.anchors == DOCUSAURUS and suffix in MARKDOWN:
        site = find_above(folder, DOCUSAURUS_CONFIG)
    if site is None or is_file:
        return page_address(name, reading.options.base_url, reading.options.anchors), of_site
    page = page_of(site, (folder / name).resolve(), fields)
    stated = {"language": page.language, "version": page.version}
    of_site |= {column: value for column, value in stated.items() if value}
    return page.address(folder, reading.options.base_url), of_site


def copied_page(path: str, canonical: str, names: Collection[str]) -> str:
    """Return the file whose page is the canonical address of another page; "" if it is that page's own, or no file's.

    path and names, those of all files in the folder, are as `as_text` returns them. The folder can be anywhere below
    the root of its host.
    """
    stated = normalize("NFC", unquote(urlsplit(canonical).path)).strip("/")
    if path == "index.html" or not stated:
        return ""
    parts = stated.split("/")
    for place in range(len(parts)):
        bare = "/".join(parts[place:])
        found = next((name for name in (f"{bare}/index.html", f"{bare}.html", bare) if name in names), "")
        if found:
            return found if found != path else ""
    return ""
