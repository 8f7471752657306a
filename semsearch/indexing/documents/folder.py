"""Read a folder of documents, or one, into the passages of a corpus."""

import os
import signal
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from semsearch.engine.cores import usable_cores
from semsearch.indexing.corpus.corpus import READ, Corpus, PassageRow, PassageRows, corpus_error
from semsearch.indexing.corpus.folder import SUFFIXES, ChangedFileError, find_files
from semsearch.indexing.corpus.formats import unknown_suffix
from semsearch.indexing.corpus.report import ReadReport, Skipped
from semsearch.indexing.documents.addresses import DOCUSAURUS, GITHUB
from semsearch.indexing.documents.document import NoTextError, UnreadableError
from semsearch.indexing.documents.older import OlderPassages
from semsearch.indexing.documents.reading import ReadDocument, Reading, read_document
from semsearch.indexing.file_choice import FORMATS, excluded_patterns, is_excluded, is_table, suffix_of
from semsearch.indexing.processes import KilledError, Limits, in_workers
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.walking import DOCUSAURUS_CONFIG, WalkRules, as_text, find_above

READABLE = f"documents ({', '.join(FORMATS)}) or tables ({SUFFIXES})"


def is_documents(path: Path, *, ignore: bool = True, follow_symlinks: bool = False) -> bool:
    """Return whether a path is a document or a folder with one.

    Raises CorpusError for a file that is neither a document nor a table, and for a folder without either.
    """
    expected = f"{READABLE}, in it or in a folder below it"
    unread: dict[Path, OSError] = {}
    rules = WalkRules(path, ignore=ignore, follow_symlinks=follow_symlinks)
    read, skipped = find_files(path, rules, expected, unread)
    files = [*read, *unread]
    if any(suffix_of(file) in FORMATS for file in files):
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

        Raises CorpusError with the option `strict`, for the first document that cannot be read, or not as a whole.
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
        is_built_site = self._folder / "index.html" in entries
        patterns = excluded_patterns(options.exclude, is_built_site=is_built_site)
        files = []
        for file in sorted([*entries, *unread]):
            name, suffix = self._name(file), suffix_of(file)
            is_folder = file in unread and os.path.isdir(file)  # noqa: PTH112  `is_dir` can raise the same error
            if is_excluded(name, patterns):
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
        found.formats[FORMATS[suffix_of(file)]] += 1
        found.running_lines += document.running_lines
        for column, value in document.of_site.items():
            found.of_site[column].add(value)
        if document.problem:
            found.incomplete.append(f"{name}: {document.problem}")
        yield from document.rows

    def _older_passages(self, file: Path, error: Exception) -> list[PassageRow]:
        """Return the passages that the older index has of a document that cannot be read."""
        if not isinstance(error, UnreadableError | ChangedFileError | MemoryError | OSError):
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
        is_refused = isinstance(error, OSError | ChangedFileError) and not isinstance(error, KilledError)
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
        case ChangedFileError():
            return "it was written while it was read"
        case MemoryError():
            return f"it takes {memory}"
        case OSError(strerror=str(reason)):
            return reason
    return str(error)


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


def anchors_of(folder: Path, anchors: str) -> str:
    """Return the style of anchors for a folder: the chosen one, or the one of its site."""
    if anchors != "auto":
        return anchors
    if find_above(folder, DOCUSAURUS_CONFIG) is not None:
        return DOCUSAURUS
    return GITHUB
