"""The exported float32 model is held against the original one, which shares no code with it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from export.model import reference as original_module
from export.model.reference import Original, check_agreement, run_original
from export.model.source.model_files import ModelError
from export.model.source.source import Source, read_source
from export.model.source.tokenizer import write_tokenizer
from function.engine.bundle import TOKENIZER, ModelInfo
from function.engine.embedder import Embedder, open_session
from function.engine.tokenizer import read_tokenizer
from tests.export.conftest import TINY_BERT, edit_json, embed_with_transformers


@pytest.fixture(scope="module")
def original(tiny_source: Source) -> Original:
    return run_original(tiny_source)


def open_graph(graph: ModelProto, source: Source, folder: Path) -> Embedder:
    """Return an embedder of a float32 graph with the source's tokenizer."""
    folder.mkdir(exist_ok=True)
    onnx.save(graph, folder / "exact.onnx")
    write_tokenizer(source, folder / TOKENIZER)
    model = ModelInfo("t", None, "0" * 64, source.pooling, 32, source.max_tokens, source.prompts, "none")
    return Embedder(read_tokenizer(folder / TOKENIZER), open_session(folder / "exact.onnx"), model)


def refusal(source: Source, original: Original, exported: Embedder) -> str:
    with pytest.raises(ModelError) as caught:
        check_agreement(source, original, exported)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_original_is_what_transformers_and_torch_compute(tiny_source: Source, pooling: str) -> None:
    found = run_original(replace(tiny_source, pooling=pooling))
    expected = embed_with_transformers(TINY_BERT, found.ids, pooling, batch=1)
    np.testing.assert_allclose(found.embeddings, expected, atol=1e-6)


def test_the_texts_have_different_lengths_and_one_is_cut_off(tiny_source: Source, original: Original) -> None:
    lengths = [len(ids) for ids in original.ids]
    assert len(set(lengths)) >= 4
    assert max(lengths) == lengths[-1] == tiny_source.max_tokens
    assert len(original.embeddings) == len(original.texts)


def test_a_text_too_long_to_run_is_compared_by_its_beginning(
    tiny_source: Source, tiny_graph: ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(original_module, "LONGEST_RUN", 31)
    found = run_original(tiny_source)
    assert len(found.ids[-1]) == 32
    expected = embed_with_transformers(TINY_BERT, [ids[:31] for ids in found.ids], "mean", batch=1)
    np.testing.assert_allclose(found.embeddings, expected, atol=1e-6)
    check_agreement(tiny_source, found, open_graph(tiny_graph, tiny_source, tmp_path))


def changed(graph: ModelProto, scale: float) -> ModelProto:
    """Return the graph with the weights of its last product scaled."""
    other = ModelProto()
    other.CopyFrom(graph)
    tensors = {tensor.name: tensor for tensor in other.graph.initializer}
    product = [node for node in other.graph.node if node.op_type == "MatMul" and node.input[1] in tensors][-1]
    tensor = tensors[product.input[1]]
    tensor.CopyFrom(numpy_helper.from_array(np.float32(scale) * numpy_helper.to_array(tensor), tensor.name))
    return other


@pytest.mark.parametrize("scale", [0.8, np.nan])
def test_a_graph_that_computes_something_else_is_refused(
    tiny_source: Source, tiny_graph: ModelProto, original: Original, tmp_path: Path, scale: float
) -> None:
    check_agreement(tiny_source, original, open_graph(tiny_graph, tiny_source, tmp_path))
    found = refusal(tiny_source, original, open_graph(changed(tiny_graph, scale), tiny_source, tmp_path))
    assert "agree to a cosine of " in found
    assert "expected at least 0.9999" in found


def test_another_pooling_than_the_sources_is_refused(
    tiny_source: Source, tiny_graph: ModelProto, tmp_path: Path
) -> None:
    source = replace(tiny_source, pooling="cls")
    refusal(source, run_original(source), open_graph(tiny_graph, source, tmp_path))


def test_a_tokenizer_that_contradicts_its_own_settings_is_refused(
    tiny_copy: Path, tiny_graph: ModelProto, tmp_path: Path
) -> None:
    edit_json(tiny_copy / "tokenizer_config.json", do_lower_case=False)  # tokenizer.json lower-cases
    source = read_source(tiny_copy, "tests/cased")
    found = refusal(source, run_original(source), open_graph(tiny_graph, source, tmp_path / "work"))
    assert "tokenizer.json reads 'The Quick Brown Fox" in found
    assert "expected the same ids" in found


def test_texts_are_lower_cased_where_the_sentence_transformer_does(tiny_copy: Path, tiny_source: Source) -> None:
    edit_json(tiny_copy / "tokenizer_config.json", do_lower_case=False)
    source = read_source(tiny_copy, "tests/cased")
    assert run_original(source).ids != run_original(tiny_source).ids
    assert run_original(replace(source, lower_case=True)).ids[1] == run_original(tiny_source).ids[1]


@pytest.mark.parametrize(
    "config", [{"layer_norm_eps": "small"}, {"chunk_size_feed_forward": "x"}, {"chunk_size_feed_forward": 7}]
)
def test_a_config_with_which_the_model_does_not_run_is_refused(tiny_copy: Path, config: dict[str, Any]) -> None:
    edit_json(tiny_copy / "config.json", **config)
    source = read_source(tiny_copy, "tests/broken")
    with pytest.raises(ModelError, match=r"config\.json: transformers cannot run the model it describes \("):
        run_original(source)


@pytest.mark.parametrize("settings", ["[]", '{"tokenizer_class": 5}'])
def test_settings_that_make_no_tokenizer_are_refused(tiny_copy: Path, settings: str) -> None:
    (tiny_copy / "sentence_bert_config.json").write_text('{"max_seq_length": 32}')
    source = read_source(tiny_copy, "tests/broken")
    (tiny_copy / "tokenizer_config.json").write_text(settings)
    with pytest.raises(ModelError, match=r"transformers cannot use its tokenizer \(.*; expected tokenizer\.json"):
        run_original(source)
