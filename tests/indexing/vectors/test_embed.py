"""A corpus is embedded in shards, and each text as if it were alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semsearch.engine.bundle import BY_CORES, MODEL, TOKENIZER, FileInfo, Manifest
from semsearch.engine.embedder import Embedder
from semsearch.engine.quantization import Codes, Scales, quantize
from semsearch.engine.tensors import TensorsError
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.digests import digest_texts
from semsearch.indexing.replacing import FINISHED
from semsearch.indexing.vectors import embed, shards
from semsearch.indexing.vectors.embed import Cores, OnEmbedded, PassageEmbedder, embed_corpus, group, take_shards
from semsearch.indexing.vectors.shards import KnownRows, Shard, name_model, read_shards, save_shard


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


def test_a_shard_that_the_disk_has_lost_at_once_is_an_error(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "save_shard", lambda *arguments: None)
    with pytest.raises(TensorsError) as caught:
        embed_corpus(Cores(embedder), ["a goose"], tmp_path, "tests", embedder.model.dim)
    assert str(caught.value) == (
        f"{tmp_path}: a shard is damaged that was just written; expected a disk that works; check it"
    )


def known(texts: Sequence[str], embedded_by: str) -> KnownRows:
    """Return rows that say which text they are of; a text that is 7 was truncated."""
    digests, is_truncated = digest_texts(texts), np.array([text == "7" for text in texts])
    return KnownRows(digests, is_truncated, lambda places: rows_of([texts[place] for place in places]), [embedded_by])


class Numbers(PassageEmbedder):
    """Embeds texts that are numbers, three at a time, the last ones first."""

    def embed(self, texts: Iterator[str], count: OnEmbedded) -> Iterator[Shard]:
        for begin, shard in reversed(list(take_shards(texts, 3))):
            count(len(shard))
            yield Shard(begin, *rows_of(shard), np.zeros(len(shard), bool), "numbers")

    def describe(self) -> str:
        return ""


def test_rows_are_taken_from_the_older_index_then_from_the_caller_then_from_a_stopped_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "GATHERED_AT_ONCE", 6)  # two rows
    save(tmp_path, ["4", "5"], embedded_by="shard")
    older, given = known(["1", "2", "7", "1"], "older"), known(["2", "3"], "given")
    texts = ["3", "9", "1", "8", "7", "4", "6", "9", "10", "11", "2", "1"]
    told: list[tuple[float, int]] = []
    found = embed_corpus(
        *(Numbers(), texts, tmp_path, "model", 3, older, [given]),
        on_progress=lambda step, share, texts=0: told.append((share, texts)),
        older_rows=np.array([-1, -1, 3, *[-1] * 9]),
    )
    numbers = [int(text) for text in texts]
    assert found.codes.tolist() == [[number] * 3 for number in numbers]
    assert found.scales.tolist() == numbers
    assert found.older_rows.tolist() == [-1, -1, 3, -1, 2, *[-1] * 5, 1, 0]
    assert np.flatnonzero(found.is_truncated).tolist() == [4]
    assert (found.embedded, found.given, found.resumed, found.updated) == (5, 1, 1, 4)
    assert found.embedded_by == ["given", "numbers", "older", "shard"]
    assert [texts for _, texts in told] == [0, 2, 5]
    assert [share for share, _ in told] == pytest.approx([7 / 12, 9 / 12, 1])
    assert not found.codes.flags.writeable
    again = embed_corpus(Numbers(), ["1"], tmp_path, "model", 3, older, [given])
    assert (again.embedded_by, again.embedded, again.older_rows.tolist()) == (["older"], 0, [0])


def rows_of(texts: Sequence[str]) -> tuple[Codes, Scales]:
    """Return rows that say which text they are of."""
    numbers = np.array([int(text) for text in texts])
    return np.repeat(numbers[:, np.newaxis], 3, axis=1).astype(np.int8), numbers.astype(np.float32)


def save(fresh: Path, texts: Sequence[str], model: str = "model", embedded_by: str = BY_CORES) -> None:
    shard = Shard(0, *rows_of(texts), np.array([text == "7" for text in texts]), embedded_by)
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
    assert rows.embedded_by == [BY_CORES]
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


def test_items_are_grouped_by_their_number_and_their_size() -> None:
    def groups(items: list[str], most: int, most_size: int) -> list[list[str]]:
        return list(group(items, most, most_size, len))

    assert groups([], 2, 9) == []
    assert groups(["a", "b", "c"], 2, 9) == [["a", "b"], ["c"]]
    assert groups(["aa", "bb", "c", "dddddd", "e"], 9, 4) == [["aa", "bb"], ["c"], ["dddddd"], ["e"]]


def test_what_a_row_depends_on_beside_its_text_names_its_shards(manifest: Manifest) -> None:
    usual = name_model(manifest)
    assert len(usual) == 16
    model, other = manifest.model, FileInfo(1, "f" * 64)
    assert name_model(replace(manifest, model=replace(model, name="other", prompts={"query": "q: "}))) == usual
    others = [
        *(replace(manifest, files={**manifest.files, name: other}) for name in (MODEL, TOKENIZER)),
        replace(manifest, model=replace(model, prompts={"document": "d: "})),
        replace(manifest, model=replace(model, max_tokens=9)),
    ]
    assert len({usual, *map(name_model, others)}) == 5
    assert name_model(replace(manifest, model=replace(model, documents="named"))) == "named"
