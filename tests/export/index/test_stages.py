"""The stages of a search: as narrow as the recall allows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from export.index.index_file import CANDIDATES, RECALL_WITHOUT_LISTS, RESCORED, choose_stages, write_index_file
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
    assert exact.recall_of(Index.open(path, stages)) == recall >= RECALL_WITHOUT_LISTS
    narrower = max([width for width in RESCORED if width < stages.rescored], default=20)
    assert exact.recall_of(Index.open(path, replace(stages, rescored=narrower))) < recall
    assert stages.candidates < CANDIDATES[-1] or stages.rescored < RESCORED[-1]


def test_a_lower_recall_makes_the_stages_of_a_bundle_narrower_and_is_measured(tmp_path: Path) -> None:
    codes, scales = quantize(clustered_rows(10_000))
    usual, _ = write_index_file(tmp_path / "usual.safetensors", codes, scales)
    stages, recall = write_index_file(tmp_path / "index.safetensors", codes, scales, LEAST_RECALL)
    assert usual is not None
    assert stages is not None
    assert (stages.candidates, stages.rescored) < (usual.candidates, usual.rescored)
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    assert LEAST_RECALL <= recall == exact.recall_of(Index.open(tmp_path / "index.safetensors", stages))


def test_stages_that_may_miss_more_are_narrower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("export.index.index_file.LEAST_ROWS_OF_LISTS", 10_000)
    codes, scales = quantize(clustered_rows(10_000))
    path = tmp_path / "index.safetensors"
    stages, _ = write_index_file(path, codes, scales)
    assert stages is not None
    exact = search_exactly(own_queries(codes, scales), codes, scales)
    found, recall = choose_stages(path, stages.lists, exact, LEAST_RECALL)
    assert found is not None
    assert LEAST_RECALL <= recall == exact.recall_of(Index.open(path, found))
    assert (found.probed, found.candidates, found.rescored) < (stages.probed, stages.candidates, stages.rescored)


def test_a_large_corpus_of_equal_rows_has_no_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("export.index.index_file.LEAST_ROWS_OF_LISTS", 9_000)
    codes, scales = quantize(np.repeat(clustered_rows(1), 9_000, axis=0))
    stages, recall = write_index_file(tmp_path / "index.safetensors", codes, scales)
    assert stages is not None
    assert (stages.lists, recall) == (1, 1)
    hits = Index.open(tmp_path / "index.safetensors", stages).search(clustered_rows(1)[0], 10)
    assert [hit.row for hit in hits] == list(range(10))
