"""Read a folder of documents, or one, into the passages of a corpus."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from export.corpus.corpus import READ, Corpus, CorpusError, Skipped, corpus_error
from export.corpus.folder import as_text, find_files, refusing_changes
from export.corpus.formats.json_rows import compact_json
from export.corpus.passages import stored_columns, writing_passages
from export.documents.addresses import HTML, MARKDOWN, page_address
from export.documents.document import Document, UnreadableError
from export.documents.docx import read_docx
from export.documents.html import read_html
from export.documents.markdown import read_markdown
from export.documents.passages import divide
from export.documents.pdf import read_pdf
from export.documents.plain import read_plain
from export.documents.splitter import Splitter
from export.progress import OnProgress, no_progress

FORMATS: dict[str, tuple[str, Callable[[Path, str], Document]]] = {
    **dict.fromkeys(MARKDOWN, ("Markdown", read_markdown)),
    **dict.fromkeys(HTML, ("HTML", lambda path, anchors: read_html(path))),
    ".pdf": ("PDF", lambda path, anchors: read_pdf(path)),
    ".docx": ("DOCX", lambda path, anchors: read_docx(path)),
    ".txt": ("plain text", lambda path, anchors: read_plain(path)),
}
LARGEST = 200_000_000  # bytes of a file, except a PDF: it is read at once, and takes up to 15 times as much memory
PACKAGES = ("markdown_it", "selectolax", "pypdfium2", "mammoth", "semchunk", "yaml")


@dataclass(frozen=True, slots=True)
class Reading:
    """How documents are read."""

    splitter: Splitter
    base_url: str = ""  # address at which the folder is published
    anchors: str = "github"  # style of the anchors in Markdown: one of `addresses.ANCHORS`
    is_strict: bool = False  # whether a document that cannot be read is an error


def is_documents(path: Path) -> bool:
    """Return whether a path is a document or a folder with one. Raises CorpusError for a folder without files."""
    files = find_files(path)[0] if path.is_dir() else [path]
    return any(file.suffix.lower() in FORMATS for file in files)


def require_packages() -> None:
    """Raise CorpusError unless the packages of the extra [documents] are installed."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise CorpusError(
            f"--corpus: the package {missing[0]} is not installed, expected the extra `documents`; install it: "
            "pip install 'semantic-search-lambda[documents]'"
        )


def read_documents(path: Path, passages: Path, reading: Reading, on_progress: OnProgress = no_progress) -> Corpus:
    """Return the passages of a document, or of all documents of a folder, after writing them into `passages`.

    The files are read in the order of their paths, and only one of them is in memory. Documents that cannot be read
    are in the corpus's `unreadable`, and those of which a part could not be in its `incomplete`; other files are
    counted in `skipped`, by suffix.
    Raises CorpusError if there is no text at all, if a file changes while it is read, and if reading.is_strict for the
    first document that cannot be read, or not as a whole.
    """
    files, skipped = find_files(path) if path.is_dir() else ([path], ())
    folder = path if path.is_dir() else path.parent
    others: dict[str, list[str]] = {}
    unreadable: list[str] = []
    incomplete: list[str] = []
    formats: Counter[str] = Counter()
    with writing_passages(passages) as append:
        for number, file in enumerate(files):
            on_progress(READ, number / len(files))
            name = file.relative_to(folder).as_posix()
            suffix = file.suffix.lower()
            if suffix not in FORMATS:
                others.setdefault(suffix, []).append(as_text(name))
                continue
            try:
                is_empty = True
                if suffix != ".pdf" and (size := file.stat().st_size) > LARGEST:
                    raise UnreadableError(f"{size:,} bytes, more than {LARGEST:,}: divide it")
                with refusing_changes(file):
                    document = FORMATS[suffix][1](file, reading.anchors)
                    if document.problem and reading.is_strict:
                        raise UnreadableError(document.problem)
                    for row in _rows(document, name, reading):
                        append(*row)
                        is_empty = False
                if is_empty:
                    raise UnreadableError("empty")
            except UnreadableError as error:
                if reading.is_strict:
                    remedy = "repair or remove it, or leave --strict out"
                    raise corpus_error(file, None, str(error), "a document with text", remedy) from error
                unreadable.append(f"{as_text(name)}: {error}")
                continue
            if document.problem:
                incomplete.append(f"{as_text(name)}: {document.problem}")
            formats[FORMATS[suffix][0]] += 1
    texts, ids, metadata = stored_columns(passages)
    if not texts:
        raise corpus_error(path, None, "; ".join(["no text", *unreadable[:1]]), "documents with text", "check the path")
    by_suffix = [Skipped(f"the suffix {suffix!r}", len(names), names[0]) for suffix, names in sorted(others.items())]
    found = Corpus(texts, ids, metadata, empty_texts=0, files=formats.total(), skipped=(*skipped, *by_suffix))
    found = replace(found, unreadable=tuple(unreadable), incomplete=tuple(incomplete))
    return replace(found, documents=dict(formats), heading_prefix=True)


def _rows(document: Document, name: str, reading: Reading) -> Iterator[tuple[str, str, str]]:
    """Yield the text, id and metadata of each passage of a document. The id is path#anchor:number."""
    address = page_address(name, reading.base_url, reading.anchors)
    name, document = as_text(name), replace(document, title=as_text(document.title))  # it can be the file's name
    numbers: Counter[str] = Counter()
    for number, passage in enumerate(divide(document, reading.splitter)):
        anchor = passage.anchor if passage.page is None else f"page={passage.page}"
        fragment = f"#{anchor}" if anchor else ""
        numbers[anchor] += 1
        stated: dict[str, object] = {"path": name, "url": address + quote(fragment, safe="#=:@!$&'()*+,;/?")}
        stated |= {"title": document.title, "headings": passage.headings, "page": passage.page}
        stated |= {"start": passage.start, "end": passage.end, "passage": number, "table": passage.table or None}
        others = {column: value for column, value in document.fields.items() if column not in stated}
        stated = {column: value for column, value in stated.items() if value is not None}
        yield passage.text, f"{name}{fragment}:{numbers[anchor]}", compact_json(stated | others)
