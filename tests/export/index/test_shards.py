"""Finished shards are found by the texts they hold, and go when nothing needs them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from export.corpus.digests import digest_texts
from export.files.replace import FINISHED
from export.index import shards
from export.index.shards import gather_rows, join_digests, read_shards, save_shard
from function.engine.quantization import Codes, Scales


def rows_of(texts: Sequence[str]) -> tuple[Codes, Scales]:
    """Return rows that say which text they are of."""
    numbers = np.array([int(text) for text in texts])
    return np.repeat(numbers[:, np.newaxis], 3, axis=1).astype(np.int8), numbers.astype(np.float32)


def save(fresh: Path, texts: Sequence[str], model: str = "model") -> None:
    save_shard(fresh, model, digest_texts(texts), *rows_of(texts), np.array([text == "7" for text in texts]))


def names(fresh: Path) -> set[str]:
    return {path.name for path in (fresh / FINISHED).iterdir()}


def test_shards_come_back_with_their_texts_and_rows(tmp_path: Path) -> None:
    save(tmp_path, ["1", "2", "3"])
    save(tmp_path, ["7", "8"])
    known = read_shards(tmp_path, "model", digest_texts(["8", "7", "3", "2", "1"]))
    found = {rows.digests.tobytes(): rows for rows in known}
    rows = found[digest_texts(["7", "8"]).tobytes()]
    assert rows.is_truncated.tolist() == [True, False]
    codes, scales = rows.read(np.array([1, 0]))
    assert (codes.tolist(), scales.tolist()) == ([[8] * 3, [7] * 3], [8, 7])
    assert len(known) == 2


def test_rows_are_gathered_in_any_order_from_several_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "ROWS_AT_ONCE", 2)
    for texts in (["0", "1", "2"], ["3", "4"], ["5"]):
        save(tmp_path, texts)
    known = read_shards(tmp_path, "model", digest_texts("012345"))
    order = [4, 0, 5, 5, 1, 3, 2]
    stored = join_digests(known).tolist()
    places = np.array([stored.index(digest) for digest in digest_texts(list(map(str, order))).tolist()])
    codes, scales = gather_rows(known, places, 3, tmp_path)
    assert codes.tolist() == [[number] * 3 for number in order]
    assert scales.tolist() == order
    assert names(tmp_path.parent / tmp_path.name) == {path.name for path in (tmp_path / FINISHED).iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == [FINISHED]  # the gathered codes have no name


def test_shards_of_another_model_and_of_other_texts_are_deleted(tmp_path: Path) -> None:
    save(tmp_path, ["1", "2"])
    mine = names(tmp_path)
    save(tmp_path, ["1", "2"], model="other")
    save(tmp_path, ["3"])
    (rows,) = read_shards(tmp_path, "model", digest_texts(["2", "9"]))
    assert rows.digests.tolist() == digest_texts(["1", "2"]).tolist()
    assert names(tmp_path) == mine


def test_a_damaged_shard_is_deleted(tmp_path: Path) -> None:
    save(tmp_path, ["1", "2"])
    (path,) = (tmp_path / FINISHED).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert read_shards(tmp_path, "model", digest_texts(["1", "2"])) == []
    assert names(tmp_path) == set()


def test_without_finished_shards_there_are_none(tmp_path: Path) -> None:
    assert read_shards(tmp_path, "model", digest_texts(["1"])) == []
