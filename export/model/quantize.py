"""Quantize the float32 graph to 8 bit, so that texts keep their neighbours and CPUs agree.

The recipe, "w8a14": weights are signed bytes with a scale for each output, rounded by GPTQ (`export/model/gptq.py`).
Activations are 14-bit integers, held as two unsigned 7-bit halves, so that one product of matrices becomes two 8-bit
products:

    x ~ step * (128 * (high - 64) + (low - 64))        high and low in 0 ... 128

- The halves have 7 bits, because CPUs without VNNI add two products in 16 bits: with 8-bit halves these sums could
  overflow, with 7-bit halves they cannot (2 * 128 * 127). So AVX2, AVX-512 and Arm compute the same integers. The float
  sums between the products still differ slightly from CPU to CPU.
- The step is fixed at export, from calibration texts. Dynamic quantization would take it from each batch, and a text
  would embed differently alone and in a batch. There is room for activations HEADROOM times as large as any seen in
  calibration. Values beyond the room are clipped on the negative side; on the positive side only beyond four times
  the room, and until there CPUs without VNNI may differ.
- Neurons with outlier weights are split first (`outliers.py`), because all weights of an output share a scale.
- Word embeddings are bytes with a scale for each row, so that a query reads only the rows of its own tokens.

`python -m bench accuracy` compares accuracy and speed with float32, naive dynamic int8 and MatMulNBits, and the result
with that of an emulated AVX2 CPU.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from export.model.calibration import Products, calibrate, find_products
from export.model.gptq import round_weights
from export.model.graph import DOMAIN
from export.model.onnx_helpers import add_constant, add_node, initializers
from export.model.ort_file import sort_operators
from export.model.outliers import split_outliers
from export.model.source.model_files import ModelError
from export.progress import OnProgress, no_progress
from function.engine.embedder import TokenIds
from function.engine.quantization import quantize

RECIPE = "w8a14"
HIGH_STEP = 128  # step of the high half, in steps of the low half
ZERO_POINT = 64  # zero point of both halves
LARGEST_ACTIVATION = 8191  # largest integer of 14 bits with a sign
HEADROOM = 2.0  # more room makes coarser steps, which cost accuracy; compare with `python -m bench accuracy`
SMALLEST_TABLE = 1 << 20  # values of a look-up table; smaller ones (positions) stay float32


def quantize_graph(
    model: ModelProto, calibration: Sequence[TokenIds], on_progress: OnProgress = no_progress
) -> ModelProto:
    """Return the 8-bit graph of a float32 graph as `export_graph` makes it; its inputs and its output are the same.

    The activations of the calibration texts set the steps. A few hundred texts are needed, with more tokens than the
    widest layer has inputs.
    Raises ModelError if the graph has no product with constant weights, or if calibration is empty.
    """
    quantized = ModelProto()
    quantized.CopyFrom(model)
    split_outliers(quantized)
    drop_unused(quantized)  # ONNX Runtime would warn of each unused weight
    groups = find_products(quantized)
    if not groups or not calibration:
        raise ModelError(
            f"{len(groups)} products and {len(calibration)} calibration texts; expected at least one of each"
        )
    for share in calibrate(quantized, groups, calibration):
        on_progress("quantize", 0.5 * share)
    for done, products in enumerate(groups, 1):
        _replace_products(quantized, products)
        on_progress("quantize", 0.5 + 0.5 * done / len(groups))
    _quantize_tables(quantized)
    drop_unused(quantized)
    sort_nodes(quantized)
    return quantized


def _replace_products(model: ModelProto, products: Products) -> None:
    """Replace the float32 products that read one activation by two 8-bit products and their sum."""
    graph = model.graph
    name = products.activation
    codes, scales = round_weights(products.weights, products.hessian)
    step = np.float32(max(products.largest, 1e-6) * HEADROOM / LARGEST_ACTIVATION)
    low_step = add_constant(model, f"{name}/low_step", step)
    high_step = add_constant(model, f"{name}/high_step", step * np.float32(HIGH_STEP))
    zero = add_constant(model, f"{name}/zero", np.uint8(ZERO_POINT))
    weight_zero = add_constant(model, f"{name}/weight_zero", np.int8(0))
    weight = add_constant(model, f"{name}/codes", codes)
    weight_scale = add_constant(model, f"{name}/scales", scales)

    high = add_node(model, "QuantizeLinear", [name, high_step, zero], f"{name}/high")
    seen = add_node(model, "DequantizeLinear", [high, high_step, zero], f"{name}/seen")
    rest = add_node(model, "Sub", [name, seen], f"{name}/rest")
    low = add_node(model, "QuantizeLinear", [rest, low_step, zero], f"{name}/low")

    only = products.nodes[0] if len(products.nodes) == 1 else None
    bias = _take_bias(model, only) if only is not None else None
    high_inputs = [high, weight, high_step, weight_scale, zero, weight_zero, *([bias[0]] if bias else [])]
    low_inputs = [low, weight, low_step, weight_scale, zero, weight_zero]
    high_product = add_node(model, "MatMulIntegerToFloat", high_inputs, f"{name}/high_product", DOMAIN)
    low_product = add_node(model, "MatMulIntegerToFloat", low_inputs, f"{name}/low_product", DOMAIN)
    if only is not None:
        add_node(model, "Add", [high_product, low_product], bias[1] if bias else only.output[0])
    else:
        both = add_node(model, "Add", [high_product, low_product], f"{name}/products")
        weights = initializers(model)
        widths = np.array([weights[product.input[1]].dims[1] for product in products.nodes], np.int64)
        inputs = [both, add_constant(model, f"{name}/widths", widths)]
        outputs = [product.output[0] for product in products.nodes]
        graph.node.append(helper.make_node("Split", inputs, outputs, axis=-1))
    for product in products.nodes:
        graph.node.remove(product)


def _take_bias(model: ModelProto, product: NodeProto) -> tuple[str, str] | None:
    """Remove the addition of a bias to the product; return the names of the bias and of the sum, None without one."""
    readers = [node for node in model.graph.node if product.output[0] in node.input]
    if len(readers) != 1 or readers[0].op_type != "Add":
        return None
    (other,) = (name for name in readers[0].input if name != product.output[0])
    tensor = initializers(model).get(other)
    if tensor is None or len(tensor.dims) != 1:
        return None
    total = readers[0].output[0]
    model.graph.node.remove(readers[0])
    return other, total


def _quantize_tables(model: ModelProto) -> None:
    """Store large look-up tables as bytes with a scale for each row."""
    graph = model.graph
    tensors = initializers(model)
    for node in [node for node in graph.node if node.op_type == "Gather" and node.input[0] in tensors]:
        table = numpy_helper.to_array(tensors[node.input[0]])
        if table.ndim != 2 or table.size < SMALLEST_TABLE or table.dtype != np.float32:
            continue
        name, rows = node.input[0], node.input[1]
        codes, scales = quantize(table)
        add_constant(model, f"{name}/codes", codes)
        add_constant(model, f"{name}/scales", scales[:, np.newaxis])
        row_codes = add_node(model, "Gather", [f"{name}/codes", rows], f"{name}/row_codes")
        row_scales = add_node(model, "Gather", [f"{name}/scales", rows], f"{name}/row_scales")
        values = add_node(model, "Cast", [row_codes], f"{name}/row_values", attributes={"to": TensorProto.FLOAT})
        graph.node.append(helper.make_node("Mul", [values, row_scales], node.output, node.name))
        graph.node.remove(node)


def drop_unused(model: ModelProto) -> None:
    """Remove the constants that no node reads."""
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in read]:
        model.graph.initializer.remove(tensor)


def sort_nodes(model: ModelProto) -> None:
    """Sort the nodes so that each one follows the nodes whose outputs it reads. Raises ModelError if none can."""
    graph = model.graph
    known = {value.name for value in graph.input} | set(initializers(model)) | {""}
    waiting, ordered = list(graph.node), []
    while waiting:
        ready = [node for node in waiting if known.issuperset(node.input)]
        if not ready:
            raise ModelError(f"{waiting[0].op_type} {waiting[0].name}: reads a value that no node makes")
        ordered += ready
        known.update(name for node in ready for name in node.output)
        waiting = [node for node in waiting if not known.issuperset(node.output)]
    del graph.node[:]
    graph.node.extend(ordered)


def save_ort(model: ModelProto, path: Path) -> None:
    """Write the graph in ONNX Runtime's own format, which can be memory-mapped instead of parsed.

    The same graph always has the same bytes.
    Raises OSError if the file cannot be written, for example because the disk is full.
    """
    options = ort.SessionOptions()
    # stronger optimization would depend on the CPU
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has no exception class for errors of the disk
        if "Failed to save ORT format model" not in str(error):
            raise
        raise OSError(f"{path}: ONNX Runtime cannot write the model; check the free space of the disk") from error
    path.write_bytes(sort_operators(path.read_bytes()))
