"""Texts to the postings of keyword search: which rows have each term, and how much it adds to a row's BM25 score.

function/engine/keywords.py describes the tensors and the formula.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from function.engine.arrays import AnyArray, Array
from function.engine.bundle import CONVEX, KeywordsInfo
from function.engine.keywords import K1, B
from function.engine.words import find_stemmer, split_terms

STEMMING = "english"  # the language of the default model
FUSION_WEIGHT = 0.6  # of the cosine in hybrid search
LARGEST_IMPACT = 255  # in 8 bit


@dataclass(frozen=True, slots=True)
class KeywordOptions:
    """What an export may choose: the language of the stems, None for none, and how hybrid search adds two scores."""

    stemming: str | None = STEMMING
    fusion: str = CONVEX
    fusion_weight: float = FUSION_WEIGHT


def keyword_tensors(texts: Sequence[str], options: KeywordOptions) -> tuple[dict[str, AnyArray], KeywordsInfo | None]:
    """Return the tensors of a keywords.safetensors and their description; none if no text has a word."""
    stem = find_stemmer(options.stemming)
    numbers: dict[str, int] = {}  # of the terms, in the order in which they first occur
    occurrences, lengths = array("I"), array("I")
    for text in texts:
        terms = split_terms(text, stem)
        occurrences.extend([numbers.setdefault(term, len(numbers)) for term in terms])
        lengths.append(len(terms))
    if not numbers:
        return {}, None
    encoded = sorted((term.encode(), number) for term, number in numbers.items())
    place = np.empty(len(encoded), np.uint64)  # of each term in the order of its bytes
    place[[number for _, number in encoded]] = np.arange(len(encoded), dtype=np.uint64)
    length = np.frombuffer(lengths, np.uint32)
    row = np.repeat(np.arange(len(texts), dtype=np.uint64), length)
    # one number for a term and a row, so that sorting the numbers brings a term's rows together
    pairs, counts = np.unique(place[np.frombuffer(occurrences, np.uint32)] * len(texts) + row, return_counts=True)
    term, rows = pairs // len(texts), (pairs % len(texts)).astype(np.uint32)
    offsets = np.searchsorted(term, np.arange(len(encoded) + 1, dtype=np.uint64)).astype(np.uint64)
    impacts, scales = _score(term.astype(np.intp), counts, length[rows] / length.mean(), offsets, len(texts))
    tensors: dict[str, AnyArray] = {
        "terms": np.frombuffer(b"".join(word for word, _ in encoded), np.uint8),
        "terms.offsets": np.cumsum([0, *(len(word) for word, _ in encoded)], dtype=np.uint64),
        "postings.offsets": offsets,
        "rows": rows,
        "impacts": impacts,
        "scales": scales,
    }
    return tensors, KeywordsInfo(
        terms=len(encoded),
        postings=len(rows),
        stemming=options.stemming,
        k1=K1,
        b=B,
        fusion=options.fusion,
        fusion_weight=options.fusion_weight,
    )


def _score(
    term: Array[np.intp], counts: Array[np.intp], lengths: AnyArray, offsets: Array[np.uint64], rows: int
) -> tuple[Array[np.uint8], Array[np.float32]]:
    """Return the impact of each posting (n,) uint8 and the scale of each term (terms,) float32.

    term, counts and lengths are (n,): the place of the posting's term, how often it occurs in the row, and the length
    of the row divided by the mean. An impact is at least 1, so that a row with the term has a score.
    """
    holders = np.diff(offsets).astype(np.float64)
    idf = np.log1p((rows - holders + 0.5) / (holders + 0.5))
    exact = idf[term] * counts / (counts + K1 * (1 - B + B * lengths))
    scales = np.maximum.reduceat(exact, offsets[:-1].astype(np.intp)) / LARGEST_IMPACT
    impacts = np.maximum(np.rint(exact / scales[term]), 1).astype(np.uint8)
    return impacts, scales.astype(np.float32)
