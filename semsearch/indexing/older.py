"""The index that is updated: its rows, and what was kept of them for an update."""

from dataclasses import dataclass
from pathlib import Path

from semsearch.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    PASSAGES,
    TRUNCATED,
    BundleError,
    Manifest,
    check_bundle,
    read_manifest,
)
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import Tensors
from semsearch.indexing.bundles import check_file
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.passages import stored_columns, stored_rows, stored_sources
from semsearch.indexing.facts import IS_STRING, read_facts
from semsearch.indexing.update_file import RowDigests, kept_facts, read_update


@dataclass(frozen=True, slots=True)
class OlderIndex:
    """An index whose rows the next one can take: its folder, its manifest, and digests of its rows.

    kept is None if the index has no update.safetensors, or one that does not fit: then nothing but its embeddings and
    its passages can be taken.
    """

    folder: Path
    manifest: Manifest
    digests: RowDigests
    kept: Tensors | None

    @classmethod
    def open(cls, folder: Path, recipe: str) -> "OlderIndex":
        """Open an index. `require_unchanged` says at the end whether all that was read of it is of this index.

        Raises BundleError or TensorsError if it is damaged, has no texts here, or is being replaced.
        """
        manifest = check_bundle(folder)
        if manifest.corpus.vectors is not None:
            raise BundleError(f"{folder}: its texts are in S3 Vectors; name the bundle that was published there")
        for name in (INDEX, PASSAGES, TRUNCATED):
            if name in manifest.files:
                check_file(folder, name, manifest)
        Index.open(folder / INDEX, manifest.corpus.stages)  # checks the tensors
        kept = read_update(folder, manifest, recipe) if _are_whole(folder, manifest) else None
        if kept is not None:
            digests = RowDigests.read(kept)
        else:
            digests = RowDigests.of(stored_rows(folder / PASSAGES), has_prefixes=manifest.corpus.heading_prefix)
        older = cls(folder, manifest, digests, kept)
        older.require_unchanged()
        return older

    def require_unchanged(self) -> None:
        """Raise BundleError if another command has replaced the index since it was opened."""
        if read_manifest(self.folder) != self.manifest:
            found = "was replaced while it was read"
            raise BundleError(f"{self.folder}: {found}; run the command again when no other one runs")

    def stored_kinds(self) -> dict[str, str]:
        """Return the types of its columns as its metadata has the values: number only if JSON has numbers."""
        kinds = dict(self.manifest.corpus.columns)
        facts = read_facts(self.corpus().metadata) if self.kept is None else kept_facts(self.kept)
        for name, column in facts.items():
            if kinds.get(name) == "number" and (column & IS_STRING).any():
                kinds[name] = "string"
        return kinds

    def corpus(self) -> Corpus:
        """Return its passages."""
        path = self.folder / PASSAGES
        texts, ids, metadata = stored_columns(path)
        return Corpus(texts, ids, metadata, sources=stored_sources(path))

    @property
    def rows(self) -> int:
        """Return the number of its rows."""
        return self.manifest.corpus.rows


def _are_whole(folder: Path, manifest: Manifest) -> bool:
    """Return whether the columns and the keywords of an index are whole. Damaged ones are made of the texts."""
    try:
        for name in {COLUMNS, KEYWORDS} & manifest.files.keys():
            check_file(folder, name, manifest)
    except BundleError:
        return False
    return True
