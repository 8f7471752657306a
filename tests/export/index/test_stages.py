"""The stages of a search: as narrow as the recall of the worst kind of query allows."""

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from export.index.index_file import LEAST, RESCORED, choose_stages, write_index_file
from export.index.recall import ROWS, SPANS, ExactSearch, Recall, sample_rows, search_exactly
from function.engine.bundle import StagesInfo
from function.engine.quantization import Codes, Scales, quantize
from function.engine.semantic.index import Index
from tests.export.conftest import clustered_rows


@pytest.fixture(scope="module")
def rows() -> tuple[Codes, Scales]:
    return quantize(clustered_rows(10_000))


@pytest.fixture(scope="module")
def easy(rows: tuple[Codes, Scales]) -> ExactSearch:
    """Return the search for rows of the corpus."""
    return search_exactly(sample_rows(*rows)[::5], *rows)


@pytest.fixture(scope="module")
def hard(rows: tuple[Codes, Scales]) -> ExactSearch:
    """Return the search for queries that are hardly more like one row than like another."""
    queries = clustered_rows(10_000, seed=8)[:100]
    return search_exactly(queries, *rows)


def test_the_stages_are_the_narrowest_that_reach_the_recall(
    rows: tuple[Codes, Scales], easy: ExactSearch, tmp_path: Path
) -> None:
    path = tmp_path / "index.safetensors"
    stages, found = write_index_file(path, *rows, {ROWS: easy})
    assert stages is not None
    assert found == {ROWS: easy.recall_of(Index.open(path, stages))}
    assert found[ROWS].reaches(LEAST)
    narrower = max([width for width in RESCORED if width < stages.rescored], default=20)
    assert not easy.recall_of(Index.open(path, StagesInfo(stages.candidates, narrower))).reaches(LEAST)


@pytest.mark.parametrize("kinds", [(ROWS, SPANS), (SPANS, ROWS)])
def test_the_worse_of_two_kinds_of_queries_decides(
    rows: tuple[Codes, Scales], easy: ExactSearch, hard: ExactSearch, kinds: tuple[str, str], tmp_path: Path
) -> None:
    path, least = tmp_path / "index.safetensors", Recall(0.8, 0.5)
    write_index_file(path, *rows, {ROWS: easy})
    narrow = choose_stages(path, {ROWS: easy}, least)
    stages = choose_stages(path, dict(zip(kinds, (easy, hard), strict=True)), least)
    assert narrow is not None
    assert stages is not None
    assert astuple(stages) > astuple(narrow)
    assert hard.recall_of(Index.open(path, stages)).reaches(least)


@pytest.mark.parametrize("least", [Recall(1.1, 0), Recall(0, 1.1)])
def test_without_stages_that_reach_both_shares_a_corpus_has_none(
    rows: tuple[Codes, Scales], easy: ExactSearch, least: Recall, tmp_path: Path
) -> None:
    write_index_file(tmp_path / "index.safetensors", *rows, {ROWS: easy})
    assert choose_stages(tmp_path / "index.safetensors", {ROWS: easy}, least) is None


def test_of_a_corpus_of_equal_rows_the_first_are_found(tmp_path: Path) -> None:
    codes, scales = quantize(np.repeat(clustered_rows(1), 9_000, axis=0))
    exact = {ROWS: search_exactly(clustered_rows(1), codes, scales)}
    stages, found = write_index_file(tmp_path / "index.safetensors", codes, scales, exact)
    assert found == {ROWS: Recall(1, 1)}
    hits = Index.open(tmp_path / "index.safetensors", stages).search(clustered_rows(1)[0], 10)
    assert [hit.row for hit in hits] == list(range(10))
