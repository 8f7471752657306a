"""Write index.safetensors: the rows, and what the stages of a search need. Many rows are written list by list.

Each stage goes as far as the recall requires and no further, measured with rows of the corpus. An update that keeps the
lists of an older index keeps its stages too, if they still reach that recall, and otherwise widens them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from export.files.tensor_file import Gathered, Tensor, release, save_tensors
from export.index.kept_lists import ListsOfRows
from export.index.lists import group_rows, principal_axes
from export.index.recall import LEAST_RECALL, ExactSearch, own_queries, search_exactly
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Scales, quantize
from function.engine.semantic.binary import Words, signs
from function.engine.semantic.index import EXHAUSTIVE_ROWS, Index

LEAST_ROWS_OF_LISTS = 60_000  # with fewer rows, lists save little time, and without them a search misses less
ROWS_AT_ONCE = 65_536  # rows whose signs are computed at a time
# The widths to choose from, each about 1.2 or 1.4 times the one before. SHARES are shares of the lists.
SHARES = (0.01, 0.012, 0.014, 0.017, 0.02, 0.024, 0.03, 0.035, 0.042, 0.05, 0.06, 0.085, 0.12, 0.17, 0.24, 0.34, 0.4)
CANDIDATES = (500, 700, 1_000, 1_400, 2_000, 2_800, 4_000)
RESCORED = (100, 140, 200, 280, 400)
RECALL_WITH_LISTS = 0.99  # what the stages reach if the widest do
RECALL_WITHOUT_LISTS = 0.998  # a corpus without lists is searched quickly enough for more
SLACK = 0.0005  # recall that is left for each stage that is chosen later


def write_index_file(
    path: Path,
    codes: Codes,
    scales: Scales,
    enough: float | None = None,
    kept: ListsOfRows | None = None,
    exact: ExactSearch | None = None,
) -> tuple[StagesInfo | None, float]:
    """Write the rows of a corpus, and return the stages of a search and their recall.

    codes is (rows, dim) int8 and scales (rows,) float32, in the order of the corpus; both can be memory-mapped. enough
    is that of `choose_stages`. kept are the lists of an older index, None for new ones. exact is what exact search
    finds for `own_queries`, if it is known.
    """
    exact = exact or search_exactly(own_queries(codes, scales), codes, scales)
    if len(codes) > EXHAUSTIVE_ROWS:
        for lists in [None] if kept is None else [kept, None]:
            stages, recall = _write_stages(path, codes, scales, exact, enough, lists)
            if stages is not None:
                return stages, recall
    save_tensors(path, {"codes": codes, "scales": scales})
    return None, exact.recall_of(Index.open(path, None))


def _write_stages(
    path: Path, codes: Codes, scales: Scales, exact: ExactSearch, enough: float | None, kept: ListsOfRows | None
) -> tuple[StagesInfo | None, float]:
    """Write the rows with their signs and, if they are many, in lists; no stages if their recall is too low."""
    lists = None if len(codes) < LEAST_ROWS_OF_LISTS else kept or _make_lists(codes, scales)
    if lists is None or len(lists.centroids) == 1:  # all rows are equal
        save_tensors(path, {"codes": codes, "scales": scales, "bits": _signs(codes).T})
        return choose_stages(path, 1, exact, enough)
    order, entries = np.argsort(lists.numbers[:, 0], kind="stable"), lists.entries()
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    tensors: dict[str, Tensor] = {
        "codes": Gathered(codes, order),
        "scales": Gathered(scales, order),
        "bits": Gathered(_signs(codes), entries.rows),
        "axes": lists.axes,
        "centroids": lists.centroids,
        "centroids.scales": lists.scales,
        "lists.offsets": entries.offsets,
        "lists.rows": order.astype(np.uint32),
        "lists.places": places,
        "entries.places": places[entries.rows],
        "places.entries": entries.of_rows[order],
    }
    save_tensors(path, tensors, lists.notes)
    # another recall than before needs stages of its own
    return choose_stages(path, len(lists.centroids), exact, enough, lists.stages if enough is None else None)


def _make_lists(codes: Codes, scales: Scales) -> ListsOfRows:
    centroids, numbers = group_rows(codes, scales)
    axes = principal_axes(centroids)
    return ListsOfRows(numbers, axes, *quantize(centroids @ axes))


def _signs(codes: Codes) -> Words:
    blocks = []
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        blocks.append(signs(codes[begin : begin + ROWS_AT_ONCE]))
        release(codes)
    return np.concatenate(blocks)


def choose_stages(
    path: Path, lists: int, exact: ExactSearch, enough: float | None = None, kept: StagesInfo | None = None
) -> tuple[StagesInfo | None, float]:
    """Return the stages of an index.safetensors with this number of lists, and their recall against exact search.

    enough is the recall that the stages must reach, from LEAST_RECALL to 1; None means RECALL_WITH_LISTS or
    RECALL_WITHOUT_LISTS. `kept` are returned if they reach it; otherwise no stage becomes narrower than in `kept`. The
    stages are chosen one after the other, each as narrow as the recall allows while the later ones are as wide as they
    can be. If even the widest stages do not reach LEAST_RECALL, return None and the recall of the widest.
    """
    if enough is None:
        enough = RECALL_WITH_LISTS if lists > 1 else RECALL_WITHOUT_LISTS
    if kept is not None and (recall := exact.recall_of(Index.open(path, kept))) >= enough:
        return kept, recall
    probed = sorted({max(1, round(share * lists)) for share in SHARES}) if lists > 1 else [1]
    stages = StagesInfo(lists, probed[-1], CANDIDATES[-1], RESCORED[-1])
    recall = exact.recall_of(Index.open(path, stages))
    if recall < LEAST_RECALL:
        return None, recall
    choices: dict[str, Sequence[int]] = {"probed": probed, "candidates": CANDIDATES, "rescored": RESCORED}
    for place, (name, widths) in enumerate(choices.items(), 1):
        for width in widths if kept is None else [width for width in widths if width >= getattr(kept, name)]:
            narrower = replace(stages, **{name: width})
            if narrower == stages:  # the widest, whose recall is known
                break
            found = exact.recall_of(Index.open(path, narrower))
            if found >= min(enough + (len(choices) - place) * SLACK, recall):
                stages, recall = narrower, found
                break
    return stages, recall
