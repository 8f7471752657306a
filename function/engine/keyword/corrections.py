"""Misspelled words of a query: the terms of the corpus that are nearest to them.

The distance of two words is the number of errors between them: a letter added, left out or replaced, or two neighbours
exchanged (optimal string alignment). It is computed for many terms at once, with one bit for each letter of the word
(Hyyrö, A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances, 2003).

A word is compared with the terms that have its first letter, and with those that have its last two bytes. One error
leaves the first letter or the last two as they are, so every term at distance 1 is found; one at distance 2 is missed
if both parts are wrong. Terms are stems, so an error in the ending hides the stem: "searchinh" has the stem
"searchinh". Therefore words with one error in their last letters are stemmed too and looked up.

The constants were chosen on CISI and on Python's own documentation, with letters replaced at random.
Left out: words between quotation marks, codes with digits, and how frequent an error is. Imported by the first query
with a term that the corpus does not have.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice
from string import ascii_lowercase

import numpy as np

from function.engine.arrays import AnyArray, Array
from function.engine.keyword.analyzer import Stem, find_codes, split_terms

SHORTEST = 4  # letters of a word that is corrected
TWO_ERRORS = 6  # letters from which a word can have two errors instead of one
LONGEST = 60  # letters of a word, as each takes a bit of 64
SHORTEST_STEM = 3  # letters
MOST_NEAREST = 2  # terms that replace a word; more of them find more texts that do not answer
MOST_CORRECTED = 16  # words of a query that are corrected
MOST_COMPARED = 1 << 18  # terms that the words of a query are compared with, all words together
SUFFIX = 4  # number of last letters in which an error can hide the stem
MOST_LETTERS = 48  # different letters that can replace one of these
LAST_CODE = (1 << 16) - 1  # code points from here on are taken for the same letter

Terms = Array[np.intp]  # places of terms in the sorted terms, (n,)
Correction = Mapping[str, str]  # the terms that replace a word, each with a word that has this stem, for people


def find_corrections(
    text: str, unknown: set[str], tensors: Mapping[str, AnyArray], stems: Sequence[Stem | None]
) -> Iterator[tuple[str, int, Correction]]:
    """Yield each word of a text whose terms are `unknown`, how often it occurs, and its nearest terms if it has any.

    tensors are those of a keywords.safetensors, and stems are those of its terms. With several stemmers, a
    word has the nearest terms by each.
    """
    words = Counter(
        word
        for code, parts in find_codes(text)
        if not any(map(str.isdigit, code))
        for word in parts
        if SHORTEST <= len(word) <= LONGEST
        and word.isalpha()
        and all(unknown.issuperset(split_terms(word, stem)) for stem in stems)
    )
    vocabularies = [Vocabulary(tensors, stem, MOST_COMPARED // len(stems)) for stem in stems] if words else []
    for word, repeats in islice(words.items(), MOST_CORRECTED):
        correction = {term: shown for own in vocabularies for term, shown in own.correct(word).items()}
        if correction:
            yield word, repeats, correction


class Vocabulary:
    """The terms of a keywords.safetensors, and how many more of them a query is compared with."""

    def __init__(self, tensors: Mapping[str, AnyArray], stem: Stem | None, most_compared: int) -> None:
        """Take the tensors, the stemmer of the terms, and how many terms all words together are compared with."""
        self._bytes = tensors["terms"]
        self._offsets = tensors["terms.offsets"].astype(np.intp)
        self._holders = tensors["postings.offsets"]
        self._lengths = np.diff(self._offsets)  # in bytes
        self._stem = stem
        self._remaining = most_compared

    def correct(self, word: str) -> Correction:
        """Return the terms at the smallest distance from a word, the most frequent first."""
        own = self._stem(word) if self._stem else word
        if not SHORTEST_STEM <= len(own) <= LONGEST:
            return {}
        places = self._candidates(own)
        codes, begins, lengths = self._letters(places)
        distances = _distances(own, codes, begins, lengths)
        nearest: dict[int, str | None] = self._words_among(places[distances == 1])
        if self._stem is not None and (own == word or not nearest):
            nearest |= self._other_endings(word, codes, self._stem)
        if not nearest and len(word) >= TWO_ERRORS:
            nearest = self._words_among(places[distances == 2])
        by_use = sorted(nearest, key=lambda place: int(self._holders[place]) - int(self._holders[place + 1]))
        correction = {}
        for place in by_use[:MOST_NEAREST]:
            term = self._term(place).decode()
            correction[term] = nearest[place] or self._with_ending(term, word, own)
        return correction

    def _words_among(self, places: Terms) -> dict[int, str | None]:
        """Return the terms that are words and no codes, without a word that has this stem."""
        return {place: None for place in places.tolist() if self._term(place).decode().isalpha()}

    def _candidates(self, own: str) -> Terms:
        """Return the terms of a similar length that begin or end like a term, ascending; no more than remain."""
        key = own.encode()
        is_near = np.abs(self._lengths - len(key)) <= 2 * max(len(letter.encode()) for letter in own)
        begin, end = self._range(own[0])
        same_end = np.flatnonzero(is_near & (self._lengths >= 2))
        for back in (1, 2):
            same_end = same_end[self._bytes[self._offsets[same_end + 1] - back] == key[-back]]
        places = np.union1d(begin + np.flatnonzero(is_near[begin:end]), same_end)
        if len(places) > self._remaining:  # those that are sorted next to it, as they begin like it
            first = int(np.searchsorted(places, self._place(key))) - self._remaining // 2
            first = max(0, min(first, len(places) - self._remaining))
            places = places[first : first + self._remaining]
        self._remaining -= len(places)
        return places

    def _letters(self, places: Terms) -> tuple[Array[np.uint32], Terms, Terms]:
        """Return the code points of some terms one after the other, and where each term begins and its length."""
        lengths = self._lengths[places]
        ends = np.cumsum(lengths)
        begins = ends - lengths
        content = self._bytes[np.repeat(self._offsets[places] - begins, lengths) + np.arange(lengths.sum())]
        codes = np.frombuffer(content.tobytes().decode().encode("utf-32-le"), np.uint32)
        if len(codes) < len(content):  # some letters have several bytes
            letters = np.concatenate([[0], np.cumsum((content & 0xC0) != 0x80)])
            begins, ends = letters[begins], letters[ends]
        return np.minimum(codes, LAST_CODE), begins, ends - begins

    def _other_endings(self, word: str, codes: Array[np.uint32], stem: Stem) -> dict[int, str]:
        """Return the terms that are stems of words with one other letter at the end, each with such a word.

        codes are of terms like the word; if that has others than a to z, their letters replace its own.
        """
        letters: Collection[str] = ascii_lowercase
        if not word.isascii():
            frequent = np.argsort(-np.bincount(codes), kind="stable")[:MOST_LETTERS]
            letters = [chr(code) for code in frequent if chr(code).isalpha()]
        first = max(1, len(word) - SUFFIX)
        stems: dict[str, str] = {}
        for edit in _edits(word, first, letters):
            if len(term := stem(edit)) < len(edit):
                stems.setdefault(term, edit)
        begin, end = self._range(word[: min(first, SHORTEST_STEM)])
        offsets = (self._offsets[begin : end + 1] - self._offsets[begin]).tolist()
        content = self._bytes[self._offsets[begin] : self._offsets[end]].tobytes()

        def term_at(number: int) -> bytes:
            return content[offsets[number] : offsets[number + 1]]

        found = {}
        for term, edit in stems.items():
            number = bisect_left(range(end - begin), key := term.encode(), key=term_at)
            if number < end - begin and term_at(number) == key:
                found[begin + number] = edit
        return found

    def _with_ending(self, term: str, word: str, own: str) -> str:
        """Return a word with this stem that is like a word with the stem `own`, or the term if none is found."""
        if (stem := self._stem) is None:
            return term
        # a stemmer may change the last letter of a stem: "libraries" has the stem "librari"
        likely = (term[: len(term) - cut] + word[len(own) - cut :] for cut in (1, 0))
        return next((whole for whole in chain(likely, _edits(word, 0, ascii_lowercase)) if stem(whole) == term), term)

    def _range(self, prefix: str) -> tuple[int, int]:
        """Return the first place and the end of the terms that begin with a prefix."""
        return self._place(prefix.encode()), self._place(prefix.encode() + b"\xff")

    def _place(self, key: bytes) -> int:
        return bisect_left(range(len(self._lengths)), key, key=self._term)

    def _term(self, place: int) -> bytes:
        return self._bytes[self._offsets[place] : self._offsets[place + 1]].tobytes()


def _edits(word: str, first: int, letters: Collection[str]) -> Iterator[str]:
    """Yield the words that have one error at the letter `first` or after it; those as long as the word come first."""
    parts = [(word[:place], word[place:]) for place in range(first, len(word) + 1)]
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in parts if len(tail) > 1)
    yield from (head + letter + tail[1:] for head, tail in parts if tail for letter in letters)
    yield from (head + letter + tail for head, tail in parts for letter in letters)
    yield from (head + tail[1:] for head, tail in parts if tail)


def _distances(word: str, codes: Array[np.uint32], begins: Terms, lengths: Terms) -> Array[np.int64]:
    """Return the distance of each term from a word, (n,).

    codes has the code points of all terms; each term has `lengths` (n,) of them from `begins` (n,) on. In each integer
    of the arrays, a bit stands for a letter of the word. The names of the paper: zero is D0, more VP, less VN, up HP
    and down HN.
    """
    positions = np.zeros(LAST_CODE + 1, np.uint64)
    for place, letter in enumerate(word):
        positions[min(ord(letter), LAST_CODE)] |= np.uint64(1 << place)
    one, last = np.uint64(1), np.uint64(len(word) - 1)
    zero = less = before = np.zeros(len(begins), np.uint64)
    more = np.full(len(begins), (1 << len(word)) - 1, np.uint64)
    distances = np.full(len(begins), len(word), np.int64)
    for place in range(lengths.max(initial=0)):
        match = positions[codes[np.minimum(begins + place, len(codes) - 1)]]
        swapped = ((~zero & match) << one) & before
        zero = swapped | (((match & more) + more) ^ more) | match | less
        up, down = less | ~(zero | more), zero & more
        change = ((up >> last) & one).astype(np.int64) - ((down >> last) & one).astype(np.int64)
        distances += np.where(place < lengths, change, 0)
        up = (up << one) | one
        more, less, before = (down << one) | ~(zero | up), zero & up, match
    return distances
