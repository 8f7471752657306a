"""Several changes to an index, of which one new bundle is made."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from semsearch.engine.bundle import COLUMNS
from semsearch.engine.errors import OptionError
from semsearch.engine.metadata.columns import Columns
from semsearch.engine.metadata.filters import allowed_rows
from semsearch.engine.values import Id, id_text
from semsearch.indexing.argument_names import naming_arguments
from semsearch.indexing.corpus.rows import plain_value
from semsearch.indexing.modes import Mode
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.progress import OnProgress, chosen_progress
from semsearch.indexing.replacing import replacing
from semsearch.indexing.row_plan import RowPlan
from semsearch.indexing.steps import IndexOptions, IndexSummary, make_bundle
from semsearch.indexing.texts import make_splitter, opening_texts, read_texts, texts_of_plan
from semsearch.indexing.update_file import recipe_of
from semsearch.indexing.vectors.shards import KnownRows, copy_rows


class Changing:
    """The texts of an index that is being changed: see `semsearch.changing`."""

    def __init__(self, plan: RowPlan, fresh: Path, options: IndexOptions, on_progress: OnProgress) -> None:
        """Take the rows of the index, and the unfinished folder, which gets files with the new ones."""
        self.summary: IndexSummary | None = None  # what was made, after the block
        self._plan, self._fresh, self._options, self._on_progress = plan, fresh, options, on_progress
        self._new: list[Path] = []
        self._given: list[KnownRows] = []
        self._is_changed = False

    def add(self, data: Any, *, embeddings: Any = None) -> None:
        """Add texts, whose ids must be new: rows in memory or the path of a table, as `index` takes them.

        embeddings are those of the texts, as `index` takes them, for an index without a model, which needs them.
        """
        with naming_arguments(self._options.argument_names):
            self._merge(data, "add", embeddings)

    def upsert(self, data: Any, *, embeddings: Any = None) -> None:
        """Put texts in the place of those with their ids, and new ones at the end. embeddings: see `add`."""
        with naming_arguments(self._options.argument_names):
            self._merge(data, "upsert", embeddings)

    def remove(self, ids: Id | Iterable[Id] = (), *, where: Mapping[str, Any] | None = None) -> None:
        """Remove texts by their ids, or by one id, and those that a filter finds.

        The filter is that of a search. It looks at the texts that the index had before the block.
        Raises OptionError for what is no id, BundleError for an id that no text has, and FilterError for a wrong
        filter.
        """
        removed = list(read_ids(ids))
        older, found = self._plan.older, None
        if where is not None:
            info = older.manifest.corpus
            found = allowed_rows(where, Columns(older.folder / COLUMNS, info.columns, info.rows))
        self._plan.remove(removed, found)
        self._is_changed = True

    def _merge(self, data: Any, mode: Mode, embeddings: Any) -> None:
        older, options = self._plan.older, replace(self._options.texts, embeddings=embeddings)
        maker = options.embedded_by
        if maker is None and embeddings is not None:
            raise OptionError("embeddings", "is for an index without a model here; use `index`, with its option mode")
        if maker is not None and embeddings is None:
            raise OptionError("embeddings", f"found none, expected a row by {maker} for each row that {mode} takes")
        splitter = None
        if options.split:
            splitter = make_splitter(older.folder, older.manifest, options)
        path = self._fresh / f"new-{len(self._new)}.safetensors"
        with opening_texts(data, options) as texts:
            self._plan.require_tables(mode, are_documents=texts.are_documents)
            read = read_texts(
                texts,
                passages=path,
                options=options,
                splitter=splitter,
                older=None,
                on_progress=self._on_progress,
                merged_into=older,
            )
            given = texts.given_rows(read.corpus, read.report, older.manifest.model, None)
        self._plan.merge(read.corpus, mode)
        self._given += [copy_rows(each, older.manifest.model.dim, self._fresh) for each in given]
        self._new.append(path)
        self._is_changed = True

    def finish(self) -> None:
        """Make the bundle, unless nothing has changed."""
        if not self._is_changed:
            return
        self.summary = make_bundle(
            texts_of_plan(self._plan, self._given),
            fresh=self._fresh,
            older=self._plan.older,
            options=self._options,
            on_progress=self._on_progress,
        )
        for path in self._new:
            path.unlink()


def read_ids(ids: Id | Iterable[Id]) -> Iterator[str]:
    """Yield ids as text. Raises OptionError for what is no id."""
    several: Iterable[object] = [ids]
    if isinstance(ids, Iterable) and not isinstance(ids, str | bytes):
        several = ids
    for number, value in enumerate(several):
        id = id_text(plain_value(value, number, "id"))
        if id is None:
            raise OptionError("ids", f"found {value!r:.60}, expected text or a number for each")
        yield id


@contextmanager
def changing_index(options: IndexOptions) -> Iterator[Changing]:
    """Yield the texts of the index in `options.out`, and make its next bundle at the end of the block."""
    with chosen_progress(options.progress) as on_progress, replacing(options.out) as fresh:
        options.require_unchanged()
        older = OlderIndex.open(options.out, recipe_of(options.recorded))
        texts = Changing(RowPlan(older, is_split=options.texts.split), fresh, options, on_progress)
        yield texts
        texts.finish()
