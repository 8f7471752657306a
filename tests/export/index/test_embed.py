"""A corpus is embedded in shards, and each text as if it were alone."""

from pathlib import Path

import numpy as np
import pytest

from export.corpus import Corpus
from export.files.replace import FINISHED
from export.index import embed
from export.index.embed import embed_corpus
from function.engine.embedder import Embedder
from function.engine.quantization import quantize


def test_a_group_ends_with_its_texts_or_its_characters() -> None:
    texts = ["a", "b", "c", "d", "e" * 9, "f", "g" * 30, "h", "i"]
    groups = list(embed.group(texts, 3, 10, len))
    assert groups == [["a", "b", "c"], ["d", "e" * 9], ["f"], ["g" * 30], ["h", "i"]]
    assert list(embed.group([], 3, 10, len)) == []


def test_a_corpus_embeds_to_the_same_bits_as_its_texts_one_by_one(
    embedder: Embedder, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 64)  # 200 texts: three shards and a rest
    rows = embed_corpus(embedder, corpus.texts, tmp_path, "tests")
    alone = np.concatenate([embedder.embed(embedder.tokenize([text], role="document")) for text in corpus.texts])
    codes, scales = quantize(alone)
    assert (rows.codes.dtype, rows.scales.dtype) == (np.dtype(np.int8), np.dtype(np.float32))
    np.testing.assert_array_equal(rows.codes, codes)
    np.testing.assert_array_equal(rows.scales, scales)
    assert len(list((tmp_path / FINISHED).iterdir())) == 4


def test_equal_texts_are_embedded_once_and_have_equal_rows(
    tiny_embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 2)  # so that equal texts would be in different batches
    long = "a sailor " * 40
    texts = [
        "the old sailor",
        "forty apples",
        long,
        "the old sailor",
        "a",
        long,
        "the old sailor " * 5,
        "the old sailor",
    ]
    told: list[tuple[float, int]] = []
    rows = embed_corpus(
        tiny_embedder, texts, tmp_path, "tests", on_progress=lambda step, share, texts=0: told.append((share, texts))
    )
    codes, scales = quantize(tiny_embedder.embed(tiny_embedder.tokenize(texts, role="document")))
    np.testing.assert_array_equal(rows.codes, codes)  # each row is its own text's
    np.testing.assert_array_equal(rows.scales, scales)
    assert (rows.embedded, rows.resumed, rows.updated) == (5, 0, 0)
    assert np.flatnonzero(rows.is_truncated).tolist() == [2, 5]
    assert told[0] == (3 / 8, 0)  # every text counts, also one that was embedded before
    assert told[-1] == (1.0, 5)


def test_the_documents_prompt_is_put_before_each_text(tiny_embedder: Embedder, tmp_path: Path) -> None:
    rows = embed_corpus(tiny_embedder, ["the old sailor", "forty apples"], tmp_path, "tests")
    plain = tiny_embedder.tokenize(["passage: the old sailor", "passage: forty apples"])
    expected = quantize(tiny_embedder.embed(plain))
    np.testing.assert_array_equal(rows.codes, expected[0])
    np.testing.assert_array_equal(rows.scales, expected[1])


@pytest.fixture
def tiny_embedder(tiny_export: tuple[Path, object]) -> Embedder:
    return Embedder.open(*tiny_export)  # type: ignore[arg-type]


def test_texts_whose_end_was_cut_off_are_marked(
    embedder: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_SHARD", 2)  # one of them in each shard
    room = embedder.model.max_tokens - 2
    texts = ["the " * room, "the " * (room + 1), "the", "the " * 500]
    assert embed_corpus(embedder, texts, tmp_path, "tests").is_truncated.tolist() == [False, True, False, True]


def test_progress_gets_the_number_of_texts_embedded_while_a_shard_is_embedded(
    embedder: Embedder, corpus: Corpus, tmp_path: Path
) -> None:
    told: list[int] = []
    embed_corpus(embedder, corpus.texts, tmp_path, "tests", on_progress=lambda step, share, texts=0: told.append(texts))
    assert (told[0], told[-1]) == (0, 200)
    assert max(np.diff(told)) < 32
