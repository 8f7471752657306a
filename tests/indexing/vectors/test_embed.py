"""A corpus is embedded in shards, and each text as if it were alone."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import BY_CORES
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Codes, Scales, quantize
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.digests import digest_texts
from semsearch.indexing.replacing import FINISHED
from semsearch.indexing.vectors import embed
from semsearch.indexing.vectors.embed import Cores, embed_corpus
from semsearch.indexing.vectors.shards import Shard, read_shards, save_shard


def test_a_corpus_embeds_to_the_same_bits_as_its_texts_one_by_one(
    embedder: Embedder, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 64)  # 200 texts: three shards and a rest
    rows = embed_corpus(Cores(embedder), corpus.texts, tmp_path, "tests", embedder.model.dim)
    alone = np.concatenate([embedder.embed(embedder.tokenize([text], role="document")) for text in corpus.texts])
    codes, scales = quantize(alone)
    assert (rows.codes.dtype, rows.scales.dtype) == (np.dtype(np.int8), np.dtype(np.float32))
    np.testing.assert_array_equal(rows.codes, codes)
    np.testing.assert_array_equal(rows.scales, scales)
    assert len(list((tmp_path / FINISHED).iterdir())) == 4


def test_equal_texts_embed_once(embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 2)  # so that equal texts would be in different batches
    long = "a sailor " * 40
    same = "the old sailor"
    texts = [same, "forty apples", long, same, "a", long, f"{same} " * 5, same]
    told: list[tuple[float, int]] = []
    rows = embed_corpus(
        *(Cores(embedder), texts, tmp_path, "tests", embedder.model.dim),
        on_progress=lambda step, share, texts=0: told.append((share, texts)),
    )
    codes, scales = quantize(embedder.embed(embedder.tokenize(texts, role="document")))
    np.testing.assert_array_equal(rows.codes, codes)  # each row is its own text's
    np.testing.assert_array_equal(rows.scales, scales)
    assert (rows.embedded, rows.resumed, rows.updated) == (5, 0, 0)
    assert np.flatnonzero(rows.is_truncated).tolist() == [2, 5]
    assert told[0] == (3 / 8, 0)  # every text counts, also one that was embedded before
    assert told[-1] == (1.0, 5)


def rows_of(texts: Sequence[str]) -> tuple[Codes, Scales]:
    """Return rows that say which text they are of."""
    numbers = np.array([int(text) for text in texts])
    return np.repeat(numbers[:, np.newaxis], 3, axis=1).astype(np.int8), numbers.astype(np.float32)


def save(fresh: Path, texts: Sequence[str], model: str = "model") -> None:
    shard = Shard(0, *rows_of(texts), np.array([text == "7" for text in texts]), BY_CORES)
    save_shard(fresh, model, digest_texts(texts), shard)


def names(fresh: Path) -> set[str]:
    return {path.name for path in (fresh / FINISHED).iterdir()}


def test_shards_come_back_with_their_texts_and_rows(tmp_path: Path) -> None:
    save(tmp_path, ["1", "2", "3"])
    save(tmp_path, ["7", "8"])
    known = read_shards(tmp_path, "model")
    found = {rows.digests.tobytes(): rows for rows in known}
    rows = found[digest_texts(["7", "8"]).tobytes()]
    assert rows.is_truncated.tolist() == [True, False]
    codes, scales = rows.read(np.array([1, 0]))
    assert (codes.tolist(), scales.tolist()) == ([[8] * 3, [7] * 3], [8, 7])
    assert len(known) == 2


def test_shards_of_another_model_are_deleted(tmp_path: Path) -> None:
    save(tmp_path, ["1", "2"])
    mine = names(tmp_path)
    save(tmp_path, ["1", "2"], model="other")
    (rows,) = read_shards(tmp_path, "model")
    assert rows.digests.tolist() == digest_texts(["1", "2"]).tolist()
    assert names(tmp_path) == mine


def test_a_damaged_shard_is_deleted(tmp_path: Path) -> None:
    save(tmp_path, ["1", "2"])
    (path,) = (tmp_path / FINISHED).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert read_shards(tmp_path, "model") == []
    assert names(tmp_path) == set()
