"""Write index.safetensors: the rows, and the signs of those that a search counts first.

Each stage goes as far as the recall requires and no further, measured with rows of the corpus and spans of its texts.
"""

from bisect import bisect_left
from pathlib import Path

import numpy as np

from export.files.tensor_file import release, save_tensors
from export.index.recall import ExactSearches, Recall
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Scales
from function.engine.semantic.binary import Words, signs
from function.engine.semantic.index import EXHAUSTIVE_ROWS, Index

ROWS_AT_ONCE = 65_536  # rows whose signs are computed at a time
# The widths to choose from, each about 1.4 times the one before
CANDIDATES = (500, 700, 1_000, 1_400, 2_000, 2_800, 4_000, 5_600, 8_000)
RESCORED = (100, 140, 200, 280, 400)
# What stages reach with each kind of query. With 0.99, titles of papers would find 89 % of their ten best
# headlines instead of 93 %.
LEAST = Recall(at_10=0.995, first=0.995)
SLACK = 0.0005  # recall that the first stage leaves for the second


def write_index_file(
    path: Path, codes: Codes, scales: Scales, exact: ExactSearches
) -> tuple[StagesInfo | None, dict[str, Recall]]:
    """Write the rows of a corpus; return the stages of a search, and their recall by the kind of query.

    codes is (rows, dim) int8 and scales (rows,) float32, in the order of the corpus; both can be memory-mapped.
    """
    stages = None
    if len(codes) > EXHAUSTIVE_ROWS:
        save_tensors(path, {"codes": codes, "scales": scales, "bits": _signs(codes).T})
        stages = choose_stages(path, exact)
    if stages is None:
        save_tensors(path, {"codes": codes, "scales": scales})
    index = Index.open(path, stages)
    return stages, {kind: each.recall_of(index) for kind, each in exact.items()}


def _signs(codes: Codes) -> Words:
    blocks = []
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        blocks.append(signs(codes[begin : begin + ROWS_AT_ONCE]))
        release(codes)
    return np.concatenate(blocks)


def choose_stages(path: Path, exact: ExactSearches, least: Recall = LEAST) -> StagesInfo | None:
    """Return the narrowest stages of an index.safetensors that reach this recall with each kind of query.

    They are chosen one after the other, the first while the second is as wide as it can be. Return None if even the
    widest do not reach it.
    """

    def is_enough(candidates: int, rescored: int, slack: float = 0.0) -> bool:
        index, goal = Index.open(path, StagesInfo(candidates, rescored)), Recall(least.at_10 + slack, least.first)
        return all(each.recall_of(index).reaches(goal) for each in exact.values())

    # bisect calls the key only for some widths: a wider stage finds no less
    place = bisect_left(CANDIDATES[:-1], True, key=lambda width: is_enough(width, RESCORED[-1], SLACK))
    candidates = CANDIDATES[place]
    place = bisect_left(RESCORED, True, key=lambda width: is_enough(candidates, width))
    return None if place == len(RESCORED) else StagesInfo(candidates, RESCORED[place])
