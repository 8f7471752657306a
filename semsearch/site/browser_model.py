"""The model that runs in the browser: the bundle's own 8-bit weights, with activations in float32.

The bundle's graph rounds activations to integers. Whether a value is rounded up or down can depend on the order of a
float sum, which differs between processors. WebAssembly would embed some texts slightly differently than the function.
This graph rounds nothing: it embeds a text the same natively and in a browser, up to the last digits of float32. It is
made from model.ort, because ONNX Runtime writes a graph that it has read as ONNX too: no bundle holds a second model,
and PyTorch is not needed.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto
from onnxruntime.transformers.onnx_model import OnnxModel

from semsearch.engine.bundle import MODEL, BundleError
from semsearch.indexing.models.nodes import DOMAIN, add_node, sort_nodes
from semsearch.indexing.models.source import RECIPE

PRODUCT = "MatMulIntegerToFloat"
DOMAINS = ("", DOMAIN)  # domains of the operators that the graph uses; ONNX Runtime lists all that it knows


def make_browser_model(bundle: Path) -> ModelProto:
    """Return the graph for the browser: input_ids and attention_mask, (n, tokens) int64, to embeddings, (n, dim).

    Raises BundleError if the bundle's model has other products than `quantize_graph` makes.
    """
    model = _read_ort(bundle / MODEL)
    graph = model.graph
    makers = {output: node for node in graph.node for output in node.output}
    sums = [node for node in graph.node if all(_is_product(makers.get(name)) for name in node.input)]
    for total in [node for node in sums if node.op_type == "Add"]:
        _replace_sum(model, total, makers)
    sort_nodes(model)
    OnnxModel(model).prune_graph()
    if any(node.op_type == PRODUCT for node in graph.node):
        raise BundleError(
            f"{bundle / MODEL}: holds another {PRODUCT} than {RECIPE} has; run `semsearch index` again, with --model"
        )
    return model


def _read_ort(path: Path) -> ModelProto:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.save_model_format", "ONNX")
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/model.onnx"
        ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        model: ModelProto = onnx.load(options.optimized_model_filepath)
    for opset in [opset for opset in model.opset_import if opset.domain not in DOMAINS]:
        model.opset_import.remove(opset)
    return model


def _is_product(node: NodeProto | None) -> bool:
    return node is not None and node.op_type == PRODUCT


def _replace_sum(model: ModelProto, total: NodeProto, makers: dict[str, NodeProto]) -> None:
    """Replace the sum of the products of an activation's high and low half by a product with the activation itself."""
    high, low = (makers[name] for name in total.input)
    activation, weight, scales = makers[high.input[0]].input[0], high.input[1], high.input[3]
    assert (low.input[1], low.input[3]) == (weight, scales)
    result = total.output[0]
    model.graph.node.remove(total)
    values = add_node(model, "Cast", [weight], f"{weight}/float", attributes={"to": TensorProto.FLOAT})
    weights = add_node(model, "Mul", [values, scales], f"{weight}/scaled")
    bias = ""
    if len(high.input) > 6:
        bias = high.input[6]
    product = add_node(model, "MatMul", [activation, weights], f"{result}/product" if bias else result)
    if bias:
        add_node(model, "Add", [product, bias], result)
