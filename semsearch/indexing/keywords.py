"""Texts to the postings of keyword search: which rows have each term, and how much it adds to a row's BM25 score.

semsearch/engine/keyword/terms.py describes the tensors and the formula.
"""

import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
from tokenizers import Tokenizer

from semsearch.engine.bundle import CONVEX, NO_STEMS, KeywordsInfo
from semsearch.engine.keyword.analyzer import find_heading, find_name, plain_name
from semsearch.engine.keyword.matches import LARGEST_IMPACT
from semsearch.engine.keyword.terms import K1, B
from semsearch.engine.tensors import AnyArray, Array, Strings
from semsearch.engine.tokenizer import split_word
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.corpus.corpus import PassageRow, corpus_error, heading_prefix
from semsearch.indexing.corpus.passages import strings_at
from semsearch.indexing.counting import KeywordText
from semsearch.indexing.digests import Positions
from semsearch.indexing.synonyms import Synonyms, synonym_terms
from semsearch.indexing.term_counts import LINE_FEED, TermCounts, line_sizes, offsets_of, term_blocks

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


def require_languages(corpus: Corpus, column: str, source: Path, rows: Positions) -> None:
    """Raise CorpusError, which names the source and the row, if the value of a column is no language in some row.

    A value is a name or a code of a language: german, de or de-AT. Rows in a language without a stemmer have no stems.
    """
    for row, metadata in zip(rows.tolist(), strings_at(corpus.metadata, rows), strict=True):
        value = json.loads(metadata).get(column)
        try:
            _language_of(value, None)
        except (KeyError, TypeError, AttributeError):
            place = f"text {row} (from 0, id {corpus.ids[row]!r})"
            found = f"{reprlib.repr(value)} in the column {column!r}"
            expected = f"a language such as german, de or de-AT, or {NO_STEMS}"
            remedy = "correct it, or name another column with --language-column"
            raise corpus_error(source, place, found, expected, remedy) from None


def _language_of(value: Any, default: str | None) -> str | None:
    """Return the language of the stemmer for a value of the column of languages, None without stems."""
    return default if value is None or value == "" else stemmer_of(value)


def keyword_texts(
    passages: Iterable[PassageRow], options: "KeywordOptions", *, has_prefixes: bool
) -> Iterator[KeywordText]:
    """Yield passages as keyword search reads them; with has_prefixes, after the path of their headings."""
    for passage in passages:
        metadata = json.loads(passage.metadata)
        title = metadata.get(options.title_column) if options.title_column is not None else ""
        language = options.stemming
        if options.language_column is not None:
            language = _language_of(metadata.get(options.language_column), options.stemming)
        yield KeywordText(
            (heading_prefix(metadata) if has_prefixes else "") + passage.text,
            title if isinstance(title, str) else "",
            language,
            heading_names(metadata, options.title_column),
        )


def is_language(value: str) -> bool:
    """Return whether a value of a column of languages is one: a name or a code, such as german, de or de-AT."""
    try:
        stemmer_of(value)
    except KeyError:
        return False
    return True


@cache
def stemmer_of(value: str) -> str | None:
    """Return the language of the stemmer for a name or a code of a language, None without one.

    Raises KeyError if the value is neither.
    """
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
KNOWN_TEXTS, KNOWN_CHARACTERS = 1_000, 500  # sample of texts whose words are looked up in the tokenizer
KNOWN_WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are tokens in most languages
# "class click.Option(…)", "git.push(…)", and a heading that is one word, such as "echo"
SIGNATURE = re.compile(r"(?:\w+ )*([\w.$:@-]+)\(")
# "5.9.4. Orphaning a package", "1.2 Install" and "Chapter 2. Packages" without their numbers
SECTION_NUMBER = re.compile(r"^(?:(?:[^\W\d_]+\s+)?(?:\d+|[A-Z])(?:\.\d+)*\.\s+|\d+(?:\.\d+)+\s+)")
OBJECT_NAME = re.compile(r"[\w$]+(?:\.[\w$]+)+")
# an anchor that is not made of the words of a heading, such as Option.get_default or FSTWRN001
OBJECT_ANCHOR = re.compile(r"[._]|[a-z][A-Z]|[A-Z]{2}")
MARKED_NAME = re.compile(r"^[-.@$]|\w[_=.:/@+#-]+\w|[a-z][A-Z]|\+|#")


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


def keyword_tensors(counts: TermCounts, options: KeywordOptions) -> tuple[dict[str, AnyArray], KeywordsInfo | None]:
    """Return the tensors of a keywords.safetensors and their description; none if no text has a word.

    counts are those of texts that `count_terms` has read with the stemming of these options.
    """
    if not len(counts.terms):
        return {}, None
    impacts, scales = _score(counts)
    sizes = line_sizes(counts.terms) - len(LINE_FEED)
    terms = Strings(counts.terms[counts.terms != ord(LINE_FEED)], offsets_of(sizes).astype(np.uint64))
    tensors = {
        "terms": terms.content,
        "terms.offsets": terms.offsets,
        "postings.offsets": counts.postings,
        "rows": counts.rows,
        "impacts": impacts,
        "scales": scales,
        "words": counts.words,
    }
    languages = counts.languages.tobytes().decode().splitlines()
    stemmers = (None if language == NO_STEMS else language for language in languages)
    return tensors, KeywordsInfo(
        terms=len(terms),
        postings=len(counts.rows),
        stemming=options.stemming,
        k1=K1,
        b=B,
        fusion=CONVEX,
        fusion_weight=options.fusion_weight,
        languages=[] if options.language_column is None else languages,
        synonyms=synonym_terms(options.synonyms, stemmers, lambda term: terms.find(term.encode()) is not None),
    )


def heading_names(metadata: Mapping[str, Any], title_column: str | None) -> set[str]:
    """Return the names that the heading of a passage or its anchor is, or the title of a text without headings.

    A documented object such as `class click.Option(…)` has the names click.option and option. Of a heading of several
    words, those count that have a mark, such as `-v, --verbose`. The heading of a passage is one too, with and
    without its number. Each name is also there as it is typed without accents.
    """
    own = metadata.get("headings")
    headings = own or [metadata.get(title_column or "title")]
    numbered = headings[-1] if isinstance(headings[-1], str) else ""
    heading = SECTION_NUMBER.sub("", numbered) if own else numbered
    anchor = urlsplit(str(metadata.get("url", ""))).fragment
    stated = [unquote(anchor)] if OBJECT_ANCHOR.search(anchor) else []
    signature = SIGNATURE.match(heading)
    if signature is not None:
        stated.append(signature[1])
    else:
        words = heading.split()
        stated += words if len(words) == 1 else [word for word in words if MARKED_NAME.search(word)]
    names = {name for each in stated if (name := find_name(each)) is not None}
    if own is not None:
        names |= {whole for each in (numbered, heading) if (whole := find_heading(each)) is not None}
    dotted = (name.split(".") for name in names if OBJECT_NAME.fullmatch(name))
    names |= {".".join(parts[place:]) for parts in dotted for place in range(len(parts))}
    return names | set(map(plain_name, names))


def share_of_known_words(texts: Sequence[str], tokenizer: Tokenizer) -> float:
    """Return the share of the words in a sample of texts that the tokenizer has as one token, 1 if there are none."""
    sample = (texts[row][:KNOWN_CHARACTERS] for row in range(0, len(texts), len(texts) // KNOWN_TEXTS + 1))
    found = [len(split_word(tokenizer, word)) == 1 for text in sample for word in KNOWN_WORD.findall(text.casefold())]
    return round(float(np.mean(found or 1)), 4)


def _score(counts: TermCounts) -> tuple[Array[np.uint8], Array[np.float32]]:
    """Return the impact of each posting (n,) uint8 and the scale of each term (terms,) float32.

    They are computed for some of the terms at a time. An impact is at least 1, so that a row with the term has a score.
    """
    rows, postings = len(counts.lengths), counts.postings.astype(np.intp)
    holders = np.diff(postings)
    idf = np.log1p((rows - holders + 0.5) / (holders + 0.5))
    damping = K1 * (1 - B + B * (counts.lengths / counts.lengths.mean()))
    impacts, scales = np.empty(len(counts.rows), np.uint8), np.empty(len(holders), np.float32)
    for first, last in term_blocks(postings):
        block = slice(postings[first], postings[last])
        sizes, often = holders[first:last], counts.counts[block]
        exact = np.repeat(idf[first:last], sizes) * often / (often + damping[counts.rows[block]])
        highest = np.maximum.reduceat(exact, postings[first:last] - postings[first]) / LARGEST_IMPACT
        impacts[block] = np.maximum(np.rint(exact / np.repeat(highest, sizes)), 1)
        scales[first:last] = highest
    return impacts, scales
