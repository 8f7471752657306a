"""Misspelled words of a query: the words of the corpus that are nearest to them.

The distance of two words is the number of errors between them: a letter added, left out or replaced, or two neighbours
exchanged (optimal string alignment). It is computed for many words at once, with one bit for each letter of the word
(Hyyrö, A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances, 2003).

A word is compared with the words that have its first letter, and with those that have its last two bytes. One error
leaves the first letter or the last two as they are, so every word at distance 1 is found. A word at distance 2 must
have the first letter, which people seldom get wrong.

A word that no text has can be a correct one, which is not replaced. The model's tokenizer knows most of these: it has
a frequent word, or what its ending is added to, as one token, and divides a misspelled word into many. In texts of
another language than the tokenizer's this says nothing, so there a word is corrected only if the other words of the
query find next to nothing. So it is in a bundle without a tokenizer.

Left out: codes and words between quotation marks, and how frequent an error is. Imported by the first query with a term
that the corpus does not have. `python -m bench modes` measures the constants.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from semsearch.engine.keyword.analyzer import find_codes
from semsearch.engine.keyword.matches import Correction
from semsearch.engine.keyword.terms import Terms
from semsearch.engine.tensors import AnyArray, Array

SHORTEST = 4  # letters of a word that is corrected
TWO_ERRORS = 8  # letters from which a word can have two errors instead of one
MANY_TOKENS = 4  # tokens from which it can: correct words of as many letters mostly have fewer
LONGEST = 60  # letters of a word, as each takes a bit of 64
MOST_NEAREST = 2  # words that replace a word; more of them find more texts that do not answer
MOST_CORRECTED = 16  # words of a query that are corrected
MOST_COMPARED = 1 << 18  # words of the corpus that those of a query are compared with, all together
LAST_CODE = (1 << 16) - 1  # code points from here on are taken for the same letter
# Share of the words of a corpus that the tokenizer must have as one token. With the tokenizer of the default model, it
# is 0.77 or more for English texts, and 0.06 to 0.27 for messages of programs in 14 other languages.
LEAST_KNOWN = 0.5
POSTINGS_PER_WORD = 10  # rows that the other words of a query find, counted for each word

Places = Array[np.intp]  # (n,)


def find_corrections(
    text: str, unknown: set[str], found: int, keywords: Terms
) -> Iterator[tuple[str, int, Correction]]:
    """Yield each misspelled word of a text, how often it occurs, and the words of the corpus that replace it.

    Such a word has only `unknown` terms. found is how many postings the other terms of the text have.
    """
    if keywords.info.known_words < LEAST_KNOWN and found >= POSTINGS_PER_WORD:
        return
    words = Counter(
        code
        for code, _ in find_codes(text)
        if code.isalpha() and SHORTEST <= len(code) <= LONGEST and unknown.issuperset(keywords.terms_of(code))
    )
    misspelled = [word for word in words if not _is_correct(word, keywords)][:MOST_CORRECTED]
    if not misspelled:
        return
    nearest = NearestWords(keywords.words, keywords.word_ends)
    for word in misspelled:
        if correction := _correct(word, nearest, keywords):
            yield word, words[word], correction


def _is_correct(word: str, keywords: Terms) -> bool:
    """Return whether the tokenizer has a word, or what its ending is added to, as one token."""
    first = keywords.split_word(word)[0]
    return list(keywords.terms_of(first)) == list(keywords.terms_of(word))


def _correct(word: str, nearest: "NearestWords", keywords: Terms) -> Correction:
    terms_of = keywords.terms_of
    candidates, two = ([near for near in each if keywords.has_word(near)] for each in nearest.find(word))
    if not candidates and len(word) >= TWO_ERRORS and len(keywords.split_word(word)) >= MANY_TOKENS:
        candidates = two
    # the last term is the stem of the word without accents: words that differ in these or in the ending are one word
    by_stem = {(terms := tuple(terms_of(near)))[-1]: (near, terms) for near in candidates}
    counts = {stem: max(len(keywords.rows_of(term)) for term in terms) for stem, (_, terms) in by_stem.items()}
    if len(counts) > 1:  # a word of one text can be misspelled there
        counts = {stem: count for stem, count in counts.items() if count > 1}
    order = sorted(counts, key=counts.__getitem__, reverse=True)
    return dict(by_stem[stem] for stem in order[:MOST_NEAREST])


class NearestWords:
    """The words of a corpus, and how many more of them a query is compared with."""

    def __init__(self, content: AnyArray, ends: Places) -> None:
        """Take the words in UTF-8, (n,) uint8: each has three letters or more, and a line feed at `ends` follows it."""
        self._content, self._ends = content, ends
        self._begins = np.concatenate([[0], self._ends + 1])[:-1]
        self._remaining = MOST_COMPARED

    def find(self, word: str) -> tuple[list[str], list[str]]:
        """Return the words at distance 1, and those at distance 2 with the same first letter, both sorted."""
        key, first = word.encode(), word[0].encode()
        widest = max(2, *(len(letter.encode()) for letter in word))
        places = np.flatnonzero(np.abs(self._ends - self._begins - len(key)) <= 2 * widest)
        has_first = self._has(self._begins[places], first)
        is_like = np.flatnonzero(has_first | self._has(self._ends[places] - 2, key[-2:]))[: self._remaining]
        self._remaining -= len(is_like)
        places, has_first = places[is_like], has_first[is_like]
        distances = _distances(word, *self._letters(places))
        return self._words(places[distances == 1]), self._words(places[(distances == 2) & has_first])

    def _has(self, begins: Places, part: bytes) -> Array[np.bool_]:
        found: Array[np.bool_] = np.all([self._content[begins + i] == byte for i, byte in enumerate(part)], axis=0)
        return found

    def _words(self, places: Places) -> list[str]:
        pairs = zip(self._begins[places].tolist(), self._ends[places].tolist(), strict=True)
        return [self._content[begin:end].tobytes().decode() for begin, end in pairs]

    def _letters(self, places: Places) -> tuple[Array[np.uint32], Places, Places]:
        """Return the code points of some words one after the other, and where each word begins and its length."""
        lengths = self._ends[places] - self._begins[places]
        ends = np.cumsum(lengths)
        begins = ends - lengths
        content = self._content[np.repeat(self._begins[places] - begins, lengths) + np.arange(lengths.sum())]
        codes = np.frombuffer(content.tobytes().decode().encode("utf-32-le"), np.uint32)
        if len(codes) < len(content):  # some letters have several bytes
            letters = np.concatenate([[0], np.cumsum((content & 0xC0) != 0x80)])
            begins, ends = letters[begins], letters[ends]
        return np.minimum(codes, LAST_CODE), begins, ends - begins


def _distances(word: str, codes: Array[np.uint32], begins: Places, lengths: Places) -> Array[np.int64]:
    """Return the distance of each word of the corpus from a word, (n,).

    codes has the code points of all of them; each has `lengths` (n,) of them from `begins` (n,) on. In each integer
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
