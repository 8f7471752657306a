"""A file of synonyms to what keyword search looks up: for each term of a query, the terms that can stand for it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, product
from pathlib import Path

from semsearch.engine.keyword.analyzer import Stem, find_codes, find_stemmer, split_terms

Synonyms = Sequence[Sequence[str]]  # each has words that mean the same


def read_synonyms(path: Path) -> list[list[str]]:
    """Return the words of each line of a file, such as `sofa, couch`. Blank lines and those with # are left out.

    Raises ValueError if a line has a phrase or is not UTF-8, and OSError if the file cannot be read.
    """
    lines = enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1)
    found = {number: line.split(",") for number, line in lines if line.strip() and not line.startswith("#")}
    for number, word in ((number, word.strip()) for number, words in found.items() for word in words):
        # the first term of a word or a code is itself; a long run of Chinese, Japanese or Thai has only its pairs
        if [code for code, _ in find_codes(word)] != (split_terms(word)[:1] or [word]):
            expected = "single words with commas between them, such as: sofa, couch"
            raise ValueError(f"line {number}: found {word!r}, expected {expected}; leave out the phrase")
    return [[word.strip() for word in words] for words in found.values()]


def synonym_terms(
    synonyms: Synonyms, languages: Iterable[str | None], is_known: Callable[[str], bool]
) -> dict[str, list[str]]:
    """Return the alternatives of each term that are known ones, sorted; languages are those of the stemmers."""
    found = defaultdict[str, set[str]](set)
    for stem, words in product(map(find_stemmer, languages), synonyms):
        by_word = [_terms(word, stem) for word in words]
        known = set(filter(is_known, chain.from_iterable(by_word)))
        for own in by_word:
            for term in own:
                found[term] |= known - {*own}
    return {term: sorted(others) for term, others in sorted(found.items()) if others}


def _terms(word: str, stem: Stem | None) -> list[str]:
    """Return the spellings of a word, or a code as a whole: its parts are other words."""
    terms = split_terms(word, stem, is_query=True)
    if all(words == [code] for code, words in find_codes(word)):
        return terms
    return terms[:1]
