"""nDCG@10, recall@5, @10 and @100 and MRR@10 of one question, as trec_eval computes them.

A grade of 1 or more is relevant, and 0 is not. The gain of nDCG is the grade itself (Järvelin and Kekäläinen, 2002),
not a power of 2. Scores are compared as float32, and hits with equal scores are in descending order of their ids. So
trec_eval computes the same figures from a run file. Source: https://github.com/usnistgov/trec_eval
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from semsearch.engine.tensors import Array
from semsearch.indexing.questions import Grades

SEMANTIC, KEYWORD, HYBRID = SEARCHES = ("semantic", "keyword", "hybrid")  # modes of a request
RERANKED = {mode: f"{mode}+rerank" for mode in SEARCHES}  # names of modes with `rerank`
# names of modes whose queries the model embeds, although the bundle has a query table
MODELED = {mode: f"{mode}+model" for mode in (SEMANTIC, HYBRID)}
MeasuredMode = Literal[
    "semantic", "keyword", "hybrid",
    "semantic+model", "hybrid+model",
    "semantic+rerank", "keyword+rerank", "hybrid+rerank",
]  # fmt: skip
MEASURED_MODES: tuple[str, ...] = get_args(MeasuredMode)  # all modes, in the order of tables
MEASURES = ("ndcg@10", "recall@5", "recall@10", "recall@100", "mrr@10")
TITLES = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10"}  # names of measures in tables, where they differ
CUT = 10  # number of first hits that nDCG and MRR use
RECALL_CUTS = (5, 10, 100)
DEPTH = max(RECALL_CUTS)  # number of first hits of a question that are measured


def rank(scores: Mapping[str, float]) -> list[str]:
    """Return the ids of scored hits, best first; equal scores are in descending order of the ids."""
    return sorted(sorted(scores, reverse=True), key=lambda name: -float(np.float32(scores[name])))


def measure(found: Sequence[str], relevant: Grades) -> Array[np.float64]:
    """Return the MEASURES of the ids that a search found, best first: (5,) float64 from 0 to 1.

    Raises ValueError if no grade is above 0, because the measures are not defined then.
    """
    grades = np.array([relevant.get(name, 0) for name in found[:DEPTH]], np.float64)
    count = sum(grade > 0 for grade in relevant.values())
    if not count:
        raise ValueError("no grade is above 0")
    hits = np.flatnonzero(grades)
    recalls = [np.count_nonzero(hits < cut) / count for cut in RECALL_CUTS]
    reciprocal_rank = 0.0
    if len(hits) and hits[0] < CUT:
        reciprocal_rank = 1 / (hits[0] + 1)
    ideal = np.sort(np.array(list(relevant.values()), np.float64))[::-1]
    return np.array([_discounted(grades) / _discounted(ideal), *recalls, reciprocal_rank])


def _discounted(grades: Array[np.float64]) -> float:
    top = grades[:CUT]
    return float((top / np.log2(np.arange(2, len(top) + 2))).sum())
