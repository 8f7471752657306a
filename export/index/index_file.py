"""Write index.safetensors: the rows, and what the stages of a search need. Many rows are written list by list."""

from pathlib import Path

import numpy as np

from export.files.mapped import release
from export.files.tensor_file import Gathered, Tensor, save_tensors
from export.index.lists import group_rows, principal_axes
from export.index.recall import ExactSearch, own_queries, search_exactly
from export.index.stages import choose_stages
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Scales, quantize
from function.engine.semantic.binary import Words, signs
from function.engine.semantic.index import EXHAUSTIVE_ROWS, Index

LEAST_ROWS_OF_LISTS = 60_000  # below, lists save little time, and without them a search misses less
ROWS_AT_ONCE = 65_536


def write_index_file(path: Path, codes: Codes, scales: Scales) -> tuple[StagesInfo | None, float]:
    """Write the rows of a corpus, and return the stages of a search and their recall.

    codes is (rows, dim) int8 and scales (rows,) float32, in the order of the corpus; both may be memory-mapped.
    """
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    if len(codes) > EXHAUSTIVE_ROWS:
        stages, recall = _write_stages(path, codes, scales, exact)
        if stages is not None:
            return stages, recall
    save_tensors(path, {"codes": codes, "scales": scales})
    return None, exact.recall_of(Index.open(path, None))


def _write_stages(path: Path, codes: Codes, scales: Scales, exact: ExactSearch) -> tuple[StagesInfo | None, float]:
    """Write the rows with their signs and, if they are many, in lists; the stages are None if they find too little."""
    if len(codes) < LEAST_ROWS_OF_LISTS:
        save_tensors(path, {"codes": codes, "scales": scales, "bits": _signs(codes).T})
        return choose_stages(path, 1, exact)
    centroids, numbers = group_rows(codes, scales)
    order = np.argsort(numbers, kind="stable")
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    axes = principal_axes(centroids)
    centroid_codes, centroid_scales = quantize(centroids @ axes)
    tensors: dict[str, Tensor] = {
        "codes": Gathered(codes, order),
        "scales": Gathered(scales, order),
        "bits": Gathered(_signs(codes), order),
        "axes": axes,
        "centroids": centroid_codes,
        "centroids.scales": centroid_scales,
        "lists.offsets": np.cumsum([0, *np.bincount(numbers)], dtype=np.uint32),
        "lists.rows": order.astype(np.uint32),
        "lists.places": places,
    }
    save_tensors(path, tensors)
    return choose_stages(path, len(centroids), exact)


def _signs(codes: Codes) -> Words:
    blocks = []
    for begin in range(0, len(codes), ROWS_AT_ONCE):
        blocks.append(signs(codes[begin : begin + ROWS_AT_ONCE]))
        release(codes)
    return np.concatenate(blocks)
