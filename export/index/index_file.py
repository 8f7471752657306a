"""Write index.safetensors: the rows, and the signs of those that a search counts first.

Each stage goes as far as the recall requires and no further, measured with rows of the corpus.
"""

from bisect import bisect_left
from pathlib import Path

import numpy as np

from export.files.tensor_file import release, save_tensors
from export.index.recall import LEAST_RECALL, ExactSearch, own_queries, search_exactly
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Scales
from function.engine.semantic.binary import Words, signs
from function.engine.semantic.index import EXHAUSTIVE_ROWS, Index

ROWS_AT_ONCE = 65_536  # rows whose signs are computed at a time
# The widths to choose from, each about 1.4 times the one before
CANDIDATES = (500, 700, 1_000, 1_400, 2_000, 2_800, 4_000)
RESCORED = (100, 140, 200, 280, 400)
ENOUGH = 0.998  # what the stages reach if the widest do
SLACK = 0.0005  # recall that is left for the stage that is chosen later


def write_index_file(
    path: Path, codes: Codes, scales: Scales, exact: ExactSearch | None = None
) -> tuple[StagesInfo | None, float]:
    """Write the rows of a corpus, and return the stages of a search and their recall.

    codes is (rows, dim) int8 and scales (rows,) float32, in the order of the corpus; both can be memory-mapped. exact
    is what exact search finds for `own_queries`, if it is known.
    """
    exact = exact or search_exactly(own_queries(codes, scales), codes, scales)
    if len(codes) > EXHAUSTIVE_ROWS:
        save_tensors(path, {"codes": codes, "scales": scales, "bits": _signs(codes).T})
        stages, recall = choose_stages(path, exact)
        if stages is not None:
            return stages, recall
    save_tensors(path, {"codes": codes, "scales": scales})
    return None, exact.recall_of(Index.open(path, None))


def _signs(codes: Codes) -> Words:
    blocks = []
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        blocks.append(signs(codes[begin : begin + ROWS_AT_ONCE]))
        release(codes)
    return np.concatenate(blocks)


def choose_stages(path: Path, exact: ExactSearch, enough: float = ENOUGH) -> tuple[StagesInfo | None, float]:
    """Return the stages of an index.safetensors with signs, and their recall against exact search.

    enough is the recall that the stages must reach, or else that of the widest. The stages are chosen one after the
    other, each as narrow as the recall allows while the later one is as wide as it can be. If even the widest stages do
    not reach LEAST_RECALL, return None and the recall of the widest.
    """

    def recall_of(candidates: int, rescored: int) -> float:
        return exact.recall_of(Index.open(path, StagesInfo(candidates, rescored)))

    widest = recall_of(CANDIDATES[-1], RESCORED[-1])
    if widest < LEAST_RECALL:
        return None, widest
    goal = min(enough, widest)

    def has_enough(candidates: int) -> bool:
        return recall_of(candidates, RESCORED[-1]) >= min(enough + SLACK, widest)

    candidates = CANDIDATES[bisect_left(CANDIDATES[:-1], True, key=has_enough)]
    rescored = RESCORED[bisect_left(RESCORED[:-1], True, key=lambda width: recall_of(candidates, width) >= goal)]
    return StagesInfo(candidates, rescored), recall_of(candidates, rescored)
