"""The passages that an older index has of documents, by its records or, without them, by the path of each passage."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from semsearch.engine.bundle import PASSAGES
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.corpus.corpus import OlderRows, PassageRow
from semsearch.indexing.corpus.passages import stored_columns, stored_rows
from semsearch.indexing.documents.records import FileRecord, FileRecords
from semsearch.indexing.walking import as_text


class OlderRecords:
    """The rows of an index of the same folder, which has the passages of the documents in the order of the records."""

    def __init__(self, records: Mapping[str, FileRecord]) -> None:
        """Take the records of the older index."""
        self._records = records

    def record(self, name: str) -> FileRecord | None:
        """Return the record of a document, None if there is none."""
        return self._records.get(name)

    def rows(self, name: str) -> Sequence[OlderRows]:
        """Return the rows of a document that has a record."""
        return [self._rows[name]]

    def of(self, name: str) -> tuple[Sequence[OlderRows], FileRecords]:
        """Return the rows of a document, or of all documents of a folder, and their records."""
        names = [name] if name in self._records else self._below[name]
        return [self._rows[each] for each in names], {each: self._records[each] for each in names}

    @cached_property
    def _rows(self) -> dict[str, OlderRows]:
        found, end = {}, 0
        for name, record in self._records.items():
            found[name] = OlderRows(end, end + record.rows)
            end += record.rows
        return found

    @cached_property
    def _below(self) -> Mapping[str, Sequence[str]]:
        """The documents of each folder and of the folders below it."""
        found = defaultdict[str, list[str]](list)
        for name in self._records:
            folder = name
            while folder := folder.rpartition("/")[0]:
                found[folder].append(name)
        return found


class OlderPassages:
    """The passages of an index of the same folder that has no records. They are read when a document needs them."""

    def __init__(self, bundle: Path | None) -> None:
        """Take the older index, None if there is none."""
        self._bundle = bundle

    def of(self, name: str) -> tuple[Sequence[PassageRow], FileRecords]:
        """Return the passages of a document, or of all documents of a folder, and a record of their number."""
        path = as_text(name)
        rows = {row for row, each in enumerate(self._paths) if each == path or each.startswith(f"{path}/")}
        if self._bundle is None or not rows:
            return [], {}
        passages = [passage for row, passage in enumerate(stored_rows(self._bundle / PASSAGES)) if row in rows]
        numbers = Counter(self._paths[row] for row in sorted(rows))
        return passages, {each: FileRecord(rows=number) for each, number in numbers.items()}

    @cached_property
    def _paths(self) -> list[str]:
        """The path of the document of each passage; none if there is no older index, or if it is damaged."""
        if self._bundle is not None:
            with suppress(TensorsError):
                _, _, metadata = stored_columns(self._bundle / PASSAGES)
                return [json.loads(stated).get("path", "") for stated in metadata]
        return []
