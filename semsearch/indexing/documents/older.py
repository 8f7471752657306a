"""The passages that an older index has of documents that cannot be read now."""

import json
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from semsearch.engine.bundle import PASSAGES
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.corpus.corpus import PassageRow
from semsearch.indexing.corpus.passages import stored_columns, stored_rows


class OlderPassages:
    """The passages of an index of the same folder. They are read when the first document needs them."""

    def __init__(self, bundle: Path | None) -> None:
        """Take the older index, None if there is none."""
        self._bundle = bundle

    def of(self, name: str) -> list[PassageRow]:
        """Return the text, id, metadata and source of each passage of a document, or of all documents of a folder."""
        rows = {row for row, path in enumerate(self._paths) if path == name or path.startswith(f"{name}/")}
        if self._bundle is None or not rows:
            return []
        return [passage for row, passage in enumerate(stored_rows(self._bundle / PASSAGES)) if row in rows]

    @cached_property
    def _paths(self) -> list[str]:
        """The path of the document of each passage; none if there is no older index, or if it is damaged."""
        if self._bundle is not None:
            with suppress(TensorsError):
                _, _, metadata = stored_columns(self._bundle / PASSAGES)
                return [json.loads(stated).get("path", "") for stated in metadata]
        return []
