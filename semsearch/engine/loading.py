"""A bundle, open and warmed up: everything that a process needs to answer requests."""

from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import gmtime, strftime
from typing import TYPE_CHECKING, Any, Self

from semsearch.engine.bundle import (
    COLUMNS,
    INDEX,
    KEYWORDS,
    MANIFEST,
    PASSAGES,
    QUERY_TABLE,
    BundleError,
    Manifest,
    ModelInfo,
    check_bundle,
    read_manifest,
)
from semsearch.engine.embedder import Embedder, QueryTable
from semsearch.engine.passages import Passages
from semsearch.engine.semantic.index import Index

if TYPE_CHECKING:
    from semsearch.engine.hits import Mask
    from semsearch.engine.keyword.keywords import Keywords
    from semsearch.engine.metadata.columns import Columns, IdColumn
    from semsearch.engine.rerank.reranker import Reranker


class RemoteTextsError(BundleError):
    """A use of texts that are in S3 Vectors, where they can only be searched."""


class NoModelError(BundleError):
    """A use of the model of a bundle that has none."""

    def __init__(self, model: ModelInfo) -> None:
        """Take what the bundle says of the model elsewhere."""
        super().__init__(f"model: this bundle has none, its embeddings are made by {model.name}; make them there")


@dataclass(frozen=True)
class AnyBundle:
    """What every open bundle has: its manifest, and its model if it has one."""

    manifest: Manifest
    embedder: Embedder | None  # None if all embeddings are made elsewhere: see `require_embedder`
    folder: Path
    table: QueryTable | None = field(default=None, kw_only=True)  # embeds queries; None if the embedder does
    made: str = field(default="", kw_only=True)  # when the index was made, such as 2026-11-27T10:00:00Z: see `load`

    @property
    def is_view(self) -> bool:
        """Whether only some texts of the bundle can be found, as if it had no others."""
        return False

    @property
    def rows(self) -> int:
        """The number of texts, as replies state it."""
        return self.manifest.corpus.rows

    @property
    def column_kinds(self) -> dict[str, str]:
        """The type of each column that filters compare."""
        return self.manifest.corpus.columns

    def open_all(self) -> None:
        """Open all parts now, because an index may put another bundle in this one's place before they are needed."""


class RemoteBundle(AnyBundle):
    """A bundle whose texts and embeddings are in S3 Vectors."""


@dataclass(frozen=True)
class LoadedBundle(AnyBundle):
    """A complete bundle. Its files stay open as long as it lives.

    Columns, keywords and reranker are opened by the first request that needs them, or by `open_all`. Each raises
    BundleError if another bundle has taken this one's place since it was loaded, and TensorsError if a file is damaged.
    """

    passages: Passages
    index: Index
    # (rows,): the rows that can be found; None if no text was removed and this is no view
    allowed: "Mask | None" = None
    whole: "LoadedBundle | None" = None  # the bundle that this one is a view of

    @property
    def is_view(self) -> bool:
        """Whether this is a view of a whole bundle."""
        return self.whole is not None

    def view(self, condition: dict[str, Any]) -> Self:
        """Return a bundle that finds only the texts that a filter keeps. The other texts change no result.

        There are two exceptions: the average length of a text in BM25, and the manifest, are those of the whole bundle.
        Raises FilterError as `allowed_rows` does.
        """
        from semsearch.engine.metadata.filters import allowed_rows  # only a caller with a filter needs it

        return replace(self, allowed=self.among_allowed(allowed_rows(condition, self.columns)), whole=self)

    @property
    def rows(self) -> int:
        """The number of texts, as replies state it."""
        rows = self.manifest.corpus.rows
        if self.whole is None:
            return rows
        return self.number(rows)

    def number(self, row: int) -> int:
        """Return the number of a row, as replies state it: in a view, its place among the rows of the view."""
        if self.whole is None or self.allowed is None:
            return row
        return int(self.allowed[:row].sum())

    def find(self, id: str) -> int | None:
        """Return the first row that has an id and can be found, None if there is none."""
        return self.ids.find(id, self.allowed)

    def among_allowed(self, mask: "Mask") -> "Mask":
        """Return the rows of a mask (rows,) that can be found."""
        if self.allowed is None:
            return mask
        return mask & self.allowed

    def among(self, allowed: "Mask") -> Self:
        """Return the bundle in which only rows of a mask (rows,) can be found, with the parts that are open already."""
        found = copy(self)
        object.__setattr__(found, "allowed", allowed)  # the copy is not shared yet
        return found

    @cached_property
    def ids(self) -> "IdColumn":
        """The ids as a column, by which rows are found."""
        from semsearch.engine.metadata.columns import IdColumn  # only a request with an id needs it

        if self.whole is not None:
            return self.whole.ids
        return IdColumn(self.passages.ids)

    @cached_property
    def columns(self) -> "Columns":
        """The columns that filters compare."""
        from semsearch.engine.metadata.columns import Columns  # only a request with a filter needs them

        if self.whole is not None:
            return self.whole.columns
        self._check_place()
        return Columns(self.folder / COLUMNS, self.manifest.corpus.columns, self.manifest.corpus.rows, lambda: self.ids)

    @cached_property
    def keywords(self) -> "Keywords | None":
        """The postings of keyword search, None if the bundle has none."""
        from semsearch.engine.keyword.keywords import Keywords  # only a request for keywords needs them

        if self.manifest.corpus.keywords is None:
            return None
        if self.whole is not None and self.allowed is not None:
            keywords = self.whole.keywords
            assert keywords is not None  # the manifest says so
            return keywords.among(self.allowed, self.passages.text)
        self._check_place()
        info, rows = self.manifest.corpus.keywords, self.manifest.corpus.rows
        if self.embedder is None:
            return Keywords(self.folder / KEYWORDS, info, rows)
        return Keywords(self.folder / KEYWORDS, info, rows, self.embedder.split_word)

    @cached_property
    def reranker(self) -> "Reranker | None":
        """The cross-encoder, None if the bundle has none."""
        if self.manifest.rerank is None:
            return None
        if self.whole is not None:
            return self.whole.reranker
        from semsearch.engine.rerank.reranker import Reranker  # only a request with rerank needs it

        self._check_place()
        return Reranker.open(self.folder, self.manifest)

    @property
    def column_kinds(self) -> dict[str, str]:
        """The type of each column that filters compare, and of `id`."""
        return {"id": "string"} | self.manifest.corpus.columns

    def open_all(self) -> None:
        """Open the columns, the keywords, the reranker and the model."""
        _ = self.columns, self.keywords, self.reranker
        if self.embedder is not None:
            self.embedder.open_session()

    def _check_place(self) -> None:
        if read_manifest(self.folder) != self.manifest:
            raise BundleError(f"{self.folder}: was replaced after it was loaded; start this process again")


def load(bundle: Path, embedder: Embedder | None = None) -> AnyBundle:
    """Open a bundle and warm it up: a LoadedBundle, or a RemoteBundle if its texts are in S3 Vectors.

    The model of a bundle with a query table is opened by the first request that needs it. A bundle without a model is
    warmed up with a stored embedding.
    `embedder` is the bundle's own, if it is open already. The field `made` is the time of the file manifest.json: the
    files themselves state no time, so that the same texts make the same bytes.
    Raises BundleError or TensorsError if it cannot be used.
    """
    manifest = check_bundle(bundle)
    made = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime((bundle / MANIFEST).stat().st_mtime))
    table = embedding = None
    if manifest.has_model:
        table = None if manifest.queries is None else QueryTable.open(bundle / QUERY_TABLE, manifest.model.dim)
        embedder = embedder or Embedder.open(bundle, manifest.model, is_lazy=table is not None)
        tokens = embedder.tokenize(["warm up"], role="query")
        if table is None:
            (embedding,) = embedder.embed(tokens)
        else:
            (embedding,) = table.embed(tokens)
    if manifest.corpus.vectors is not None:
        return RemoteBundle(manifest, embedder, bundle, table=table, made=made)
    passages = Passages(bundle / PASSAGES)
    index = Index.open(bundle / INDEX, manifest.corpus.stages)
    found, expected = (len(index), len(passages), index.dim), (*[manifest.corpus.rows] * 2, manifest.model.dim)
    if found != expected:
        where = f"{bundle}: rows of the index, rows of the passages and dim"
        raise BundleError(f"{where} are {found}, the manifest says {expected}; run `semsearch index` again")
    if embedding is None:
        embedding = index.embedding(0)
    for hit in index.search(embedding, top_k=1):
        passages.text(hit.row)
    return LoadedBundle(manifest, embedder, bundle, passages, index, table=table, made=made)


def load_bundle(bundle: Path | str) -> LoadedBundle:
    """Open the bundle in a folder, for a program that uses its parts: `embedder`, `index`, `keywords`, `columns`.

    It has embedded and searched once, so that the first search is not slower. `embedder` is None in a bundle without a
    model, whose embeddings are made elsewhere.

    Example:
        >>> from semsearch import load_bundle
        >>> bundle = load_bundle("bundle")
        >>> (embedding,) = bundle.embedder.embed(bundle.embedder.tokenize(["warm coat"], role="query"))
        >>> bundle.passages[bundle.index.search(embedding, top_k=1)[0].row].id
        'c-1'

    Raises BundleError or TensorsError if it cannot be used, or if its texts are in S3 Vectors.
    """
    return require_texts(load(Path(bundle)))


def require_embedder(bundle: AnyBundle) -> Embedder:
    """Return the open model. Raises NoModelError if the bundle has none."""
    if bundle.embedder is None:
        raise NoModelError(bundle.manifest.model)
    return bundle.embedder


def require_texts(bundle: AnyBundle) -> LoadedBundle:
    """Return the same bundle. Raises RemoteTextsError if its texts are in S3 Vectors."""
    if not isinstance(bundle, LoadedBundle):
        raise RemoteTextsError("corpus: found in S3 Vectors, expected in the bundle; search for the texts")
    return bundle
