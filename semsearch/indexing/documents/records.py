"""What an index notes of each document, so that an update reads only those that have changed."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import time_ns
from typing import NamedTuple

from semsearch.indexing.documents.looks import Looks, digest_file

# A file that changes twice at nearly the same time can have the same times after both changes. So its times say nothing
# if it was read less than two seconds after its last change: that is the coarsest unit of a disk's times.
UNSURE_NANOSECONDS = 2_000_000_000


class FileState(NamedTuple):
    """What a disk states of a file. Times are in nanoseconds."""

    size: int  # bytes
    modified: int
    changed: int  # the last change of the content, or of what the disk states
    inode: int


NO_STATE = FileState(size=-1, modified=0, changed=0, inode=0)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What an index notes of a document: the state of its file, and what was read of it except the passages.

    With the rows alone, nothing is known of the file, and the document is read.
    """

    rows: int = 0  # passages of it that the index has
    state: FileState = NO_STATE
    looks: Looks = field(default_factory=dict)  # what its reading looked at beside the file
    seen: int = 0  # when the state was asked, in nanoseconds
    digest: str = ""  # digest of the content
    running_lines: int = 0
    problem: str = ""  # what of it could not be read
    no_text: str = ""  # why it has no text, such as "empty"
    unlisted: str = ""  # why it is not to be found
    day: str = ""  # the day on which it was unlisted, if another day can change that
    canonical: str = ""  # the address that the page states
    of_site: Mapping[str, str] = field(default_factory=dict)  # its language and version
    format: str = ""  # the format that it was read as, if its suffix is that of another


FileRecords = dict[str, FileRecord]  # by path, relative to the folder as the disk has it, in the order of the passages


def record_file(path: str) -> FileRecord:
    """Return the record of a file that is about to be read. Raises OSError if it cannot be read."""
    seen = time_ns()
    return FileRecord(state=_state_of(path), seen=seen, digest=digest_file(path))


def unchanged_record(record: FileRecord, path: str) -> FileRecord | None:
    """Return the record of a file with its present state; None if its content has changed.

    A file with another state than before, or of whose state the record is not sure, is compared by its digest.
    Raises OSError if it cannot be read.
    """
    seen = time_ns()
    state = _state_of(path)
    is_sure = max(state.modified, state.changed) < record.seen - UNSURE_NANOSECONDS
    if is_sure and state == record.state:
        return record
    if state.size != record.state.size or digest_file(path) != record.digest:
        return None
    return replace(record, state=state, seen=seen)


def write_records(records: Mapping[str, FileRecord]) -> bytes:
    """Return the JSON of the records: an array for each, and the looks, which many of them share."""
    looks: dict[tuple[tuple[str, str], ...], int] = {}
    written = []
    for name, record in records.items():
        number = looks.setdefault(tuple(record.looks.items()), len(looks))
        stated = (record.running_lines, record.problem, record.no_text, record.unlisted, record.day, record.canonical)
        file = (record.rows, record.state, number, record.seen, record.digest)
        written.append((name, *file, *stated, record.of_site, record.format))
    return json.dumps({"looks": list(map(dict, looks)), "records": written}, separators=(",", ":")).encode()


def read_records(content: bytes) -> FileRecords:
    """Return the records that `write_records` wrote."""
    found = json.loads(content)
    return {
        name: FileRecord(rows, FileState._make(state), found["looks"][number], *stated)
        for name, rows, state, number, *stated in found["records"]
    }


def _state_of(path: str) -> FileState:
    status = os.stat(path)  # noqa: PTH116  a folder can have 100,000 files
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
