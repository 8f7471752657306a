"""Read a folder of documents, or one, into the passages of a corpus."""

import os
import signal
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize
from urllib.parse import quote, unquote, urlsplit

from semsearch.engine.cores import usable_cores
from semsearch.indexing.corpus.corpus import READ, ChangedRows, Corpus, OlderRows, PassageRow, corpus_error
from semsearch.indexing.corpus.folder import SUFFIXES, ChangedFileError, find_files, no_files, path_order, relative_path
from semsearch.indexing.corpus.formats import unknown_suffix
from semsearch.indexing.corpus.report import ReadReport, Skipped
from semsearch.indexing.documents.addresses import AS_FILES, DOCUSAURUS, FILES_HERE, GITHUB, MKDOCS
from semsearch.indexing.documents.document import UnreadableError
from semsearch.indexing.documents.looks import look_again
from semsearch.indexing.documents.older import OlderPassages, OlderRecords
from semsearch.indexing.documents.reading import DocumentOptions, ReadDocument, Reading, read_document, size_of
from semsearch.indexing.documents.records import FileRecord, FileRecords, unchanged_record
from semsearch.indexing.file_choice import (
    FORMATS,
    excluded_patterns,
    format_of,
    is_table,
    listed_suffixes,
    matches,
    suffix_of,
)
from semsearch.indexing.processes import KilledError, Limits, in_workers
from semsearch.indexing.progress import OnProgress, no_progress
from semsearch.indexing.walking import DOCUSAURUS_CONFIG, MKDOCS_CONFIG, WalkRules, as_text, find_above, has_files

READABLE = f"documents ({', '.join(FORMATS)}) or tables ({SUFFIXES})"
# A process takes as long to start as to read this many bytes of Markdown, 0.4 s. A small file counts as LEAST_BYTES.
BYTES_OF_WORKER, LEAST_BYTES = 100_000, 1_000


def is_documents(path: Path, *, ignore: bool, follow_symlinks: bool, include: Sequence[str] = ()) -> bool:
    """Return whether a path is a document or a folder with one. Files that match `include` are documents too.

    Raises CorpusError for a file that is neither a document nor a table, and for a folder without either.
    """
    expected = f"{READABLE}, in it or in a folder below it"
    unread: dict[str, OSError] = {}
    rules = WalkRules(path, ignore=ignore, follow_symlinks=follow_symlinks)
    read, skipped = find_files(path, rules, unread)
    files = [*read, *unread]
    if not files:
        raise no_files(path, skipped, expected)
    if any(format_of(_name_of(file, path), include) for file in files):
        return True
    if not any(map(is_table, files)) and path.exists():
        if path.is_file():
            raise unknown_suffix(path, READABLE)
        others = f"only other files, such as {as_text(relative_path(files[0], path))}"
        found = "; ".join([others, *map(str, skipped)])
        raise corpus_error(path, None, found, expected, "check the path")
    return False


def _name_of(file: str, path: Path) -> str:
    """Return the path of a file in the folder `path`, or its name if it is `path` itself."""
    return relative_path(file, path) or path.name


class _File(NamedTuple):
    """A document, or a file or folder that cannot be read."""

    path: str
    name: str  # its path in the index, as the disk has it: see `Reading.name_in_index`
    format: str  # "" for a folder


class Documents:
    """The passages of a document, or of all documents of a folder, in the order of their paths.

    The files are read by processes of their own, at most one for each core, whose memory and time are limited.
    Documents that cannot be read are in the report's `unreadable`, and those of which a part could not be in its
    `incomplete`; other files are counted in `skipped`, by suffix.

    A document that would be read as for the older index is not read: its passages are rows of that index.
    """

    def __init__(
        self,
        path: Path,
        reading: Reading,
        older: Path | None = None,
        records: Mapping[str, FileRecord] | None = None,
        found: "FoundFiles | None" = None,
    ) -> None:
        """Take the path. `older` is an index of the same folder, of which an unreadable document keeps its passages.

        `records` are those of that index, which has the passages in their order. Without them, or if `key_of_readings`
        has changed since, all documents are read. `found` counts what is found, also for other folders.
        """
        self._path = path
        self._folder = folder_of(path)
        self.readings: list[tuple[Path, Reading]] = [(path, reading)]
        self._options = placed_options(path, reading)
        self._reading = replace(reading, options=self._options)
        self._known = OlderRecords(records or {})
        self._kept = OlderPassages(older) if records is None else self._known
        self._look_again = cache(look_again)  # many documents look at the same
        self._found = FoundFiles() if found is None else found
        self._records: FileRecords = {}

    @property
    def records(self) -> FileRecords:
        """Return the records of the documents that `passages` has yielded."""
        return self._records

    def passages(self, on_progress: OnProgress = no_progress) -> ChangedRows:
        """Yield the passages: new ones, and rows of the older index that stay.

        Raises CorpusError with the option `strict`, for the first document that cannot be read, or not as a whole.
        """
        with closing(self._passages(on_progress)) as rows:
            yield from joined_runs(rows)

    def _passages(self, on_progress: OnProgress) -> ChangedRows:
        if self._reading.folder and not has_files(self._path):
            yield from self._rows_of_absent()
            return
        unread: dict[str, OSError] = {}
        files = self._files(unread)
        names = {self._name_in_folder(file) for file in files}
        known = [None if file.path in unread else self._unchanged(file, names) for file in files]
        changed = [
            Path(file.path)
            for file, record in zip(files, known, strict=True)
            if record is None and file.path not in unread
        ]
        calls = [((path,), self._reading.limits(path)) for path in changed]
        with closing(
            in_workers(_count_workers(changed), read_document, (self._folder, self._reading), calls)
        ) as results:
            for number, (file, record) in enumerate(zip(files, known, strict=True)):
                if record is not None:
                    yield from self._take(file, record, self._known.rows(file.name), names)
                    continue
                on_progress(READ, number / len(files))
                result = unread.get(file.path) or next(results)
                if isinstance(result, ReadDocument):
                    yield from self._take(file, result.record, result.rows, names)
                else:
                    yield from self._older_passages(file, result)

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written, and what was counted. Raises CorpusError without one."""
        return self._found.describe(written, self._path)

    def _files(self, unread: dict[str, OSError]) -> list[_File]:
        """Return the documents, and those files and folders of which `unread` then has the error."""
        options = self._options
        rules = WalkRules(
            self._path, ignore=options.ignore, drafts=options.drafts, follow_symlinks=options.follow_symlinks
        )
        paths, skipped = find_files(self._path, rules, unread=unread)
        self._found.note_skipped(skipped, self._reading)
        patterns = excluded_patterns(options.exclude, self._folder, paths)
        if unread:
            paths = sorted([*paths, *unread], key=path_order)
        files = []
        for path in paths:
            name = self._reading.name_in_index(_name_of(path, self._path))
            file = _File(path, name, format_of(name, options.include))
            if patterns and matches(as_text(name), patterns):
                self._found.skip("an excluded path", file.name)
            elif file.format or (path in unread and os.path.isdir(path)):  # noqa: PTH112  `is_dir` can raise the same error
                files.append(file)
            else:
                suffix = suffix_of(path)
                self._found.skip(f"the suffix {suffix!r}", file.name)
                self._found.other_suffixes[suffix] += 1
        return files

    def _unchanged(self, file: _File, names: Collection[str]) -> FileRecord | None:
        """Return the record of a document that would be read as for the older index; None if it has to be read."""
        older = self._known.record(file.name)
        if older is None:
            return None
        try:
            record = unchanged_record(older, file.path)
        except OSError:  # reading the file reports it
            return None
        if record is None or any(self._look_again(question) != answer for question, answer in record.looks.items()):
            return None
        if record is not older and self._options.anchors == DOCUSAURUS and self._is_link(file):
            return None  # it can lead to another place, which decides the address
        if self._is_copy(file, record, names) or record.no_text:
            return record
        if record.unlisted:
            return record if record.day in ("", self._reading.today.isoformat()) else None
        if (record.problem and self._options.strict) or not record.rows:  # it was left out as a copy
            return None
        return record

    def _is_copy(self, file: _File, record: FileRecord, names: Collection[str]) -> bool:
        return bool(record.canonical and copied_page(self._name_in_folder(file), record.canonical, names))

    def _name_in_folder(self, file: _File) -> str:
        return as_text(_name_of(file.path, self._path))

    def _is_link(self, file: _File) -> bool:
        return os.path.realpath(file.path) != f"{os.path.realpath(self._folder)}/{_name_of(file.path, self._path)}"

    def _take(
        self,
        file: _File,
        record: FileRecord,
        rows: Sequence[PassageRow | OlderRows],
        names: Collection[str],
    ) -> Sequence[PassageRow | OlderRows]:
        """Return the passages of a document, none for a page that is not to be found; names are those of all files."""
        found = self._found
        self._records[file.name] = record
        if self._is_copy(file, record, names):
            found.skip("a copy of the page that it names as canonical", file.name)
            self._records[file.name] = replace(record, rows=0)
            return ()
        if record.unlisted:
            found.skip(f"a page with {record.unlisted}", file.name)
            return ()
        if record.no_text:
            self._refuse_if_strict(file, record.no_text)
            found.unreadable.append(f"{as_text(file.name)}: {record.no_text}")
            return ()
        found.formats[record.format or file.format] += 1
        found.running_lines += record.running_lines
        found.note_site(record)
        if record.problem:
            found.incomplete.append(f"{as_text(file.name)}: {record.problem}")
        return rows

    def _rows_of_absent(self) -> Sequence[PassageRow | OlderRows]:
        """Return the older passages of a folder that is not there or has no files, such as one that is not mounted.

        Raises CorpusError if it is not there and has no older passages, or with the option `strict`.
        """
        rows, _ = self._kept.of(self._reading.folder)
        if rows:
            folder = _File(str(self._path), self._reading.folder, "")
            return self._older_passages(folder, UnreadableError("the folder is missing or empty"))
        if not self._path.is_dir():
            raise corpus_error(self._path, None, "nothing there", "a folder of documents", "check the path")
        return []

    def _older_passages(self, file: _File, error: Exception) -> Sequence[PassageRow | OlderRows]:
        """Return the passages that the older index has of a document that cannot be read."""
        if not isinstance(error, UnreadableError | ChangedFileError | MemoryError | OSError):
            raise error
        found, name = self._found, as_text(file.name)
        reason = _reason(error, self._reading.limits(Path(file.path)))
        self._refuse_if_strict(file, reason, error)
        rows, records = self._kept.of(file.name)
        self._records |= records
        for record in records.values():
            found.note_site(record)
        number = sum(record.rows for record in records.values())
        found.unreadable.append(f"{name}: {reason}")
        if number:
            found.unreadable[-1] += f"; its {number:,} older passages stay"
        is_refused = isinstance(error, OSError | ChangedFileError) and not isinstance(error, KilledError)
        if is_refused:
            found.refused.append(name)
        if number or is_refused:
            found.outdated.append(found.unreadable[-1])
        return rows

    def _refuse_if_strict(self, file: _File, reason: str, error: Exception | None = None) -> None:
        if self._options.strict:
            remedy = "repair or remove it, or leave out --strict"
            raise corpus_error(Path(file.path), None, reason, "a document with text", remedy) from error


@dataclass(slots=True)
class FoundFiles:
    """What was found in folders of documents. The fields of ReadReport of these names explain most of them."""

    skipped: dict[str, Skipped] = field(default_factory=dict)  # what was not looked at, by the reason
    others: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # files left out, by the reason
    formats: Counter[str] = field(default_factory=Counter)
    other_suffixes: Counter[str] = field(default_factory=Counter)
    unreadable: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    of_site: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    running_lines: int = 0

    def describe(self, written: Corpus, path: Path) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written, and what was counted. Raises CorpusError without one."""
        if not written.texts:
            no_text = "; ".join(["no text", *self.unreadable[:1]])
            raise corpus_error(path, None, no_text, "documents with text", "check the path")
        others = [Skipped(reason, len(names), names[0]) for reason, names in sorted(self.others.items())]
        report = ReadReport(
            files=self.formats.total(),
            skipped=(*self.skipped.values(), *others),
            documents=dict(self.formats),
            other_suffixes=dict(self.other_suffixes.most_common()),
            unreadable=tuple(self.unreadable),
            outdated=tuple(self.outdated),
            refused=tuple(self.refused),
            incomplete=tuple(self.incomplete),
            running_lines=self.running_lines,
            of_site={column: tuple(sorted(values)) for column, values in self.of_site.items()},
        )
        suffixes = listed_suffixes(self.other_suffixes)
        return replace(written, heading_prefix=True, other_suffixes=suffixes), report

    def note_skipped(self, skipped: Iterable[Skipped], reading: Reading) -> None:
        """Count what was skipped in a folder."""
        for each in skipped:
            example, count = as_text(reading.name_in_index(each.example)), each.count
            if known := self.skipped.get(each.reason):
                example, count = known.example, count + known.count
            self.skipped[each.reason] = Skipped(each.reason, count, example)

    def note_site(self, record: FileRecord) -> None:
        """Add the language and the version that a document has."""
        for column, value in record.of_site.items():
            self.of_site[column].add(value)

    def skip(self, reason: str, name: str) -> None:
        """Count a file that is left out."""
        self.others[reason].append(as_text(name))


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


def _count_workers(files: Collection[Path]) -> int:
    """Return the number of processes that read some files."""
    work = sum(max(size_of(file), LEAST_BYTES) for file in files)
    return min(usable_cores(), len(files), 1 + work // BYTES_OF_WORKER)


def joined_runs(rows: Iterable[PassageRow | OlderRows]) -> Iterator[PassageRow | OlderRows]:
    """Yield the rows with one run instead of several that follow each other."""
    run = OlderRows(0, 0)
    for row in rows:
        if isinstance(row, OlderRows) and row.begin == run.end:
            run = OlderRows(run.begin, row.end)
            continue
        if run.end > run.begin:
            yield run
        run = OlderRows(0, 0)
        if isinstance(row, OlderRows):
            run = row
        else:
            yield row
    if run.end > run.begin:
        yield run


def folder_of(path: Path) -> Path:
    """Return the folder of the documents of a path: a folder itself, or that of a document."""
    return path if path.is_dir() else path.parent


def placed_options(path: Path, reading: Reading) -> DocumentOptions:
    """Return the options with what the place of the documents decides: the style of anchors, and the base URL."""
    folder, options = folder_of(path), reading.options
    base_url = options.base_url
    if base_url == FILES_HERE:
        base_url = folder.resolve().as_uri()
    elif base_url and reading.folder:
        base_url = f"{base_url.rstrip('/')}/{quote(reading.folder, errors='surrogateescape')}"
    return replace(options, base_url=base_url, anchors=_anchors_of(folder, options))


def _anchors_of(folder: Path, options: DocumentOptions) -> str:
    """Return the style of anchors for a folder: the chosen one, or the one of its site.

    MkDocs counts only if the base URL does not show the files themselves.
    """
    if options.anchors != "auto":
        return options.anchors
    site = find_above(folder, (*DOCUSAURUS_CONFIG, *MKDOCS_CONFIG))
    if site is not None and any((site / name).is_file() for name in DOCUSAURUS_CONFIG):
        return DOCUSAURUS
    if site is None or AS_FILES in options.base_url:
        return GITHUB
    return MKDOCS
