"""Read a folder of documents, or one, into the passages of a corpus."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

from semsearch.engine.cores import usable_cores
from semsearch.indexing.corpus.corpus import READ, Corpus, CorpusError, Skipped, corpus_error
from semsearch.indexing.corpus.folder import SUFFIXES, as_text, find_files, refusing_changes
from semsearch.indexing.corpus.formats import compact_json, is_table, unknown_suffix
from semsearch.indexing.corpus.passages import stored_columns, stored_sources, writing_passages
from semsearch.indexing.documents.addresses import AS_FILES, DOCUSAURUS, HTML, MARKDOWN, page_address
from semsearch.indexing.documents.document import Document, NoTextError, UnreadableError
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
from semsearch.indexing.documents.plain_text import read_plain
from semsearch.indexing.documents.rst import read_rst
from semsearch.indexing.errors import first_line
from semsearch.indexing.processes import KilledError, Limits, in_workers
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.walking import DOCUSAURUS_CONFIG, WalkRules, find_above

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
class Reading:
    """How documents are read."""

    splitter: Splitter
    base_url: str = ""  # address at which the folder is published
    anchors: str = "github"  # style of the anchors in Markdown: one of ANCHORS
    exclude: tuple[str, ...] = ()  # patterns of paths, at any depth, that are not read
    is_strict: bool = False  # whether a document that cannot be read is an error
    ignore: bool = True  # whether ignore files count, and packages and build output are left out
    drafts: bool = False  # whether documents are read that ask not to be published or found
    follow_symlinks: bool = False  # whether links are followed that lead out of the folder
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


def read_documents(
    path: Path, passages: Path, reading: Reading, on_progress: OnProgress = no_progress, older: Path | None = None
) -> Corpus:
    """Return the passages of a document, or of all documents of a folder, after writing them into `passages`.

    The files are read in the order of their paths, by processes of their own, one for each core, whose memory and time
    are limited. Documents that cannot be read are in the corpus's `unreadable`, and those of which a part could not be
    in its `incomplete`; other files are counted in `skipped`, by suffix. `older` is an index of the same folder, of
    which a document that cannot be read keeps its passages.
    Raises CorpusError if there is no text at all, if a file changes while it is read, and if reading.is_strict for the
    first document that cannot be read, or not as a whole.
    """
    folder = path if path.is_dir() else path.parent
    follows = reading.follow_symlinks
    rules = WalkRules(path, ignore=reading.ignore, drafts=reading.drafts, follow_symlinks=follows)
    unread: dict[Path, OSError] = {}
    found, skipped = find_files(path, rules, unread=unread)
    others: dict[str, list[str]] = {}
    patterns = [*map(as_text, reading.exclude), *(EXCLUDED_OF_SITE if folder / "index.html" in found else ())]
    files = []
    for file in sorted([*found, *unread]):
        name = as_text(file.relative_to(folder).as_posix())
        is_folder = file in unread and os.path.isdir(file)  # noqa: PTH112  `is_dir` can raise the same error
        if any(fnmatchcase(f"/{name}", f"*/{pattern}") for pattern in patterns):
            others.setdefault("an excluded path", []).append(name)
        elif (suffix := file.suffix.lower()) not in FORMATS and not is_folder:
            others.setdefault(f"the suffix {suffix!r}", []).append(name)
        else:
            files.append(file)
    unreadable: list[str] = []
    outdated: list[str] = []
    refused: list[str] = []
    kept = OlderPassages(older)
    incomplete: list[str] = []
    formats: Counter[str] = Counter()
    found_values: dict[str, set[str]] = {}  # languages and versions
    running_lines = 0
    names = {as_text(file.relative_to(folder).as_posix()) for file in files}
    calls = [((file,), reading.limits(file)) for file in files if file not in unread]
    results = in_workers(
        min(usable_cores(), len(calls)),
        read_document,
        (folder, reading),
        calls,
    )
    with writing_passages(passages) as append, closing(results):
        for number, file in enumerate(files):
            on_progress(READ, number / len(files))
            result = unread.get(file) or next(results)
            name = as_text(file.relative_to(folder).as_posix())
            if isinstance(result, ReadDocument) and copied_page(name, result.canonical, names):
                others.setdefault("a copy of the page that it names as canonical", []).append(name)
                continue
            if isinstance(result, ReadDocument) and result.unlisted:
                others.setdefault(f"a page with {result.unlisted}", []).append(name)
                continue
            if isinstance(result, ReadDocument):
                for row in result.rows:
                    append(*row)
                formats[FORMATS[file.suffix.lower()][0]] += 1
                running_lines += result.running_lines
                for column, value in result.of_site.items():
                    found_values.setdefault(column, set()).add(value)
                incomplete += [f"{name}: {result.problem}"] if result.problem else []
                continue
            if not isinstance(result, UnreadableError | MemoryError | OSError):
                raise result
            reason = _reason(result, reading.limits(file))
            if reading.is_strict:
                remedy = "repair or remove it, or leave --strict out"
                raise corpus_error(file, None, reason, "a document with text", remedy) from result
            rows = [] if isinstance(result, NoTextError) else kept.of(name)
            for row in rows:
                append(*row)
            unreadable.append(f"{name}: {reason}")
            if rows:
                unreadable[-1] += f"; its {len(rows):,} older passages stay"
            is_refused = isinstance(result, OSError) and not isinstance(result, KilledError)
            if is_refused:
                refused.append(name)
            if rows or is_refused:
                outdated.append(unreadable[-1])
    texts, ids, metadata = stored_columns(passages)
    if not texts:
        raise corpus_error(path, None, "; ".join(["no text", *unreadable[:1]]), "documents with text", "check the path")
    by_reason = [Skipped(reason, len(names), names[0]) for reason, names in sorted(others.items())]
    corpus = Corpus(texts, ids, metadata, empty_texts=0, files=formats.total(), skipped=(*skipped, *by_reason))
    corpus = replace(corpus, unreadable=tuple(unreadable), incomplete=tuple(incomplete), running_lines=running_lines)
    corpus = replace(corpus, outdated=tuple(outdated), refused=tuple(refused))
    corpus = replace(corpus, of_site={column: tuple(sorted(values)) for column, values in found_values.items()})
    return replace(corpus, documents=dict(formats), heading_prefix=True, sources=stored_sources(passages))


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

    rows: list[tuple[str, str, str, str]]  # text, id, metadata and source of each passage
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
            document = FORMATS[suffix][1](path, reading.anchors)
            unlisted = document.unlisted or why_unlisted(document.fields, reading.today)
            if unlisted and not reading.drafts:
                return ReadDocument([], 0, "", unlisted=unlisted)
            if document.problem and reading.is_strict:
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


def _rows(document: Document, folder: Path, name: str, reading: Reading) -> list[tuple[str, str, str, str]]:
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
        return page_address(name, reading.base_url, reading.anchors, document.canonical), path_columns(folder, name)
    of_site: dict[str, object] = {}
    if isinstance(fields.get("version"), int | float):
        fields["version"] = str(fields["version"])
    if isinstance(fields.get("lang"), str):
        of_site["language"] = fields["lang"]
    is_file = AS_FILES in reading.base_url or reading.base_url.startswith("file:")
    site = None
    if reading.anchors == DOCUSAURUS and suffix in MARKDOWN:
        site = find_above(folder, DOCUSAURUS_CONFIG)
    if site is None or is_file:
        return page_address(name, reading.base_url, reading.anchors), of_site
    page = page_of(site, (folder / name).resolve(), fields)
    stated = {"language": page.language, "version": page.version}
    of_site |= {column: value for column, value in stated.items() if value}
    return page.address(folder, reading.base_url), of_site


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
