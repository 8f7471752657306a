"""Several folders of documents in one index.

The ids and paths of their documents begin with the name of the folder, which is a column too.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from semsearch.indexing.corpus.corpus import ChangedRows, Corpus
from semsearch.indexing.corpus.report import ReadReport
from semsearch.indexing.documents.folder import Documents, FoundFiles
from semsearch.indexing.documents.reading import Reading
from semsearch.indexing.documents.records import FileRecord, FileRecords
from semsearch.indexing.progress import OnProgress, no_progress


def paths_in(data: Any) -> list[str | Path]:
    """Return the paths of texts: data itself, or a sequence of Paths; none for rows in memory, which strings can be."""
    if isinstance(data, str | Path):
        return [data]
    if isinstance(data, Sequence) and all(isinstance(each, Path) for each in data):
        return list(data)
    return []


class SeveralDocuments:
    """The passages of the documents of several folders, one folder after the other."""

    def __init__(
        self,
        readings: Sequence[tuple[Path, Reading]],
        older: Path | None = None,
        records: Mapping[str, FileRecord] | None = None,
    ) -> None:
        """Take the folders, and how each is read. `older` and `records` are those of `Documents`."""
        self.readings: list[tuple[Path, Reading]] = list(readings)
        self._found = FoundFiles()
        self._folders = [Documents(path, reading, older, records, self._found) for path, reading in readings]

    @property
    def records(self) -> FileRecords:
        """Return the records of the documents that `passages` has yielded."""
        return {name: record for documents in self._folders for name, record in documents.records.items()}

    def passages(self, on_progress: OnProgress = no_progress) -> ChangedRows:
        """Yield the passages, as `Documents.passages` does."""
        for number, documents in enumerate(self._folders):

            def tell(step: str, share: float, texts: int = 0, before: int = number) -> None:
                on_progress(step, (before + share) / len(self._folders), texts)

            yield from documents.passages(tell)

    def describe(self, written: Corpus) -> tuple[Corpus, ReadReport]:
        """Return the corpus of the passages that were written, and what was counted. Raises CorpusError without one."""
        return self._found.describe(written, Path(", ".join(str(path) for path, _ in self.readings)))
