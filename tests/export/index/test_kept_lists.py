"""An update that keeps the lists of an older index finds what a full export finds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from export.corpus import Corpus
from export.files.tensor_file import read_notes
from export.index import index_file
from export.index.index_file import choose_stages, write_index_file
from export.index.kept_lists import OlderLists
from export.index.lists import SPREAD, group_rows
from export.index.recall import LEAST_RECALL, ExactSearch, own_queries, search_exactly
from function.engine.bundle import INDEX, StagesInfo, read_manifest
from function.engine.quantization import Codes, Scales, dequantize, quantize
from function.engine.semantic.binary import signs
from function.engine.semantic.index import Index
from tests.export.command_line import export_texts, summary, write_texts
from tests.export.conftest import clustered_rows

ROWS = 9_000


@dataclass(frozen=True, slots=True)
class Written:
    """An index file, its rows and the stages of its searches."""

    path: Path
    codes: Codes
    scales: Scales
    stages: StagesInfo
    recall: float

    @property
    def lists(self) -> OlderLists:
        lists = OlderLists.read(self.path, self.stages)
        assert lists is not None
        return lists


@pytest.fixture(autouse=True, scope="module")
def lists_of_few_rows() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_file, "LEAST_ROWS_OF_LISTS", 1_000)
        yield


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Written:
    path = tmp_path_factory.mktemp("older") / INDEX
    codes, scales = quantize(clustered_rows(ROWS))
    stages, recall = write_index_file(path, codes, scales)
    assert stages is not None
    assert stages.lists > 1
    return Written(path, codes, scales, stages, recall)


def changed(older: Written, new: int, removed: int, seed: int = 1) -> tuple[np.ndarray[Any, Any], Codes, Scales]:
    """Return rows of which some are new and some are gone, in another order: the older row of each, and all rows."""
    random = np.random.default_rng(seed)
    rows = np.concatenate([random.permutation(len(older.codes))[removed:], np.full(new, -1)])
    random.shuffle(rows)
    codes, scales = older.codes[rows], older.scales[rows]
    codes[rows < 0], scales[rows < 0] = quantize(clustered_rows(new, seed=seed + 100))
    return rows, codes, scales


def update(older: Written, path: Path, new: int, removed: int, seed: int = 1) -> Written:
    rows, codes, scales = changed(older, new, removed, seed)
    stages, recall = write_index_file(path, codes, scales, kept=older.lists.keep(rows, codes, scales))
    assert stages is not None
    return Written(path, codes, scales, stages, recall)


def test_an_update_runs_no_k_means_and_finds_what_a_full_export_finds_at_the_same_recall(
    older: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, codes, scales = changed(older, 200, 150)
    full, _ = write_index_file(tmp_path / "full", codes, scales)
    monkeypatch.setattr(index_file, "group_rows", None)  # an error if it were called
    kept = update(older, tmp_path / INDEX, 200, 150)
    assert kept.recall >= index_file.RECALL_WITH_LISTS
    index = Index.open(kept.path, kept.stages)
    exact, queries = Index.open(tmp_path / "full", full), own_queries(codes, scales)[:100]
    for query in queries:
        assert index.search(query, 10, exact=True) == exact.search(query, 10, exact=True)
    assert search_exactly(queries, codes, scales).recall_of(index) >= LEAST_RECALL
    allowed = np.arange(len(codes)) % 3 == 0
    assert index.search(queries[0], 10, allowed, exact=True) == exact.search(queries[0], 10, allowed, exact=True)


def test_rows_stay_in_their_lists_and_new_ones_join_the_list_that_a_query_would_take_first(
    older: Written, tmp_path: Path
) -> None:
    rows, codes, scales = changed(older, 200, 150)
    lists = older.lists.keep(rows, codes, scales)
    assert lists is not None
    stored, old_numbers = load_file(older.path), older.lists.numbers
    same = [np.unique(lists.numbers[rows >= 0][old_numbers[rows[rows >= 0]] == each]).size for each in range(50)]
    assert set(same) <= {0, 1}  # rows of one older list are in one list
    centroids = stored["centroids"] * stored["centroids.scales"][:, np.newaxis]
    new = dequantize(codes[rows < 0], scales[rows < 0]) @ stored["axes"]
    first, second = np.moveaxis(
        lists.centroids[lists.numbers[rows < 0]] * lists.scales[lists.numbers[rows < 0], None], 1, 0
    )
    np.testing.assert_allclose(first, centroids[(new @ centroids.T).argmax(axis=1)], rtol=1e-5)
    for row, one, other in zip(new, first, second, strict=True):
        direction = (row - one) / np.linalg.norm(row - one)
        losses = ((row - centroids) ** 2).sum(axis=1) + SPREAD * ((row - centroids) @ direction) ** 2
        losses[(centroids == one).all(axis=1)] = np.inf
        np.testing.assert_allclose(other, centroids[losses.argmin()], rtol=1e-5)
    written = load_file(update(older, tmp_path / INDEX, 200, 150).path)
    np.testing.assert_array_equal(written["codes"], codes[written["lists.rows"]])
    assert np.diff(written["lists.offsets"].astype(int)).min() > 0
    list_of = np.repeat(np.arange(len(written["centroids"])), np.diff(written["lists.offsets"].astype(int)))
    rows_of = written["lists.rows"][written["entries.places"]]
    found = sorted(zip(rows_of.tolist(), list_of.tolist(), strict=True))
    assert found == sorted({(row, int(each)) for row, both in enumerate(lists.numbers) for each in both})
    np.testing.assert_array_equal(list_of[written["places.entries"][written["lists.places"]]], lists.numbers[:, 0])
    np.testing.assert_array_equal(written["bits"], signs(codes)[rows_of])


def test_lists_of_an_older_version_are_made_again(older: Written, tmp_path: Path) -> None:
    tensors = load_file(older.path)
    del tensors["entries.places"], tensors["places.entries"]
    save_file(tensors, tmp_path / INDEX)
    assert OlderLists.read(tmp_path / INDEX, older.stages) is None


def test_both_lists_of_each_row_are_read_from_the_file(older: Written) -> None:
    _, numbers = group_rows(older.codes, older.scales)
    np.testing.assert_array_equal(older.lists.numbers, numbers)


def test_a_new_row_that_is_equal_to_a_centroid_joins_a_second_list_too(older: Written) -> None:
    lists = older.lists
    codes, scales = quantize((dequantize(lists.centroids, lists.scales) @ lists.axes.T)[:500])
    rows = np.concatenate([np.arange(ROWS), np.full(500, -1)])
    kept = lists.keep(rows, np.concatenate([older.codes, codes]), np.concatenate([older.scales, scales]))
    assert kept is not None
    assert (kept.numbers[:, 0] != kept.numbers[:, 1]).all()


def test_a_new_row_with_the_codes_of_an_older_one_joins_its_list(older: Written) -> None:
    rows = np.concatenate([np.arange(ROWS), np.full(300, -1)])
    copied = np.arange(300) * 7
    codes = np.concatenate([older.codes, older.codes[copied]])
    lists = older.lists.keep(rows, codes, np.concatenate([older.scales, older.scales[copied]]))
    assert lists is not None
    np.testing.assert_array_equal(lists.numbers[ROWS:], lists.numbers[copied])


def test_the_lists_are_made_again_when_a_fifth_of_the_rows_has_changed_in_all_updates(
    older: Written, tmp_path: Path
) -> None:
    rows, codes, scales = changed(older, 900, 900)
    assert older.lists.keep(rows, codes, scales) is None  # 900 joined and 900 left
    first = update(older, tmp_path / "first", 400, 500)
    assert read_notes(first.path) == {"changed": "900"}
    second = update(first, tmp_path / "second", 440, 430, seed=2)
    assert read_notes(second.path) == {"changed": "1770"}
    rows, codes, scales = changed(second, 40, 0, seed=3)
    assert second.lists.keep(rows, codes, scales) is None
    third = update(second, tmp_path / "third", 40, 0, seed=3)
    assert read_notes(third.path) == {}


@pytest.mark.parametrize(("enough", "measured"), [(0.0, 1), (None, 2)])
def test_the_stages_are_kept_if_they_reach_the_recall_and_are_never_narrowed(
    older: Written, monkeypatch: pytest.MonkeyPatch, enough: float | None, measured: int
) -> None:
    exact = search_exactly(own_queries(older.codes, older.scales), older.codes, older.scales)
    calls = []
    recall_of = ExactSearch.recall_of

    def count(search: ExactSearch, index: Index) -> float:
        calls.append(index)
        return recall_of(search, index)

    monkeypatch.setattr(ExactSearch, "recall_of", count)
    kept = StagesInfo(older.stages.lists, 1, 500, 100)
    found, recall = choose_stages(older.path, older.stages.lists, exact, enough, kept)
    assert found is not None
    if enough is None:
        assert len(calls) >= measured
        assert recall >= index_file.RECALL_WITH_LISTS
        assert found.probed > 1
    else:
        assert (found, len(calls)) == (kept, measured)
    wide = StagesInfo(older.stages.lists, older.stages.lists // 3, 1_400, 140)
    found, _ = choose_stages(older.path, older.stages.lists, exact, kept=wide)
    assert found is not None
    assert (found.probed >= wide.probed, found.candidates >= 1_400, found.rescored >= 140) == (True, True, True)


def test_the_command_keeps_the_lists_of_the_bundle_that_it_updates(
    bundle_copy: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("EXHAUSTIVE_ROWS", 50), ("LEAST_ROWS_OF_LISTS", 100), ("LEAST_RECALL", 0.0)):
        monkeypatch.setattr(index_file, name, value)
    texts = [*corpus.texts[:180], *(f"{text} Again." for text in corpus.texts[:10])]
    export_texts(write_texts(tmp_path / "old.csv", texts), bundle_copy)
    before = read_manifest(bundle_copy).index
    assert before is not None
    assert before.stages is not None
    monkeypatch.setattr(index_file, "group_rows", None)
    new = write_texts(tmp_path / "new.csv", ["Her sister missed the train.", *texts[5:]])
    done = export_texts(new, bundle_copy, "--update", bundle_copy)
    assert summary(done, "embedded") == "1 texts, 185 rows taken over from the bundle of --update"
    assert read_notes(bundle_copy / INDEX) == {"changed": "6"}
    after = read_manifest(bundle_copy).index
    assert after is not None
    assert after.stages is not None
    assert after.rows == 186


def test_an_update_takes_the_rows_over_from_a_bundle_whose_lists_it_cannot_keep(
    bundle_copy: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("EXHAUSTIVE_ROWS", 50), ("LEAST_ROWS_OF_LISTS", 100), ("LEAST_RECALL", 0.0)):
        monkeypatch.setattr(index_file, name, value)
    texts = write_texts(tmp_path / "texts.csv", [*corpus.texts[:180]])
    export_texts(texts, bundle_copy)
    first = load_file(bundle_copy / INDEX)
    monkeypatch.setattr(OlderLists, "read", lambda *_: None)  # as for a file of an older version
    export_texts(texts, bundle_copy, "--update", bundle_copy)
    for name, tensor in load_file(bundle_copy / INDEX).items():
        np.testing.assert_array_equal(tensor, first[name])
