"""What a query also finds: each rewriting adds words to a query, or the texts that have it as a name.

`Keywords.match` applies REWRITINGS in their order. Each gets the words that those before it have not rewritten.
`bench/rewritings.py` measures the ranking without each one in turn. The docstring of a rewriting says how much nDCG@10
is lost without it, by words and in hybrid search, with questions about this project's documentation, an invented shop,
and names. SciFact and CISI lose 0.004 at most.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce
from itertools import islice
from operator import or_

import numpy as np

from semsearch.engine.keyword.analyzer import (
    IN_HEADING,
    IN_TEXT,
    find_codes,
    find_heading,
    find_name,
    joined_codes,
    joined_neighbours,
    plain_name,
    unfinished_words,
)
from semsearch.engine.keyword.matches import LARGEST_IMPACT, Correction, Postings, Term
from semsearch.engine.keyword.terms import Terms
from semsearch.engine.tensors import DAMAGED, TensorsError

MOST_TERMS = 1_000  # maximum terms of a query; further ones are ignored, so that no request takes seconds
RARE_ROWS = 4  # a word that fewer texts have is divided too
COMPLETION = 0.5  # weight of a term that completes a word
JOINED_WEIGHT = 0.7  # weight of the word that two words of the query make: of 0.2 to 1, best on SciFact and CISI
HYPHENATED_WEIGHT = 1.0  # weight of the word that a code makes without its hyphens: they are seldom two words
SHORTEST_DIVIDED, LONGEST_DIVIDED = 4, 64  # letters of a word that is divided; one with digits can be shorter
MOST_DIVIDED = 16  # words of a query that are divided
CORRECTED_WEIGHT = 0.5  # weight of a term that replaces a misspelled word: it can be the wrong one
# What a text with the name that a query is adds to its score, as a multiple of the score of a text with all words.
NAME_IN_HEADING, NAME_IN_TEXT = 2.0, 0.7


@dataclass(slots=True)
class RewrittenQuery:
    """A query, and what its rewritings have added so far."""

    text: str
    counts: Mapping[str, int]  # its own terms, and how often each occurs
    required: Set[str]  # terms between quotation marks, which are searched as they are
    is_unfinished: bool  # whether its last word can be the beginning of one
    is_corrected: bool  # whether misspelled words are replaced
    terms: list[Term] = field(default_factory=list)
    rare: set[str] = field(default_factory=set)  # its terms that few texts have
    unknown: set[str] = field(default_factory=set)  # its terms that nothing was found for
    rare_words: Sequence[str] = ()  # its words of which few texts have a term, or none; some are there twice
    added: set[str] = field(default_factory=set)  # terms beside its own, which highlights mark
    corrected: dict[str, Correction] = field(default_factory=dict)
    attainable: float = 0.0  # score of a text in which each of the words that were found adds the most that it can

    def add(self, found: Iterable[Postings], added: Set[str], replaced: Set[str]) -> float:
        """Add a term with these alternatives, for terms that are then known; return the most that it can add."""
        self.terms.append(Term([*found]))
        self.added |= added
        self.unknown -= replaced
        return self.terms[-1].bound


Rewriting = Callable[[Terms, RewrittenQuery], None]


def read_query(
    keywords: Terms, text: str, *, required: Set[str], is_unfinished: bool, is_corrected: bool
) -> RewrittenQuery:
    """Return a query with its own terms and their synonyms."""
    languages = keywords.counts_by_language(text)
    query = RewrittenQuery(text, reduce(or_, languages), required, is_unfinished, is_corrected)
    bounds: dict[str, float] = {}
    # a text with quoted parts is too short for more terms
    for term, repeats in islice(query.counts.items(), MOST_TERMS):
        postings, others = keywords.postings(term, repeats), dict[str, Postings]()
        if term in keywords.info.synonyms and term not in required:
            others = keywords.synonyms_of(term, repeats, query.counts)
        found = [*others.values()] if postings is None else [postings, *others.values()]
        if found:
            bounds[term] = query.add(found, others.keys(), frozenset())
        else:
            query.unknown.add(term)
        if postings is not None and len(postings.rows) < RARE_ROWS:
            query.rare.add(term)
    if few := query.unknown | query.rare:
        words = (word for _, words in find_codes(text) for word in words)
        query.rare_words = [word for word in words if keywords.has_terms(word, few)]
    # a row has one language
    query.attainable = max(sum(bounds.get(term, 0.0) for term in own) for own in languages)
    return query


def attainable_score(keywords: Terms, query: RewrittenQuery) -> float:
    """Return what a text with all words of a query could score: a word that no text has counts as if one had it."""
    missing = sum(keywords.has_terms(word, query.unknown) for word in query.rare_words)
    return query.attainable + missing * keywords.weight_of_unknown


def join(keywords: Terms, query: RewrittenQuery) -> None:
    """Add "wifi" for "wi fi" and "Wi-Fi", to find texts that lack one of the two words.

    Worth 0.078 and 0.051 in the shop, 0.028 and 0.021 in the documentation.
    """
    weighted = [(HYPHENATED_WEIGHT, *each) for each in joined_codes(query.text)]
    weighted += [(JOINED_WEIGHT, *each) for each in joined_neighbours(query.text, keywords.stop_words)]
    for weight, parts, whole in weighted:
        apart, found = " ".join(parts), {}
        for term in {term for terms in keywords.terms_by_language(whole) for term in terms}.difference(query.counts):
            if (postings := keywords.postings(term, weight)) is not None:
                found[term] = keywords.without(postings, apart)
        found = {term: postings for term, postings in found.items() if len(postings.rows)}
        if found:
            query.add(found.values(), found.keys(), keywords.terms_of(apart).keys())


def complete(keywords: Terms, query: RewrittenQuery) -> None:
    """Add the words that the last word of a query begins, if that can be unfinished.

    Worth 0.042 and 0.038 in the shop, where 6 of 99 questions are unfinished.
    """
    for beginning in unfinished_words(query.text) if query.is_unfinished else ():
        own = {beginning, *keywords.stems_of(beginning)}
        is_known = not own.isdisjoint(query.counts.keys() - query.unknown)
        if completions := keywords.completions(beginning, own, COMPLETION):
            bound = query.add(completions.values(), completions.keys(), own)
            query.attainable += 0 if is_known else bound


def divide(keywords: Terms, query: RewrittenQuery) -> None:
    """Add the texts with "128" and "GB" for "128gb", or "rain" and "coat" for "raincoat", if few have the word.

    Worth 0.075 and 0.031 in the shop, 0.018 and 0.017 in the documentation. SciFact loses 0.002 by words.
    """
    few = (query.unknown | query.rare) - query.required
    candidates = (word for word in dict.fromkeys(query.rare_words) if can_be_divided(word))
    for word in [*islice((word for word in candidates if keywords.has_terms(word, few)), MOST_DIVIDED)]:
        own, parts = keywords.terms_of(word), most_frequent_parts(keywords, word, query.counts)
        if not parts:
            continue
        is_known = query.unknown.isdisjoint(own)
        if is_known:
            weight = JOINED_WEIGHT * max(keywords.weight_of(term) for term in own)
        else:
            weight = max(keywords.weight_of(term) for term in parts)
        rows = keywords.common_rows(parts)
        impacts = np.full(len(rows), LARGEST_IMPACT, np.uint8)
        found = keywords.without(Postings(rows, impacts, np.float32(weight)), word)
        if len(found.rows):
            bound = query.add([found], {*parts}, {*own})
            query.attainable += 0 if is_known else bound


def can_be_divided(word: str) -> bool:
    """Return whether a word can be two: one of some letters, or one of letters and digits, such as "4k"."""
    shortest = SHORTEST_DIVIDED if word.isalpha() else 2
    return shortest <= len(word) <= LONGEST_DIVIDED and word.isalnum() and not word.isdecimal()


def most_frequent_parts(keywords: Terms, word: str, counts: Mapping[str, int]) -> Sequence[str]:
    """Return the terms of the two words that make a word and that the most texts have; none if no text has two such.

    A stop word is no part, and a query that has both parts needs no division.
    """
    best, most = list[str](), 0
    for place in range(1, len(word)):
        parts = word[:place], word[place:]
        longer = parts[0] if 2 * place > len(word) else parts[1]
        if keywords.stop_words.isdisjoint(parts) and keywords.knows(longer):  # the shorter one is known more often
            for terms in keywords.terms_by_language(*parts):
                rows = keywords.common_rows(terms)
                if len(rows) > most and not counts.keys() >= {*terms}:
                    best, most = terms, len(rows)
    return best


def correct(keywords: Terms, query: RewrittenQuery) -> None:
    """Replace misspelled words by those of the texts that are most like them, and by the synonyms of these.

    Worth 0.037 and 0.031 in the documentation, 0.029 and 0.020 in the shop.
    """
    if not query.is_corrected or not query.unknown - query.required:
        return
    for word, repeats, correction in misspelled_words(keywords, query):
        postings, synonyms = keywords.replacing(correction, repeats * CORRECTED_WEIGHT)
        query.corrected[word] = correction
        query.attainable += query.add(postings, synonyms, keywords.terms_of(word).keys())


def misspelled_words(keywords: Terms, query: RewrittenQuery) -> list[tuple[str, int, Correction]]:
    """Return each misspelled word of a query, how often it occurs, and the words of the texts that replace it.

    Raises TensorsError if the words of the texts are damaged.
    """
    from semsearch.engine.keyword.corrections import find_corrections  # only a misspelled word needs it

    unknown, known = query.unknown - query.required, sum(map(len, query.terms))
    try:
        return [*find_corrections(query.text, unknown, known, keywords)]
    except UnicodeDecodeError as error:
        raise TensorsError(f"{keywords.path}: words: {error}, expected UTF-8; {DAMAGED}") from error


def find_named(keywords: Terms, query: RewrittenQuery) -> None:
    """Add the texts whose heading the query is or names, and those that have it as a name in their text.

    Worth 0.158 and 0.136 for names, nothing for other questions.
    """
    name = find_name(query.text)
    heading = find_heading(query.text) if name is None else name
    found = []
    for mark, sought, factor in ((IN_HEADING, heading, NAME_IN_HEADING), (IN_TEXT, name, NAME_IN_TEXT)):
        if sought is None:
            continue
        rows = keywords.rows_of(f"{mark}{plain_name(sought)}")
        if not len(rows):
            rows = keywords.rows_of(f"{mark}{sought}")  # a name in a text, or in the index of an older version
        if len(rows):
            weight = np.float32(factor * attainable_score(keywords, query) / LARGEST_IMPACT)
            found.append(Postings(rows, np.full(len(rows), LARGEST_IMPACT, np.uint8), weight))
    if found:
        query.add(found, frozenset(), frozenset())


REWRITINGS: Sequence[Rewriting] = (join, complete, divide, correct, find_named)
