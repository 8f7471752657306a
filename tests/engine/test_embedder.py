"""Texts to embeddings: the same alone and together, cut where the model ends, with the prompt of their role."""

import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semsearch.engine.bundle import MODEL, TOKENIZER, Manifest
from semsearch.engine.embedder import (
    MAPPED_OPTIONS,
    SESSION_OPTIONS,
    TOKENS_PER_BATCH,
    Embedder,
    open_session,
    plan_batches,
)
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tokenizer import read_tokenizer
from tests.world import make_graph, word_table

WORDS = ["the", "baker", "goose", "ferry", "yellow", "unheard-of", "🦆"]
texts_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join), min_size=1, max_size=12)


def embed(embedder: Embedder, texts: list[str], role: str = "") -> Embeddings:
    return embedder.embed(embedder.tokenize(texts, role))


def test_a_model_gets_the_tokens_of_a_batch_and_where_they_are(bundle: Path, manifest: Manifest) -> None:
    fed: list[dict[str, list[list[int]]]] = []

    def run(outputs: None, feed: dict[str, np.ndarray[Any, Any]]) -> list[list[list[float]]]:
        fed.append({name: values.tolist() for name, values in feed.items()})
        return [[[0.5], [0.25]]]

    session: Any = SimpleNamespace(run=run)
    found = Embedder(read_tokenizer(bundle / TOKENIZER), session, manifest.model).embed_batch([[7, 8, 9], [5]])
    assert fed == [{"input_ids": [[7, 8, 9], [5, 0, 0]], "attention_mask": [[1, 1, 1], [1, 0, 0]]}]
    assert found.tolist() == [[0.5], [0.25]]
    assert found.dtype == np.float32


@given(texts=texts_of_words)
def test_a_text_embeds_the_same_alone_and_in_a_batch(embedder: Embedder, texts: list[str]) -> None:
    together = embed(embedder, texts)
    alone = np.concatenate([embed(embedder, [text]) for text in texts])
    np.testing.assert_array_equal(together, alone)


def test_an_embedding_is_the_unit_sum_of_its_tokens_vectors(bundle: Path, embedder: Embedder) -> None:
    tokenizer = read_tokenizer(bundle / TOKENIZER)
    ids = [tokenizer.token_to_id(token) for token in ("[CLS]", "an", "angry", "goose", "goose", "[UNK]", "[SEP]")]
    total = word_table(tokenizer.get_vocab_size())[ids].astype(np.float64).sum(axis=0)
    embedding = embed(embedder, ["An angry goose GOOSE xylophone"])[0]
    np.testing.assert_allclose(embedding, total / np.linalg.norm(total), atol=1e-6)


@pytest.mark.parametrize(("words", "is_truncated"), [(22, False), (23, True)])
def test_a_text_is_truncated_to_what_the_model_reads(embedder: Embedder, words: int, is_truncated: bool) -> None:
    assert embedder.model.max_tokens == 24  # [CLS] and [SEP] leave 22 words
    text = " ".join(["goose"] * words)
    tokens = embedder.tokenize([text])[0]
    assert tokens.is_truncated is is_truncated
    assert len(tokens.ids) == min(words + 2, 24)


@given(lengths=st.lists(st.integers(1, 300), max_size=80))
def test_every_row_is_in_one_batch_of_texts_of_its_length_and_the_longest_come_first(lengths: list[int]) -> None:
    batches = plan_batches(lengths)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(len({lengths[row] for row in batch}) == 1 for batch in batches)
    for batch in batches:
        assert sum(lengths[row] for row in batch) <= TOKENS_PER_BATCH or len(batch) == 1
    assert [lengths[row] for batch in batches for row in batch] == sorted(lengths, reverse=True)


@pytest.mark.parametrize(("role", "prompt"), [("query", "goose ferry "), ("document", "yellow "), ("", "")])
def test_a_text_gets_the_prompt_of_its_role(
    bundle: Path, manifest: Manifest, embedder: Embedder, role: str, prompt: str
) -> None:
    prompts = {"query": "goose ferry ", "document": "yellow "}
    prompted = Embedder.open(bundle, replace(manifest.model, prompts=prompts))
    for texts in (["the baker"], ["the baker", "ferry", "yellow baker"]):
        assert prompted.tokenize(texts, role) == embedder.tokenize([prompt + text for text in texts])


def test_while_a_text_is_tokenized_other_threads_run(embedder: Embedder) -> None:
    interval = sys.getswitchinterval()
    began, ended = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        embedder.tokenize(["goose ferry " * 20_000])
        ended.set()

    thread = threading.Thread(target=work)
    sys.setswitchinterval(600)  # seconds: the thread keeps the GIL until it releases it itself
    try:
        thread.start()
        assert began.wait(60)
        has_ended = ended.is_set()
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert not has_ended


def test_batches_are_filled_with_texts_of_one_length_in_their_order() -> None:
    assert plan_batches([64, 32, 64, 128, 129, 32]) == [[4], [3], [0, 2], [1, 5]]
    assert plan_batches([TOKENS_PER_BATCH // 8] * 9) == [[*range(8)], [8]]
    assert plan_batches([]) == []


def test_a_session_computes_in_the_calling_thread_alone_and_maps_an_optimized_file(
    bundle: Path, tmp_path: Path
) -> None:
    onnx.save(make_graph(80), tmp_path / "model.onnx")
    optimized = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    done_before = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    path = bundle / MODEL
    for model, level, entries, other in (
        (path, done_before, SESSION_OPTIONS | MAPPED_OPTIONS, {}),
        (path.read_bytes(), done_before, SESSION_OPTIONS, MAPPED_OPTIONS),
        (tmp_path / "model.onnx", optimized, {}, SESSION_OPTIONS | MAPPED_OPTIONS),
    ):
        options = open_session(model).get_session_options()
        assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
        assert options.graph_optimization_level == level
        assert options.enable_mem_reuse == (level == optimized)
        assert {name: options.get_session_config_entry(name) for name in entries} == entries
        for name in other:
            with pytest.raises(RuntimeError, match="does not have configuration with key"):
                options.get_session_config_entry(name)


def test_a_word_has_the_parts_that_are_tokens_or_its_letters(embedder: Embedder) -> None:
    for word, parts in (("goose", ["goose"]), ("xylophone", "xylophone"), ("", "")):
        assert embedder.split_word(word) == parts
