"""Choose how far each stage of a search goes: as little as the recall allows, measured with rows of the corpus."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from export.index.recall import LEAST_RECALL, ExactSearch
from function.engine.bundle import StagesInfo
from function.engine.semantic.index import Index

# the widths to choose from, each about 1.2 or 1.4 times the one before
SHARES = (0.02, 0.024, 0.03, 0.035, 0.042, 0.05, 0.06, 0.07, 0.085, 0.1, 0.12, 0.14, 0.17, 0.2, 0.24, 0.3, 0.4)
CANDIDATES = (500, 700, 1_000, 1_400, 2_000, 2_800, 4_000)
RESCORED = (100, 140, 200, 280, 400)
RECALL_WITH_LISTS = 0.99  # what the stages reach if the widest do
RECALL_WITHOUT_LISTS = 0.998  # a corpus without lists is searched quickly enough for more
SLACK = 0.0005  # of recall, for each stage that is chosen later


def choose_stages(
    path: Path, lists: int, exact: ExactSearch, enough: float | None = None
) -> tuple[StagesInfo | None, float]:
    """Return the stages of an index.safetensors with so many lists, and their recall against exact search.

    enough is the recall that the stages must reach, from LEAST_RECALL to 1; None stands for RECALL_WITH_LISTS or
    RECALL_WITHOUT_LISTS. The stages are chosen one after the other, each as narrow as the recall allows while the later
    ones are as wide as they can be. If even the widest stages do not reach LEAST_RECALL, return None and the recall of
    the widest.
    """
    if enough is None:
        enough = RECALL_WITH_LISTS if lists > 1 else RECALL_WITHOUT_LISTS
    probed = sorted({max(1, round(share * lists)) for share in SHARES}) if lists > 1 else [1]  # SHARES of the lists
    stages = StagesInfo(lists, probed[-1], CANDIDATES[-1], RESCORED[-1])
    recall = exact.recall_of(Index.open(path, stages))
    choices: Sequence[tuple[str, Sequence[int]]] = (
        ("probed", probed),
        ("candidates", CANDIDATES),
        ("rescored", RESCORED),
    )
    if recall < LEAST_RECALL:
        return None, recall
    for left, (name, widths) in zip(range(len(choices) - 1, -1, -1), choices, strict=True):
        for width in widths:
            narrower = replace(stages, **{name: width})
            found = exact.recall_of(Index.open(path, narrower))
            if found >= min(enough + left * SLACK, recall):
                stages, recall = narrower, found
                break
    return stages, recall
