"""Embedding to hits if Amazon S3 Vectors has the embeddings of a corpus, and perhaps its texts.

S3 Vectors ranks the vectors. It applies the filter of the query first, if it can. All other limits on rows, such as
words between quotation marks, are applied here, which needs the texts in the bundle:

- up to MOST_FETCHED allowed rows: their vectors are fetched by their keys, so the search is exact,
- more allowed rows: those among the MOST_RANKED closest vectors are hits, so a search can return too few.

The vectors are those that the bundle's own index would compare. So the scores are the same too, except for the rounding
of their last decimal.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from semsearch.aws.s3vectors.client import Page, ServiceFilter, VectorsClient
from semsearch.engine.hits import DECIMALS, Mask, Rows
from semsearch.engine.passages import Passage
from semsearch.engine.quantization import Embeddings
from semsearch.engine.semantic.index import Index
from semsearch.engine.tensors import Array

KEYS_PER_REPLY = 100  # vectors of one reply: S3 Vectors returns up to 100 at a time, and GetVectors takes 100 keys
MOST_FETCHED = 1_000  # rows whose vectors are fetched: ten requests, 3 MB of JSON at 384 dimensions
MOST_RANKED = 1_000  # rows that the service is asked to rank: ten requests, one after the other


class FetchedPassages(dict[int, Passage]):
    """Passages that S3 Vectors returned, by their rows, read as those of a bundle are."""

    def id(self, row: int) -> str:
        """Return the id of one row."""
        return self[row].id

    def text(self, row: int) -> str:
        """Return the text of one row."""
        return self[row].text

    def source(self, row: int) -> str:
        """Return the text of one row: S3 Vectors does not have its markup."""
        return self[row].text

    def metadata(self, row: int) -> dict[str, Any]:
        """Return the other columns of one row."""
        return self[row].metadata


class RemoteIndex(Index):
    """The vectors of a corpus in S3 Vectors, for one query, behind the methods of Index that a search calls."""

    is_complete = False

    def __init__(
        self,
        client: VectorsClient,
        rows: int,
        allowed: Mask | None,
        condition: ServiceFilter | None,
        page: int,
        most_ranked: int,
        *,
        has_texts: bool,
    ) -> None:
        """Take the number of rows of the corpus, and the rows that the query's filter keeps, None for all.

        `condition` is the same filter for the service, None if there is none or if the service cannot apply it. It is
        asked to rank a multiple of `page`, at most `most_ranked`, and with has_texts to return them with `passages`.
        """
        self.passages = FetchedPassages()  # texts of the hits, by row
        self._client, self._has_texts = client, has_texts
        self._rows, self._allowed, self._condition = rows, allowed, condition
        self._page, self._most_ranked = page, most_ranked
        self._scores: dict[int, float] = {}
        self._ranked: list[int] = []  # the first rows that the service returned
        self._asked = 0  # number of rows that the service was asked to rank
        self._pages: Iterator[Page] = iter(())

    def best(
        self, query: Embeddings, top_k: int, allowed: Mask | None = None, *, exact: bool = False, rough: bool = False
    ) -> tuple[Rows, Array[np.float64]]:
        """Return the top_k rows most like the query, best first, and their scores: (n,) each.

        They are fewer if the service ranks no more.

        Equal rows are in the order of the corpus. query is (dim,) float32 of unit length, the same in each call.
        allowed is (rows,) bool, some of the rows that the filter keeps; None allows them all. `exact` and
        `rough` are ignored.
        """
        mask = self._allowed if allowed is None else allowed
        left = self._count(mask)
        limited_there = left == (self._count(self._allowed) if self._condition else self._rows)
        if left <= MOST_FETCHED and not limited_there:
            assert mask is not None  # otherwise all rows are left
            rows = np.flatnonzero(mask).tolist()
            self.scores(query, np.array(rows, np.intp))
        else:
            # whole pages, so that equal rows at the end are ordered here
            wanted = -(-min(top_k, left) // self._page) * self._page if limited_there else self._most_ranked
            rows = []
            for page in self._ranking(query, min(wanted, self._most_ranked)):
                rows += [row for row in page if mask is None or mask[row]]
                if len(rows) >= top_k:
                    break
        best = sorted(rows, key=lambda row: (-self._scores[row], row))[:top_k]
        return np.array(best, np.intp), np.array([self._scores[row] for row in best], np.float64)

    def _count(self, mask: Mask | None) -> int:
        if mask is None:
            return self._rows
        return int(np.count_nonzero(mask))

    def _ranking(self, query: Embeddings, top_k: int) -> Iterator[Sequence[int]]:
        """Yield the rows that the service ranks first, as they arrive. Rows that arrived before are not requested."""
        if top_k > self._asked and len(self._ranked) == self._asked:
            self._ranked, self._asked = [], top_k
            self._pages = self._client.nearest(query, top_k, self._condition, has_texts=self._has_texts)
        yield self._ranked[:]
        for page in self._pages:
            self._scores.update((row, score) for row, score, _ in page)
            self.passages.update((row, passage) for row, _, passage in page if passage is not None)
            rows = [row for row, _, _ in page]
            self._ranked += rows
            yield rows

    def scores(self, query: Embeddings, rows: Rows) -> Array[np.float64]:
        """Return the cosines of these rows to the query, to six decimals: (n,) float64.

        Rows that the service did not return are fetched. query is (dim,) float32 of unit length, rows is (n,).
        """
        missing = [row for row in rows.tolist() if row not in self._scores]
        if missing:
            products = self._client.embeddings(missing).astype(np.float64) @ query.astype(np.float64)
            self._scores.update(zip(missing, np.round(np.clip(products, -1, 1), DECIMALS).tolist(), strict=True))
        return np.array([self._scores[row] for row in rows.tolist()], np.float64)

    def embedding(self, row: int) -> Embeddings:
        """Return the stored embedding of a row of the corpus, (dim,) float32 of unit length, as a query."""
        (embedding,) = self._client.embeddings([row])
        unit: Embeddings = embedding / (np.linalg.norm(embedding) or 1)
        return unit
