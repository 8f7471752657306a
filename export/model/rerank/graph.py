"""Export a cross-encoder as one float32 ONNX graph: the tokens of a pair in, a logit out."""

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from export.model.graph import add_pooling, add_steps, export_transformer, fuse
from export.model.onnx_helpers import add_constant, add_node, initializers
from export.model.source.source import Source

LOGITS = "logit"  # the graph's output


def export_rerank_graph(source: Source, workdir: Path) -> ModelProto:
    """Return the float32 graph: from input_ids, attention_mask and, if the model has types, token_type_ids to logits.

    The inputs are (n, tokens) int64, the result is (n,) float32. workdir holds intermediate files.
    Raises ModelError if optimum cannot export the model, OSError if the disk fails.
    """
    if source.pooling:
        raw = export_transformer(source, workdir)
        scores = add_steps(raw, source, add_pooling(raw, source.pooling))
    else:
        raw = export_transformer(source, workdir, "text-classification")
        scores = raw.graph.output[0].name  # (n, labels)
    _split_gemms(raw)
    _add_logit(raw, scores, source.dim)
    path = workdir / "logits.onnx"
    onnx.save(raw, path)
    return fuse(path, source)


def _split_gemms(model: ModelProto) -> None:
    """Replace each Gemm by a MatMul and an Add, because `quantize_graph` replaces only MatMul.

    The integer products that it makes are the same for a pair alone and in a batch. Those of a float32 Gemm are not.
    """
    nodes, tensors = list(model.graph.node), initializers(model)
    del model.graph.node[:]
    for node in nodes:
        if node.op_type != "Gemm" or node.input[1] not in tensors:
            model.graph.node.append(node)
            continue
        is_transposed = any(each.name == "transB" and each.i for each in node.attribute)
        weight = numpy_helper.to_array(tensors[node.input[1]])
        name, has_bias = node.output[0], len(node.input) > 2
        constant = add_constant(model, f"{name}/weight", weight.T if is_transposed else weight)
        product = add_node(model, "MatMul", [node.input[0], constant], f"{name}/product" if has_bias else name)
        if has_bias:
            add_node(model, "Add", [product, node.input[2]], name)


def _add_logit(model: ModelProto, scores: str, labels: int) -> None:
    """Make the logit the only output: the only label's, or the second one's minus the first one's."""
    first, second = (add_constant(model, f"label_{place}", np.array(place, np.int64)) for place in (0, 1))
    names = [LOGITS] if labels == 1 else ["label_0_logit", "label_1_logit"]
    for name, place in zip(names, (first, second), strict=False):
        add_node(model, "Gather", [scores, place], name, attributes={"axis": 1})
    if labels == 2:
        add_node(model, "Sub", names[::-1], LOGITS)
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, ["n"]))
