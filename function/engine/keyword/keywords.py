"""Words to hits: BM25 over postings that the export has scored already and that are memory-mapped.

BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) adds up an impact of each of the query's
terms: idf(term) * tf / (tf + K1 * (1 - B + B * length / mean length)). tf says how often the term occurs in the row,
and idf is log(1 + (rows - n + 0.5) / (n + 0.5)) for a term that n rows have, as in Lucene. An impact depends on nothing
in the query, so the export stores it, in 8 bit with a scale for each term.

    terms, terms.offsets        UTF-8 bytes of the terms, sorted by byte, and offsets (terms + 1,) uint64
    postings.offsets            where the postings of each term begin (terms + 1,) uint64
    rows, impacts               the row and the impact of each posting, uint32 and uint8; the rows of a term ascend
    scales                      the scale of each term's impacts (terms,) float32
    words                       UTF-8 bytes of the different words of three letters or more, without codes and numbers,
                                sorted, each followed by a line feed: what replaces a misspelled word of a query

A query reads the postings of its own terms and no others: a term is found by binary search over the mapped bytes,
or is known from an earlier query.
function/engine/keyword/matches.py computes the scores.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import islice
from operator import or_
from pathlib import Path

import numpy as np

from function.engine.arrays import AnyArray
from function.engine.bundle import KeywordsInfo
from function.engine.keyword.analyzer import Stem, find_stemmer, quoted_parts, split_terms
from function.engine.keyword.matches import Matches, Postings, Term
from function.engine.semantic.index import Mask
from function.engine.tensors import TensorsError, map_tensors

K1 = 1.2  # saturation: the higher, the more a repeated term counts; K1 and B are Lucene's defaults
B = 0.75  # length normalization: 0 ignores the length of a text, 1 divides by it
MOST_TERMS = 1_000  # maximum terms of a query; further ones are ignored, so that no request takes seconds
KNOWN_TERMS = 4_096  # terms of earlier queries whose numbers are kept, because queries share many of their words
LONGEST_KNOWN = 64  # characters of a term whose number is kept; without a limit, long ones could take a gigabyte
KINDS = {  # dtypes of the tensors
    "terms": "uint8",
    "terms.offsets": "uint64",
    "postings.offsets": "uint64",
    "rows": "uint32",
    "impacts": "uint8",
    "scales": "float32",
    "words": "uint8",
}
CORRECTED_WEIGHT = 0.5  # weight of a term that replaces a misspelled word: it can be the wrong one


class Keywords:
    """The corpus's terms and their postings, memory-mapped."""

    def __init__(
        self, path: Path, info: KeywordsInfo, rows: int, split_word: Callable[[str], Sequence[str]] = list
    ) -> None:
        """Map a keywords.safetensors; info describes it, and rows is the number of rows of the corpus.

        split_word is that of the bundle's embedder, which tells misspelled words from correct ones.
        Raises TensorsError if the file is not whole or holds something else.
        """
        tensors = map_tensors(path)
        found = {name: (tensor.dtype.name, *tensor.shape) for name, tensor in tensors.items()}
        lengths = {
            "terms": tensors["terms"].size if "terms" in tensors else 0,
            "terms.offsets": info.terms + 1,
            "postings.offsets": info.terms + 1,
            "rows": info.postings,
            "impacts": info.postings,
            "scales": info.terms,
            "words": tensors["words"].size if "words" in tensors else 0,
        }
        expected = {name: (KINDS[name], length) for name, length in lengths.items()}
        if found != expected:
            raise TensorsError(f"{path}: holds {found}, expected {expected}; run `python -m export` again")
        for name in ("terms", "postings"):
            offsets, length = tensors[f"{name}.offsets"], lengths["terms" if name == "terms" else "rows"]
            if int(offsets[0]) != 0 or int(offsets[-1]) != length:
                raise TensorsError(
                    f"{path}: offsets of {name} go from {offsets[0]} to {offsets[-1]}, expected 0 to {length}; "
                    "run `python -m export` again"
                )
        self.info = info
        self.split_word = split_word
        self._tensors = tensors
        self._rows = rows
        self._stems = [find_stemmer(language) for language in info.stemmers]
        # without `self`, or the mapped file would stay open until the garbage collector runs
        self._find = lru_cache(KNOWN_TERMS)(partial(_find_term, tensors["terms"].data, tensors["terms.offsets"].data))

    def match(self, text: str, allowed: Mask | None = None, *, correct: bool = True) -> Matches:
        """Return the rows that have terms of a text; a repeated term counts as often as it is repeated.

        correct replaces misspelled words of the text by those of the corpus, which count half.

        If the rows have several languages, a word of the text has the stem of each, because a query does not say its
        language. Every word between quotation marks must occur in a row, in any order. allowed is (rows,) bool: rows
        where it is false are not found; None allows every row.
        """
        quoted = " ".join(quoted_parts(text))
        required = set(self.terms_of(quoted))
        counts = self.terms_of(text)
        terms, unknown = [], set[str]()
        for term, repeats in islice(counts.items(), MOST_TERMS):  # a text with quoted parts is too short for more
            postings = self._postings(term, repeats)
            if postings is None:
                unknown.add(term)
            else:
                terms.append(Term([postings]))
        if required:
            holds = np.logical_or.reduce([self._rows_with(self._split_by(stem, quoted)) for stem in self._stems])
            allowed = holds if allowed is None else allowed & holds
        corrected = {}
        if correct and unknown - required:
            from function.engine.keyword.corrections import find_corrections  # only a misspelled word needs it

            found = find_corrections(text, unknown - required, sum(map(len, terms)), self)
            for word, repeats, corrected[word] in found:
                weight = repeats * CORRECTED_WEIGHT
                alternatives = [self._postings(term, weight) for each in corrected[word].values() for term in each]
                terms.append(Term([each for each in alternatives if each is not None]))
        return Matches(terms, self._rows, allowed, len(counts) > MOST_TERMS, corrected)

    @property
    def words(self) -> AnyArray:
        """The words of the corpus, as the file has them."""
        return self._tensors["words"]

    def terms_of(self, text: str) -> Mapping[str, int]:
        """Return the terms of a text in each language of the corpus, and how often the text has each."""
        return reduce(or_, [Counter(self._split_by(stem, text)) for stem in self._stems])

    def _split_by(self, stem: Stem | None, text: str) -> list[str]:
        return split_terms(text, stem, is_query=True)

    def _rows_with(self, terms: Collection[str]) -> Mask:
        """Return which rows have all these terms, (rows,) bool."""
        holds = np.ones(self._rows, np.bool_)
        for term in terms:
            has_term = np.zeros(self._rows, np.bool_)
            has_term[self.rows_of(term)] = True
            holds &= has_term
        return holds

    def rows_of(self, term: str) -> AnyArray:
        """Return the rows that have a term, ascending: (n,) uint32."""
        postings = self._postings(term, 1)
        return np.empty(0, np.uint32) if postings is None else postings.rows

    def _postings(self, term: str, repeats: float) -> Postings | None:
        """Return the postings of a term that a query repeats this often, None if no row has the term."""
        place = self._find(term) if len(term) <= LONGEST_KNOWN else self._find.__wrapped__(term)
        if place is None:
            return None
        begin, end = self._tensors["postings.offsets"][place : place + 2].tolist()
        weight = np.float32(float(self._tensors["scales"][place]) * repeats)
        return Postings(self._tensors["rows"][begin:end], self._tensors["impacts"][begin:end], weight)


def _find_term(terms: memoryview, offsets: memoryview, term: str) -> int | None:
    """Return the number of a term among the sorted ones, None if it is not there."""
    key, count = term.encode(), len(offsets) - 1

    def term_at(place: int) -> bytes:
        return bytes(terms[offsets[place] : offsets[place + 1]])

    place = bisect_left(range(count), key, key=term_at)
    return place if place < count and term_at(place) == key else None
