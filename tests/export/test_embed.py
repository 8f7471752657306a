"""A corpus is embedded in chunks, and each text as if it were alone."""

from pathlib import Path

import numpy as np
import pytest

from export import embed
from export.corpus import Corpus
from export.embed import embed_corpus
from function.engine.embedder import Embedder
from function.engine.quantization import quantize


def test_a_chunk_ends_with_its_texts_or_its_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_CHUNK", 3)
    monkeypatch.setattr(embed, "CHARACTERS_PER_CHUNK", 10)
    texts = ["a", "b", "c", "d", "e" * 9, "f", "g" * 30, "h", "i"]
    chunks = list(embed._chunks(texts))
    assert chunks == [["a", "b", "c"], ["d", "e" * 9], ["f"], ["g" * 30], ["h", "i"]]
    assert list(embed._chunks([])) == []


def test_a_corpus_embeds_as_its_texts_do_one_by_one(
    embedder: Embedder, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_CHUNK", 64)  # 200 texts: three chunks and a rest
    codes, scales, _ = embed_corpus(embedder, corpus.texts)
    alone = np.concatenate([embedder.embed(embedder.tokenize([text], role="document")) for text in corpus.texts])
    expected_codes, expected_scales = quantize(alone)
    assert (codes.dtype, scales.dtype) == (np.dtype(np.int8), np.dtype(np.float32))
    assert np.abs(codes.astype(int) - expected_codes).max() <= 1  # a value on the border of two codes
    assert (codes == expected_codes).mean() > 0.999
    np.testing.assert_allclose(scales, expected_scales, rtol=1e-3)


def test_equal_texts_are_embedded_once_and_have_equal_rows(
    tiny_embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_CHUNK", 2)  # so that equal texts would be in different batches
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
    told: list[int] = []
    codes, scales, truncated = embed_corpus(tiny_embedder, texts, told.append)
    for row in (3, 7):
        np.testing.assert_array_equal(codes[row], codes[0])
        assert scales[row] == scales[0]
    alone = quantize(tiny_embedder.embed(tiny_embedder.tokenize(texts, role="document")))[0]
    assert np.abs(codes.astype(int) - alone).max() <= 1  # each row is its own text's
    assert truncated == 2
    assert sum(told) == len(texts)  # every text counts, also one that was embedded before


def test_the_documents_prompt_is_put_before_each_text(tiny_embedder: Embedder) -> None:
    codes, scales, _ = embed_corpus(tiny_embedder, ["the old sailor", "forty apples"])
    plain = tiny_embedder.tokenize(["passage: the old sailor", "passage: forty apples"])
    expected = quantize(tiny_embedder.embed(plain))
    np.testing.assert_array_equal(codes, expected[0])
    np.testing.assert_allclose(scales, expected[1], rtol=1e-6)


@pytest.fixture
def tiny_embedder(tiny_export: tuple[Path, object]) -> Embedder:
    return Embedder.open(*tiny_export)  # type: ignore[arg-type]


def test_texts_whose_end_was_cut_off_are_counted(embedder: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_CHUNK", 2)  # one of them in each chunk
    room = embedder.model.max_tokens - 2
    texts = ["the " * room, "the " * (room + 1), "the", "the " * 500]
    _, _, truncated = embed_corpus(embedder, texts)
    assert truncated == 2


def test_progress_gets_the_number_of_texts_done_while_a_chunk_is_embedded(
    embedder: Embedder, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TEXTS_PER_CHUNK", 64)
    told: list[int] = []
    embed_corpus(embedder, corpus.texts, told.append)
    assert sum(told) == 200
    assert max(told) < 32
