"""The same model always has the same file, and ONNX Runtime reads it as before."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import ModelProto

from export.model.ort_file import sort_operators
from export.model.quantize import save_ort
from function.engine.embedder import open_session

FEED = {"input_ids": np.array([[2, 5, 6, 3]]), "attention_mask": np.ones((1, 4), np.int64)}


def save_unsorted(model: ModelProto, path: Path) -> bytes:
    """Write the model as ONNX Runtime itself does."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


def test_the_same_graph_has_the_same_bytes(tiny_graph: ModelProto, tmp_path: Path) -> None:
    for name in "ab":
        save_ort(tiny_graph, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_files_that_onnx_runtime_writes_differ_only_in_the_order(tiny_graph: ModelProto, tmp_path: Path) -> None:
    written = {save_unsorted(tiny_graph, tmp_path / "a.ort") for _ in range(5)}
    assert len({sort_operators(content) for content in written}) == 1
    assert sort_operators(sort_operators(min(written))) == sort_operators(min(written))


def test_a_sorted_file_gives_the_same_embeddings(tiny_graph: ModelProto, tmp_path: Path) -> None:
    content = save_unsorted(tiny_graph, tmp_path / "a.ort")
    (tmp_path / "b.ort").write_bytes(sort_operators(content))
    (before,), (after,) = (open_session(tmp_path / name).run(None, FEED) for name in ("a.ort", "b.ort"))
    np.testing.assert_array_equal(before, after)
