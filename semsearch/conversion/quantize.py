"""Quantize the float32 graph to 8 bit, so that texts keep their neighbours and CPUs agree.

The recipe, "w8a14": weights are signed bytes with a scale for each output, rounded by GPTQ
(`semsearch/conversion/calibration.py`). Activations are 14-bit integers, held as two unsigned 7-bit halves, so that one
product of matrices becomes two 8-bit products:

    x ~ step * (128 * (high - 64) + (low - 64))        high and low in 0 ... 128

- The halves have 7 bits, because CPUs without VNNI add two products in 16 bits: with 8-bit halves these sums could
  overflow, with 7-bit halves they cannot (2 * 128 * 127). So AVX2, AVX-512 and Arm compute the same integers. The float
  sums between the products still differ slightly from CPU to CPU.
- The step is fixed at export, from calibration texts. Dynamic quantization would take it from each batch, and a text
  would embed differently alone and in a batch. There is room for activations HEADROOM times as large as any seen in
  calibration. Values beyond the room are clipped on the negative side; on the positive side only beyond four times
  the room, and until there CPUs without VNNI may differ.
- Neurons with outlier weights are split first (`split_outliers`), because all weights of an output share a scale. It
  is outlier channel splitting (https://arxiv.org/abs/1901.09504). Without it, 1 - cosine of all-MiniLM-L6-v2 to float32
  is 1.3 times as large.
- Word embeddings are bytes with a scale for each row, so that a query reads only the rows of its own tokens.

`python -m bench accuracy` compares accuracy and speed with float32, naive dynamic int8 and MatMulNBits, and the result
with that of an emulated AVX2 CPU.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from flatbuffers import Builder, encode, packer
from flatbuffers.number_types import Int8Flags, Uint32Flags
from flatbuffers.table import Table
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from semsearch.conversion.calibration import Products, calibrate, find_products, round_weights
from semsearch.engine.embedder import TokenIds
from semsearch.engine.quantization import quantize
from semsearch.indexing.models.nodes import DOMAIN, add_constant, add_node, drop_unused, initializers, sort_nodes
from semsearch.indexing.progress import OnProgress, no_progress

HIGH_STEP = 128  # step of the high half, in steps of the low half
ZERO_POINT = 64  # zero point of both halves
LARGEST_ACTIVATION = 8191  # largest integer of 14 bits with a sign
HEADROOM = 2.0  # more room makes coarser steps, which cost accuracy; compare with `python -m bench accuracy`
SMALLEST_TABLE = 1 << 20  # values of a look-up table; smaller ones (positions) stay float32
COPIES = 8  # most neurons that are added to a layer; many more gain little and make the layer wider
ELEMENTWISE = {"FastGelu", "Gelu", "QuickGelu", "Relu", "Sigmoid", "Tanh"}  # each output depends on one neuron alone
ROOT_VERSION, ROOT_MODEL, ROOT_TYPES = 0, 1, 3  # numbers of the fields in the root of an .ort file
IDENTIFIER = b"ORTM"
ORT_ALIGNMENT = 8  # bytes


def split_outliers(model: ModelProto, copies: int = COPIES) -> None:
    """Add at most `copies` neurons to each feed-forward layer by splitting others; the graph computes the same."""

    def replace(node: NodeProto, position: int, values: NDArray[np.float32], what: str) -> None:
        name = f"{node.name or node.output[0]}/split_{what}"  # a new name, because layers may share their weights
        node.input[position] = add_constant(model, name, values)

    for up, bias, down in list(_feed_forward_layers(model)):
        tensors = initializers(model)  # an earlier layer can have replaced some
        outgoing = numpy_helper.to_array(tensors[down.input[1]])
        counts = count_copies(outgoing, copies)
        neurons = np.repeat(np.arange(len(outgoing)), counts)
        replace(down, 1, (outgoing / counts[:, np.newaxis]).astype(np.float32)[neurons], "inputs")
        replace(up, 1, numpy_helper.to_array(tensors[up.input[1]])[:, neurons], "outputs")
        if bias is not None:
            position = 1
            if bias.input[0] in tensors:
                position = 0
            replace(bias, position, numpy_helper.to_array(tensors[bias.input[position]])[neurons], "bias")


def count_copies(weights: NDArray[np.float32], copies: int) -> NDArray[np.int64]:
    """Return how many copies of each input make the largest weights of the outputs smallest, (inputs,) int64.

    weights is (inputs, outputs) float32. Each input has at least 1 copy. `copies` more are distributed, or fewer if a
    further copy makes no largest weight smaller. One at a time goes to the input where it reduces the sum of the
    squares of the outputs' largest weights most; rounding noise is proportional to that sum.
    """
    inputs = len(weights)
    counts = np.ones(inputs, np.int64)
    if inputs < 2:
        return counts
    magnitudes = np.abs(weights).astype(np.float64)
    shares = magnitudes.copy()
    for _ in range(copies):
        owners = shares.argmax(axis=0)
        second, largest = np.partition(shares, -2, axis=0)[-2:]
        after = np.maximum(second, largest * counts[owners] / (counts[owners] + 1))
        gains = np.bincount(owners, largest**2 - after**2, minlength=inputs)
        best = int(gains.argmax())
        if gains[best] <= 0:
            break
        counts[best] += 1
        shares[best] = magnitudes[best] / counts[best]
    return counts


def _feed_forward_layers(model: ModelProto) -> Iterator[tuple[NodeProto, NodeProto | None, NodeProto]]:
    """Yield each product, its bias if it has one, and the only product that reads their activation."""
    graph = model.graph
    constants = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    reads = Counter([*(value.name for value in graph.output), *(name for node in graph.node for name in node.input)])

    def maker(name: str, *kinds: str) -> NodeProto | None:
        """Return the node that makes a value if the node has one of these kinds and the value one reader, else None."""
        node: NodeProto | None = makers.get(name)
        if node is not None and node.op_type in kinds and reads[name] == 1:
            return node
        return None

    def is_product(node: NodeProto | None) -> bool:
        return node is not None and node.op_type == "MatMul" and constants.get(node.input[1]) == 2

    for down in graph.node:
        if not is_product(down):
            continue
        activation = maker(down.input[0], *ELEMENTWISE)
        if activation is None or len(activation.input) != 1:
            continue
        bias = maker(activation.input[0], "Add")
        summand = activation.input[0]
        if bias is not None:
            vectors = [constants.get(name) == 1 for name in bias.input]
            if sum(vectors) != 1:
                continue
            summand = bias.input[vectors.index(False)]
        up = maker(summand, "MatMul")
        if up is not None and is_product(up):
            yield up, bias, down


def quantize_graph(
    model: ModelProto, calibration: Sequence[TokenIds], on_progress: OnProgress = no_progress
) -> ModelProto:
    """Return the 8-bit graph of a float32 graph as `export_graph` makes it; its inputs and its output are the same.

    The activations of the calibration texts set the steps. A few hundred texts are needed, with more tokens than the
    widest layer has inputs.
    """
    quantized = ModelProto()
    quantized.CopyFrom(model)
    split_outliers(quantized)
    drop_unused(quantized)  # ONNX Runtime would warn of each unused weight
    groups = find_products(quantized)
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


def sort_operators(content: bytes) -> bytes:
    """Return the content of an .ort file with its table of operators sorted by name.

    The file is a FlatBuffer whose root names a version, the model and a table of the operators' types. ONNX Runtime
    1.31 writes that table from a hash map, in an order that differs from run to run. Here the table is read and written
    again; the bytes of the model stay as they are.
    Source: onnxruntime/core/flatbuffers/schema/ort.fbs, and https://flatbuffers.dev/internals
    """
    root = Table(content, encode.Get(packer.uoffset, content, 0))
    model = Table(content, _target(root, ROOT_MODEL))
    # where the bytes of the model and of its parts begin
    begin = min(model.Pos, model.Pos - encode.Get(packer.soffset, content, model.Pos))
    builder = Builder(0)  # it writes from the end to the beginning: the model's bytes are at the end already
    builder.Bytes, builder.head, builder.minalign = bytearray(content[begin:]), 0, ORT_ALIGNMENT
    types = _write(
        builder, [_copy(builder, each, True) for each in _by_name(Table(content, _target(root, ROOT_TYPES)), 0)]
    )
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, types, 0)
    types = builder.EndObject()
    builder.StartObject(ROOT_TYPES + 1)
    builder.PrependUOffsetTRelativeSlot(ROOT_VERSION, len(content) - _target(root, ROOT_VERSION), 0)
    builder.PrependUOffsetTRelativeSlot(ROOT_MODEL, len(content) - model.Pos, 0)
    builder.PrependUOffsetTRelativeSlot(ROOT_TYPES, types, 0)
    builder.Finish(builder.EndObject(), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def _target(table: Table, field: int) -> int:
    return int(table.Indirect(table.Pos + table.Offset(4 + 2 * field)))


def _name(table: Table) -> str:
    return bytes(table.String(table.Pos + table.Offset(4))).decode()


def _tables(table: Table, field: int) -> list[Table]:
    offset = table.Offset(4 + 2 * field)
    begin = table.Vector(offset)
    return [Table(table.Bytes, table.Indirect(begin + 4 * number)) for number in range(table.VectorLen(offset))]


def _by_name(table: Table, field: int) -> list[Table]:
    return sorted(_tables(table, field), key=_name)


def _copy(builder: Builder, named: Table, is_operator: bool) -> int:
    """Write an operator with its types, or a type with the places in the operator; return its place from the end."""
    if is_operator:
        parts = [_copy(builder, each, False) for each in _by_name(named, 1)]
    else:
        parts = []
        places = [(each.GetSlot(4, 0, Int8Flags), each.GetSlot(6, 0, Uint32Flags)) for each in _tables(named, 1)]
        for kind, number in sorted(places):  # the kind is input or output
            builder.StartObject(2)
            builder.PrependInt8Slot(0, kind, 0)
            builder.PrependUint32Slot(1, number, 0)
            parts.append(builder.EndObject())
    vector, name = _write(builder, parts), builder.CreateString(_name(named))
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(1, vector, 0)
    return int(builder.EndObject())


def _write(builder: Builder, parts: list[int]) -> int:
    """Write a vector of tables; return its place from the end."""
    builder.StartVector(4, len(parts), 4)
    for part in reversed(parts):
        builder.PrependUOffsetTRelative(part)
    return int(builder.EndVector())
