"""Texts to the postings of keyword search: which rows have each term, and how much it adds to a row's BM25 score.

semsearch/engine/keyword/terms.py describes the tensors and the formula.
"""

import json
import re
import reprlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from tokenizers import Tokenizer

from semsearch.engine.bundle import CONVEX, NO_STEMS, KeywordsInfo
from semsearch.engine.keyword.analyzer import (
    IN_HEADING,
    IN_TEXT,
    Stem,
    find_heading,
    find_name,
    find_stemmer,
    joined_codes,
    names_in,
    split_terms,
)
from semsearch.engine.keyword.matches import LARGEST_IMPACT
from semsearch.engine.keyword.terms import K1, B
from semsearch.engine.tensors import AnyArray, Array
from semsearch.engine.tokenizer import split_word
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.corpus import corpus_error
from semsearch.indexing.synonyms import Synonyms, synonym_terms

# The languages of Snowball's stemmers, each with its ISO 639 codes
LANGUAGES = """\
arabic ar ara, armenian hy hye arm, basque eu eus baq, catalan ca cat, czech cs ces cze, danish da dan,
dutch nl nld dut, english en eng, esperanto eo epo, estonian et est, finnish fi fin, french fr fra fre,
german de deu ger, greek el ell gre, hindi hi hin, hungarian hu hun, indonesian id ind, irish ga gle, italian it ita,
lithuanian lt lit, nepali ne nep, norwegian no nor nb nob nn nno, persian fa fas per, polish pl pol, portuguese pt por,
romanian ro ron rum, russian ru rus, serbian sr srp, sesotho st sot, spanish es spa, swedish sv swe, tamil ta tam,
turkish tr tur, yiddish yi yid"""
STEMMERS = {name: names.split()[0] for names in LANGUAGES.split(",") for name in names.split()}
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")


def row_languages(corpus: Corpus, column: str, default: str | None, source: Path) -> Iterator[str | None]:
    """Yield the language of each row's stemmer, None without stems; default is the language of rows without a value.

    A value is a name or a code of a language: german, de or de-AT. Rows in a language without a stemmer have no stems.
    Raises CorpusError, which names the source and the row, if a value is no language.
    """
    for row, metadata in enumerate(corpus.metadata):
        value = json.loads(metadata).get(column)
        try:
            yield default if value is None or value == "" else _find_stemmer(value)
        except (KeyError, TypeError, AttributeError):
            place = f"text {row} (from 0, id {corpus.ids[row]!r})"
            found = f"{reprlib.repr(value)} in the column {column!r}"
            expected = f"a language such as german, de or de-AT, or {NO_STEMS}"
            remedy = "correct it, or name another column with --language-column"
            raise corpus_error(source, place, found, expected, remedy) from None


def is_language(value: str) -> bool:
    """Return whether a value of a column of languages is one: a name or a code, such as german, de or de-AT."""
    try:
        _find_stemmer(value)
    except KeyError:
        return False
    return True


@cache
def _find_stemmer(value: str) -> str | None:
    from Stemmer import algorithms  # only this option needs it

    name = re.split("[-_]", value.strip().casefold())[0]
    stemmer = STEMMERS.get(name)
    if stemmer is None and name != NO_STEMS and not LANGUAGE_CODE.fullmatch(name):
        raise KeyError(name)
    if stemmer in algorithms():
        return stemmer
    return None


STEMMING = "english"  # the language of the default model
FUSION_WEIGHT = 0.6  # weight of the cosine in hybrid search
TITLE_WEIGHT = 2  # number of times that a word of a title counts
SHORTEST_WORD = 3  # letters of a word that can replace a misspelled one
KNOWN_TEXTS, KNOWN_CHARACTERS = 1_000, 500  # sample of texts whose words are looked up in the tokenizer
KNOWN_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are tokens in most languages
# "class click.Option(…)", "git.push(…)", and a heading that is one word, such as "echo"
SIGNATURE = re.compile(r"(?:\w+ )*([\w.$:@-]+)\(")
OBJECT_NAME = re.compile(r"[\w$]+(?:\.[\w$]+)+")
OBJECT_ANCHOR = re.compile(r"[._]|[a-z][A-Z]")  # an anchor that is not made of the words of a heading
MARKED_NAME = re.compile(r"^[-.@$]|\w[_=.:/@+#-]+\w|[a-z][A-Z]|\+|#")
SORTED_AT_ONCE = 1 << 20  # occurrences of terms that are sorted at a time: about 70 MB
REMEMBERED_WORDS = 1 << 14  # words of a language whose terms are cached; some languages have a text in one word


@dataclass(frozen=True, slots=True)
class KeywordOptions:
    """The options of keyword search: the language of the stems, the weight of hybrid search, two columns, and synonyms.

    stemming is None without stems, and a column is None if there is none. With a language column, stemming is the
    language of rows without a value.
    """

    stemming: str | None = STEMMING
    fusion_weight: float = FUSION_WEIGHT
    title_column: str | None = None
    language_column: str | None = None
    synonyms: Synonyms = ()


def keyword_tensors(
    texts: Collection[str],
    options: KeywordOptions,
    titles: Iterable[str] | None = None,
    languages: Iterable[str | None] | None = None,
    names: Iterable[Collection[str]] | None = None,
) -> tuple[dict[str, AnyArray], KeywordsInfo | None]:
    """Return the tensors of a keywords.safetensors and their description; none if no text has a word.

    A title counts as if its text began with it TITLE_WEIGHT times; titles has one for each text. languages has the
    language of each text's stemmer, None for no stems; without them it is that of the options. names has the terms of
    `heading_names` for each text.
    Only one of the texts is in memory. Each of a text's words takes 9 bytes, each different
    term some 200.
    """
    stemmers = repeat(options.stemming) if languages is None else languages
    found = _read_terms(texts, titles, stemmers, names)
    numbers, occurrences = found.numbers, found.occurrences
    if not numbers:
        return {}, None
    terms = sorted(numbers)  # by code point, which is the order of their bytes too
    places = np.empty(len(terms), np.uint32)  # for the number of each term, its place in that order
    places[[numbers[term] for term in terms]] = np.arange(len(terms), dtype=np.uint32)
    for block in _blocks(len(occurrences)):
        occurrences[block] = places[occurrences[block]]
    encoded = [term.encode() for term in terms]
    tensors: dict[str, AnyArray] = {
        "terms": np.frombuffer(b"".join(encoded), np.uint8),
        "terms.offsets": np.cumsum([0, *map(len, encoded)], dtype=np.uint64),
    }
    synonyms = synonym_terms(options.synonyms, found.languages, numbers.keys())
    numbers.clear()
    del terms, encoded
    tensors |= _postings(found, len(places))
    tensors["words"] = np.frombuffer("".join(f"{word}\n" for word in sorted(found.words)).encode(), np.uint8)
    return tensors, KeywordsInfo(
        terms=len(places),
        postings=len(tensors["rows"]),
        stemming=options.stemming,
        k1=K1,
        b=B,
        fusion=CONVEX,
        fusion_weight=options.fusion_weight,
        languages=[] if languages is None else sorted(language or NO_STEMS for language in found.languages),
        synonyms=synonyms,
    )


def heading_names(metadata: Mapping[str, Any], title_column: str | None) -> set[str]:
    """Return the names that the heading of a passage or its anchor is, or the title of a text without headings.

    A documented object such as `class click.Option(…)` has the names click.option and option. Of a heading of several
    words, those count that have a mark, such as `-v, --verbose`. The heading of a passage is one too.
    """
    headings = metadata.get("headings") or [metadata.get(title_column or "title")]
    heading = headings[-1] if isinstance(headings[-1], str) else ""
    anchor = urlsplit(str(metadata.get("url", ""))).fragment
    stated = [unquote(anchor)] if OBJECT_ANCHOR.search(anchor) else []
    signature = SIGNATURE.match(heading)
    if signature is not None:
        stated.append(signature[1])
    else:
        words = heading.split()
        stated += words if len(words) == 1 else [word for word in words if MARKED_NAME.search(word)]
    names = {name for each in stated if (name := find_name(each)) is not None}
    if metadata.get("headings") is not None and (whole := find_heading(heading)) is not None:
        names.add(whole)
    dotted = (name.split(".") for name in names if OBJECT_NAME.fullmatch(name))
    return names | {".".join(parts[place:]) for parts in dotted for place in range(len(parts))}


@dataclass(frozen=True, slots=True)
class _CorpusTerms:
    """The terms of all texts, numbered in the order in which they first occur."""

    numbers: dict[str, int]
    words: set[str]  # words that replace misspelled ones
    occurrences: Array[np.uint32]  # (n,): the number of each term of all texts, text after text
    sizes: Array[np.uint32]  # (rows,): the number of terms of each text
    lengths: Array[np.uint32]  # (rows,): the number of these that are in the text itself, for BM25
    languages: set[str | None]


def _read_terms(
    texts: Collection[str],
    titles: Iterable[str] | None,
    languages: Iterable[str | None],
    names: Iterable[Collection[str]] | None,
) -> _CorpusTerms:
    """Return the terms of the texts. Blanks separate terms, so the terms of a word are cached."""
    numbers: dict[str, int] = {}
    words: set[str] = set()
    occurrences, sizes, lengths = array("I"), array("I"), array("I")

    def number(stem: Stem | None, word: str) -> tuple[int, ...]:
        terms = split_terms(word, stem)
        plain = terms if stem is None else split_terms(word)
        words.update(term for term in plain if len(term) >= SHORTEST_WORD and term.isalpha())
        return tuple([numbers.setdefault(term, len(numbers)) for term in terms])

    readers: dict[str | None, Callable[[str], tuple[int, ...]]] = {}
    columns = zip(texts, titles or repeat(""), languages, names or repeat(()), strict=False)
    for text, title, language, own_names in columns:
        before = len(occurrences)
        if language not in readers:
            readers[language] = lru_cache(REMEMBERED_WORDS)(partial(number, find_stemmer(language)))
        for word in title.split():
            occurrences.extend(readers[language](word) * TITLE_WEIGHT)
        occurrences.extend(chain.from_iterable(map(readers[language], text.split())))
        lengths.append(len(occurrences) - before)
        for word in chain(title.split(), text.split()):
            for _, whole in joined_codes(word):
                occurrences.extend(readers[language](whole))
        marked = [IN_HEADING + name for name in sorted(own_names)] + [IN_TEXT + name for name in names_in(text)]
        occurrences.extend(numbers.setdefault(term, len(numbers)) for term in marked)
        sizes.append(len(occurrences) - before)
    all_terms, all_sizes, all_lengths = (np.frombuffer(each, np.uint32) for each in (occurrences, sizes, lengths))
    return _CorpusTerms(numbers, words, all_terms, all_sizes, all_lengths, {*readers})


def share_of_known_words(texts: Sequence[str], tokenizer: Tokenizer) -> float:
    """Return the share of the words in a sample of texts that the tokenizer has as one token, 1 if there are none."""
    sample = (texts[row][:KNOWN_CHARACTERS] for row in range(0, len(texts), len(texts) // KNOWN_TEXTS + 1))
    found = [len(split_word(tokenizer, word)) == 1 for text in sample for word in KNOWN_WORD.findall(text.casefold())]
    return round(float(np.mean(found or 1)), 4)


def _postings(found: _CorpusTerms, terms: int) -> dict[str, AnyArray]:
    """Return the tensors of the postings of this number of terms, made for some of them at a time."""
    occurrences, lengths = found.occurrences, found.lengths
    sizes, ends = np.zeros(terms, np.intp), np.cumsum(found.sizes, dtype=np.intp)
    relative = lengths / lengths.mean()
    for block in _blocks(len(occurrences)):
        sizes += np.bincount(occurrences[block], minlength=terms)
    rows, impacts = np.empty(len(occurrences), np.uint32), np.empty(len(occurrences), np.uint8)  # upper bounds
    holders, scales = np.zeros(terms + 1, np.uint64), np.empty(terms, np.float32)
    postings = 0
    for first, last in _term_blocks(sizes):
        here = np.flatnonzero((occurrences >= first) & (occurrences < last))
        # one number for a term and a row, so that sorting the numbers brings a term's rows together
        pairs = (occurrences[here].astype(np.intp) - first) * len(lengths)
        pairs += np.searchsorted(ends, here, side="right")
        pairs, counts = np.unique(pairs, return_counts=True)
        term, row = np.divmod(pairs, len(lengths))
        offsets = np.searchsorted(term, np.arange(last - first + 1))
        part = slice(postings, postings + len(pairs))
        rows[part], holders[first + 1 : last + 1] = row, np.diff(offsets)
        impacts[part], scales[first:last] = _score(term, counts, relative[row], offsets, len(lengths))
        postings = part.stop
    return {
        "postings.offsets": np.cumsum(holders, dtype=np.uint64),
        "rows": rows[:postings],
        "impacts": impacts[:postings],
        "scales": scales,
    }


def _blocks(length: int) -> Iterator[slice]:
    return (slice(begin, begin + SORTED_AT_ONCE) for begin in range(0, length, SORTED_AT_ONCE))


def _term_blocks(sizes: Array[np.intp]) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms that occur SORTED_AT_ONCE times together, or a little more.

    sizes says how often each term occurs.
    """
    starts = np.unique(np.cumsum(sizes) // SORTED_AT_ONCE, return_index=True)[1]
    return pairwise([*map(int, starts), len(sizes)])


def _score(
    term: Array[np.intp], counts: Array[np.intp], lengths: AnyArray, offsets: Array[np.intp], rows: int
) -> tuple[Array[np.uint8], Array[np.float32]]:
    """Return the impact of each posting (n,) uint8 and the scale of each term (terms,) float32.

    term, counts and lengths are (n,): the place of the posting's term, how often it occurs in the row, and the length
    of the row divided by the mean. An impact is at least 1, so that a row with the term has a score.
    """
    holders = np.diff(offsets).astype(np.float64)
    idf = np.log1p((rows - holders + 0.5) / (holders + 0.5))
    exact = idf[term] * counts / (counts + K1 * (1 - B + B * lengths))
    scales = np.maximum.reduceat(exact, offsets[:-1]) / LARGEST_IMPACT
    impacts = np.maximum(np.rint(exact / scales[term]), 1).astype(np.uint8)
    return impacts, scales.astype(np.float32)
