"""What differs between an index and the older one that it updates: which of its rows are older ones."""

from dataclasses import dataclass

import numpy as np

from semsearch.engine.bundle import MODEL, TOKENIZER, Manifest
from semsearch.engine.semantic.index import EXHAUSTIVE_ROWS
from semsearch.engine.tensors import Tensors
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.passages import passages_at, strings_at
from semsearch.indexing.digests import Digests, Positions, find_digests
from semsearch.indexing.facts import Facts, read_facts, update_facts
from semsearch.indexing.older import OlderIndex
from semsearch.indexing.update_file import MEASURED, RowDigests, kept_facts

MOST_CHANGED = 0.1  # maximum share of the rows that updates add or remove before the recall is measured again


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What differs between an index and the older one: which of its rows are older ones."""

    older: OlderIndex | None
    same_rows: Positions  # (rows,): the row of the older index with the same text, id, metadata and source, or -1
    digests: RowDigests  # digests of the rows of the index
    given_again: int = 0  # rows of the older index with another embedding, which is given, in an index without a model

    @property
    def older_rows(self) -> Positions:
        """Return the row of the older index that each row is, (rows,), -1 for a new one.

        If nothing was kept for the update, all rows are new.
        """
        return np.full(len(self.same_rows), -1, np.intp) if self.kept is None else self.same_rows

    @property
    def new(self) -> Positions:
        """Return the rows that are new."""
        return np.flatnonzero(self.older_rows < 0)

    @property
    def gone(self) -> Positions:
        """Return the rows of the older index that are gone."""
        is_gone = np.ones(self.older_count, bool)
        is_gone[self.older_rows[self.older_rows >= 0]] = False
        return np.flatnonzero(is_gone)

    @property
    def repeated_ids(self) -> int:
        """Return how many rows have the id of an earlier one."""
        return len(self.digests.ids) - len(np.unique(self.digests.ids))

    def need_measurement(self, model: Manifest) -> bool:
        """Return whether the recall and the floor are measured again; model describes the models of the new index.

        They are if a tenth of the rows was added or removed since the last time, if another model embeds them, or if
        searches look at all rows now and did not then, or the other way round.
        """
        if self.older is None or self.kept is None:
            return True
        older, rows = self.older.manifest, len(self.older_rows)
        is_other = any(older.files.get(name) != model.files.get(name) for name in (MODEL, TOKENIZER))
        is_crossed = (rows > EXHAUSTIVE_ROWS) != (self.older_count > EXHAUSTIVE_ROWS)
        return is_other or older.model != model.model or is_crossed or self.count_since_measured() > MOST_CHANGED * rows

    def count_since_measured(self) -> int:
        """Return how many rows were added or removed since the recall was measured. Another embedding is both."""
        before = 0 if self.kept is None else int(self.kept[MEASURED][0])
        return before + len(self.new) + len(self.gone) + 2 * self.given_again

    @property
    def kept(self) -> Tensors | None:
        """Return what was kept of the older index for its update, None if there is nothing that fits."""
        return None if self.older is None else self.older.kept

    @property
    def older_count(self) -> int:
        """Return the number of rows of the older index."""
        return 0 if self.older is None else self.older.rows


def find_changes(corpus: Corpus, older: OlderIndex | None) -> RowChanges:
    """Return what differs between the rows of a corpus and those of the older index."""
    older_rows = corpus.older_rows
    if older is None or older.manifest.corpus.heading_prefix != corpus.heading_prefix:
        older, older_rows = None, None
    if older_rows is None:
        older_rows = np.full(len(corpus.texts), -1, np.intp)
    new = RowDigests.of(passages_at(corpus, np.flatnonzero(older_rows < 0)), has_prefixes=corpus.heading_prefix)
    if older is None:
        return RowChanges(None, older_rows, new)
    matched = match_rows(older.digests.rows, new.rows, older_rows)
    return RowChanges(older, matched, older.digests.updated(older_rows, new))


def facts_of(corpus: Corpus, changes: RowChanges) -> Facts:
    """Return the facts of the values of a corpus. Only the metadata of rows that are new are read."""
    if changes.kept is None:
        return read_facts(corpus.metadata)
    new = read_facts(strings_at(corpus.metadata, changes.new))
    return update_facts(kept_facts(changes.kept), changes.older_rows, new)


def match_rows(older: Digests, new: Digests, older_rows: Positions) -> Positions:
    """Return older_rows, (rows,), where each new row has the first equal older row that is still free, if there is one.

    older has the digest of each older row, and new that of each row whose older row is -1.
    """
    is_taken = np.zeros(len(older), bool)
    is_taken[older_rows[older_rows >= 0]] = True
    free = np.flatnonzero(~is_taken)
    found = find_digests(new, older[free])
    _, first = np.unique(found, return_index=True)  # equal rows: the first one is it
    first = first[found[first] >= 0]
    matched = np.full(len(new), -1, np.intp)
    matched[first] = free[found[first]]
    result = older_rows.copy()
    result[older_rows < 0] = matched
    return result
