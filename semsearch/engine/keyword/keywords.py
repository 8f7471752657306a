"""Words to hits: what a query finds by its own words, and by its rewritings."""

from collections.abc import Sequence

from semsearch.engine.hits import Mask
from semsearch.engine.keyword.analyzer import quoted_parts
from semsearch.engine.keyword.matches import Matches
from semsearch.engine.keyword.rewritings import MOST_TERMS, REWRITINGS, Rewriting, attainable_score, read_query
from semsearch.engine.keyword.terms import Terms


class Keywords(Terms):
    """The terms of a corpus, and the search for texts that have those of a query."""

    rewritings: Sequence[Rewriting] = REWRITINGS

    def match(
        self,
        text: str,
        allowed: Mask | None = None,
        *,
        prefix: bool = False,
        correct: bool = True,
        without: Sequence[str] = (),
    ) -> Matches:
        """Return the rows that have terms of a text; a repeated term counts as often as it is repeated.

        correct replaces misspelled words of the text by those of the corpus, which count half. Synonyms stand for words
        of the text that are not between quotation marks. A row that has all words of one of `without` is not found.

        If the rows have several languages, a word of the text has the stem of each, because a query does not say its
        language. Every word between quotation marks must occur in a row, in any order. allowed is (rows,) bool: rows
        where it is false are not found; None allows every row. prefix: the last word of the text may be unfinished, so
        rows with words that begin with it are found too.
        """
        quoted = " ".join(quoted_parts(text))
        if quoted:
            allowed = _both(allowed, self.rows_with_words(quoted))
        for words in filter(self.terms_of, without):
            allowed = _both(allowed, ~self.rows_with_words(words))
        query = read_query(self, text, required=set(self.terms_of(quoted)), is_unfinished=prefix, is_corrected=correct)
        for rewrite in self.rewritings:
            rewrite(self, query)
        is_truncated = len(query.counts) > MOST_TERMS
        added, attainable = frozenset(query.added), attainable_score(self, query)
        return Matches(query.terms, self._rows, allowed, is_truncated, query.corrected, added, attainable)


def _both(allowed: Mask | None, others: Mask) -> Mask:
    return others if allowed is None else allowed & others
