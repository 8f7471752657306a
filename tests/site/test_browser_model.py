"""The model for the browser has the bundle's weights and rounds no activation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from semsearch.engine.bundle import MODEL, TOKENIZER, ModelInfo
from semsearch.engine.embedder import Embedder, open_session
from semsearch.engine.quantization import Embeddings
from semsearch.engine.tokenizer import read_tokenizer
from semsearch.indexing.corpus import Corpus
from semsearch.site.browser_model import PRODUCT, make_browser_model

pytestmark = pytest.mark.usefixtures("quick_commands")  # the model is converted in this process


def embeddings(folder: Path, graph: Path, model: ModelInfo, texts: Sequence[str]) -> Embeddings:
    embedder = Embedder(read_tokenizer(folder / TOKENIZER), open_session(graph), model)
    return embedder.embed(embedder.tokenize(texts))


def test_it_embeds_nearly_as_the_bundle_does_and_closer_to_float32(
    tiny_export: tuple[Path, ModelInfo], tiny_graph: ModelProto, corpus: Corpus, tmp_path: Path
) -> None:
    folder, model = tiny_export
    onnx.save(make_browser_model(folder), tmp_path / "browser.onnx")
    onnx.save(tiny_graph, tmp_path / "exact.onnx")
    exact, own, other = (
        embeddings(folder, graph, model, corpus.texts[:50])
        for graph in (tmp_path / "exact.onnx", tmp_path / "browser.onnx", folder / MODEL)
    )
    assert (own * other).sum(axis=1).min() > 0.999
    assert (own * exact).sum(axis=1).mean() >= (other * exact).sum(axis=1).mean()


def test_its_weights_are_the_bundles_bytes_and_no_activation_is_rounded(tiny_export: tuple[Path, ModelInfo]) -> None:
    model = make_browser_model(tiny_export[0])
    kinds = {node.op_type for node in model.graph.node}
    assert not kinds & {PRODUCT, "QuantizeLinear", "DequantizeLinear"}
    codes = [each for each in model.graph.initializer if each.name.endswith("/codes")]
    assert codes
    assert {numpy_helper.to_array(each).dtype for each in codes} == {np.dtype(np.int8)}
    assert len(model.SerializeToString()) < 1.1 * (tiny_export[0] / MODEL).stat().st_size


def test_the_same_bundle_makes_the_same_bytes(tiny_export: tuple[Path, ModelInfo]) -> None:
    first, second = (make_browser_model(tiny_export[0]).SerializeToString() for _ in range(2))
    assert first == second
