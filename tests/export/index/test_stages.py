"""The stages of a search: as narrow as the recall allows."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from export.index.index_file import CANDIDATES, ENOUGH, RESCORED, choose_stages, write_index_file
from export.index.recall import LEAST_RECALL, own_queries, search_exactly
from function.engine.quantization import quantize
from function.engine.semantic.index import Index
from tests.export.conftest import clustered_rows


def test_the_stages_are_the_narrowest_that_reach_the_recall(tmp_path: Path) -> None:
    codes, scales = quantize(clustered_rows(10_000))
    path = tmp_path / "index.safetensors"
    stages, recall = write_index_file(path, codes, scales)
    assert stages is not None
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    assert exact.recall_of(Index.open(path, stages)) == recall >= ENOUGH
    narrower = max([width for width in RESCORED if width < stages.rescored], default=20)
    assert exact.recall_of(Index.open(path, replace(stages, rescored=narrower))) < recall
    assert stages.candidates < CANDIDATES[-1] or stages.rescored < RESCORED[-1]


def test_stages_that_may_miss_more_are_narrower(tmp_path: Path) -> None:
    codes, scales = quantize(clustered_rows(10_000))
    path = tmp_path / "index.safetensors"
    usual, _ = write_index_file(path, codes, scales)
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    stages, recall = choose_stages(path, exact, LEAST_RECALL)
    assert usual is not None
    assert stages is not None
    assert LEAST_RECALL <= recall == exact.recall_of(Index.open(path, stages))
    assert (stages.candidates, stages.rescored) < (usual.candidates, usual.rescored)


def test_of_a_corpus_of_equal_rows_the_first_are_found(tmp_path: Path) -> None:
    codes, scales = quantize(np.repeat(clustered_rows(1), 9_000, axis=0))
    stages, recall = write_index_file(tmp_path / "index.safetensors", codes, scales)
    assert recall == 1
    hits = Index.open(tmp_path / "index.safetensors", stages).search(clustered_rows(1)[0], 10)
    assert [hit.row for hit in hits] == list(range(10))
