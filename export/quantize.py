"""The float32 graph in 8 bit: so close that a text keeps its neighbours, and alike on every CPU.

The recipe, "w8a14": weights are signed bytes with a scale for each output, rounded by GPTQ, which makes up for each
rounding error in the weights not rounded yet. Activations are 14-bit integers held as two unsigned 7-bit halves, so
that a product of matrices is two 8-bit products:

    x ~ step * (128 * (high - 64) + (low - 64))        high and low in 0 ... 128

- 7 bits, because 2 * 128 * 127 fits the 16-bit sums of CPUs without VNNI, where products of full bytes saturate:
  the products are exact on AVX2, AVX-512 and Arm. The sums of floats between them end differently there, which now
  and then tips a rounding: 1 - cosine 9e-7 on AVX2 and 2e-5 on Arm, at most, of 48 headlines.
- The step is fixed at export, from calibration texts. Dynamic quantization takes it from whatever a batch holds;
  here a text embeds the same alone and in a batch. 14 bits leave room for activations HEADROOM times as large as
  any seen. What is larger still is clipped below, and above only at four times that; there CPUs without VNNI may
  differ. The largest of 7,000 headlines, abstracts and odd texts reached 0.7 of the room.
- Neurons with outlier weights are split first (`export/outliers.py`), since an output has one scale for all weights.
- Word embeddings are bytes with a scale a row, so a query reads the rows of its own tokens and no more.

`python -m bench accuracy` and `python -m bench latency` hold this against float32, against naive dynamic int8 and
against MatMulNBits. GPTQ: Frantar et al., https://arxiv.org/abs/2210.17323.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from export.graph import DOMAIN
from export.outliers import split_outliers
from export.source import ModelError
from function.engine.embedder import TokenIds
from function.engine.quantization import quantize

RECIPE = "w8a14"
HIGH_STEP = 128  # in steps of the low half
ZERO_POINT = 64  # of both halves
LARGEST_ACTIVATION = 8191  # 14 bits with a sign
HEADROOM = 2.0  # 4 costs a third of the closeness (1 - cosine 1.9e-4 instead of 1.4e-4)
LARGEST_WEIGHT = 127
DAMPING = 0.01  # of the mean of the Hessian's diagonal, as in the paper
BLOCK = 128  # inputs rounded between two updates of all later weights: a matter of speed alone
TOKENS_PER_UPDATE = 4096  # of the calibration, between two updates of a Hessian: speed alone
SMALLEST_TABLE = 1 << 20  # values; smaller look-up tables (positions) stay float32

Weights = NDArray[np.float32]  # (inputs, outputs)


@dataclass(slots=True)
class Products:
    """The products that read one activation: quantized as one matrix, their outputs split again."""

    activation: str
    nodes: list[NodeProto]
    weights: Weights
    hessian: NDArray[np.float64]  # sum of x x^T over the calibration's tokens, (inputs, inputs)
    largest: float = 0.0  # |x| over the calibration's tokens


def quantize_graph(
    model: ModelProto,
    calibration: Sequence[TokenIds],
    progress: Callable[[float], None] = lambda share: None,
) -> ModelProto:
    """Return the 8-bit graph of a float32 graph as `export_graph` makes it; the inputs and the output stay.

    calibration holds the texts whose activations fix the steps: a few hundred, of more tokens than the widest layer
    has inputs. `progress` is told the share of the work done, 0 to 1.
    Raises ModelError if the graph has no product with constant weights, or if calibration is empty.
    """
    quantized = ModelProto()
    quantized.CopyFrom(model)
    split_outliers(quantized)
    _drop_unused(quantized)  # ONNX Runtime warns of each weight that nothing reads
    groups = _find_products(quantized)
    if not groups or not calibration:
        raise ModelError(
            f"{len(groups)} products and {len(calibration)} calibration texts; expected at least one of each"
        )
    for done, tokens in enumerate(_calibrate(quantized, groups, calibration), 1):
        progress(0.5 * done / tokens)
    for done, products in enumerate(groups, 1):
        _replace_products(quantized, products)
        progress(0.5 + 0.5 * done / len(groups))
    _quantize_tables(quantized)
    _drop_unused(quantized)
    _sort(quantized)
    return quantized


def _initializers(model: ModelProto) -> dict[str, TensorProto]:
    return {tensor.name: tensor for tensor in model.graph.initializer}


def _find_products(model: ModelProto) -> list[Products]:
    tensors = _initializers(model)
    groups: dict[str, list[NodeProto]] = {}
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in tensors and len(tensors[node.input[1]].dims) == 2:
            groups.setdefault(node.input[0], []).append(node)
    found = []
    for activation, nodes in groups.items():
        weights = np.concatenate([numpy_helper.to_array(tensors[node.input[1]]) for node in nodes], axis=1)
        inputs = weights.shape[0]
        found.append(Products(activation, nodes, weights, np.zeros((inputs, inputs))))
    return found


def _calibrate(model: ModelProto, groups: list[Products], calibration: Sequence[TokenIds]) -> Iterable[int]:
    """Fill in the groups' hessian and largest, text by text; yields the number of texts after each."""
    watched = ModelProto()
    watched.CopyFrom(model)
    watched.graph.output.extend(
        helper.make_tensor_value_info(one.activation, TensorProto.FLOAT, None) for one in groups
    )
    session = ort.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.activation for one in groups]
    waiting: list[list[Weights]] = [[] for _ in groups]  # tokens not yet in a hessian: large products are fast ones
    for done, tokens in enumerate(calibration, 1):
        input_ids = np.array([tokens.ids], np.int64)
        feed = {"input_ids": input_ids, "attention_mask": np.ones_like(input_ids)}
        is_last = done == len(calibration)
        for products, rows, activation in zip(groups, waiting, session.run(names, feed), strict=True):
            rows.append(activation.reshape(-1, activation.shape[-1]))
            if is_last or sum(map(len, rows)) >= TOKENS_PER_UPDATE:
                seen = np.concatenate(rows)
                products.hessian += seen.T @ seen
                products.largest = max(products.largest, float(np.abs(seen).max()))
                rows.clear()
        yield len(calibration)


def round_weights(weights: Weights, hessian: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the weights as signed bytes and a scale for each output, so that the products change least (GPTQ).

    weights is (inputs, outputs) float32, hessian (inputs, inputs) float64; the result is (inputs, outputs) int8 and
    (outputs,) float32.
    """
    rest = weights.astype(np.float64)
    inputs = len(rest)
    scales = np.abs(rest).max(axis=0) / LARGEST_WEIGHT
    scales[scales == 0] = 1.0
    damped = hessian + np.eye(inputs) * (DAMPING * np.diag(hessian).mean() + np.finfo(np.float64).tiny)
    factor = np.linalg.cholesky(np.linalg.inv(damped)).T  # upper: row i says how input i's error is made up for
    codes = np.empty(rest.shape, np.int8)
    for begin in range(0, inputs, BLOCK):
        end = min(begin + BLOCK, inputs)
        errors = np.empty((end - begin, rest.shape[1]))
        for i in range(begin, end):
            code = np.rint(rest[i] / scales).clip(-LARGEST_WEIGHT, LARGEST_WEIGHT)
            codes[i] = code
            errors[i - begin] = (rest[i] - code * scales) / factor[i, i]
            rest[i + 1 : end] -= np.outer(factor[i, i + 1 : end], errors[i - begin])
        rest[end:] -= factor[begin:end, end:].T @ errors
    return codes, scales.astype(np.float32)


def _replace_products(model: ModelProto, products: Products) -> None:
    """Put two 8-bit products and their sum in the place of the group's float32 products."""
    graph = model.graph
    name = products.activation
    codes, scales = round_weights(products.weights, products.hessian)
    step = np.float32(max(products.largest, 1e-6) * HEADROOM / LARGEST_ACTIVATION)

    def constant(suffix: str, values: NDArray[np.generic] | np.generic) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(values), f"{name}/{suffix}"))
        return f"{name}/{suffix}"

    def node(op: str, inputs: list[str], output: str, domain: str = "") -> str:
        graph.node.append(helper.make_node(op, inputs, [output], name=output, domain=domain))
        return output

    low_step, high_step = constant("low_step", step), constant("high_step", step * np.float32(HIGH_STEP))
    zero, weight_zero = constant("zero", np.uint8(ZERO_POINT)), constant("weight_zero", np.int8(0))
    weight, weight_scale = constant("codes", codes), constant("scales", scales)

    high = node("QuantizeLinear", [name, high_step, zero], f"{name}/high")
    seen = node("DequantizeLinear", [high, high_step, zero], f"{name}/seen")
    low = node("QuantizeLinear", [node("Sub", [name, seen], f"{name}/rest"), low_step, zero], f"{name}/low")

    only = products.nodes[0] if len(products.nodes) == 1 else None
    bias = _take_bias(model, only) if only is not None else None
    inputs = [weight, weight_scale, zero, weight_zero]
    high_product = node(
        "MatMulIntegerToFloat",
        [high, weight, high_step, *inputs[1:], *([bias[0]] if bias else [])],
        f"{name}/high_product",
        DOMAIN,
    )
    low_product = node("MatMulIntegerToFloat", [low, weight, low_step, *inputs[1:]], f"{name}/low_product", DOMAIN)
    if only is not None:
        node("Add", [high_product, low_product], bias[1] if bias else only.output[0])
    else:
        both = node("Add", [high_product, low_product], f"{name}/products")
        widths = np.array([_width(model, one) for one in products.nodes], np.int64)
        outputs = [one.output[0] for one in products.nodes]
        graph.node.append(helper.make_node("Split", [both, constant("widths", widths)], outputs, axis=-1))
    for one in products.nodes:
        graph.node.remove(one)


def _width(model: ModelProto, product: NodeProto) -> int:
    return int(_initializers(model)[product.input[1]].dims[1])


def _take_bias(model: ModelProto, product: NodeProto) -> tuple[str, str] | None:
    """Return the bias that is added to the product and the name of the sum, and remove that addition."""
    readers = [node for node in model.graph.node if product.output[0] in node.input]
    if len(readers) != 1 or readers[0].op_type != "Add":
        return None
    (other,) = (name for name in readers[0].input if name != product.output[0])
    tensor = _initializers(model).get(other)
    if tensor is None or len(tensor.dims) != 1:
        return None
    total = readers[0].output[0]
    model.graph.node.remove(readers[0])
    return other, total


def _quantize_tables(model: ModelProto) -> None:
    """Store large look-up tables as bytes with a scale a row."""
    graph = model.graph
    tensors = _initializers(model)
    for node in [one for one in graph.node if one.op_type == "Gather" and one.input[0] in tensors]:
        table = numpy_helper.to_array(tensors[node.input[0]])
        if table.ndim != 2 or table.size < SMALLEST_TABLE or table.dtype != np.float32:
            continue
        name, rows = node.input[0], node.input[1]
        codes, scales = quantize(table)
        graph.initializer.append(numpy_helper.from_array(codes, f"{name}/codes"))
        graph.initializer.append(numpy_helper.from_array(scales[:, np.newaxis], f"{name}/scales"))
        parts = [f"{name}/row_codes", f"{name}/row_scales", f"{name}/row_values"]
        graph.node.append(helper.make_node("Gather", [f"{name}/codes", rows], parts[:1], parts[0]))
        graph.node.append(helper.make_node("Gather", [f"{name}/scales", rows], parts[1:2], parts[1]))
        graph.node.append(helper.make_node("Cast", parts[:1], parts[2:], parts[2], to=TensorProto.FLOAT))
        graph.node.append(helper.make_node("Mul", [parts[2], parts[1]], node.output, node.name))
        graph.node.remove(node)


def _drop_unused(model: ModelProto) -> None:
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [one for one in model.graph.initializer if one.name not in read]:
        model.graph.initializer.remove(tensor)


def _sort(model: ModelProto) -> None:
    """Bring the nodes into an order in which each comes after what it reads."""
    graph = model.graph
    known = {value.name for value in graph.input} | set(_initializers(model)) | {""}
    waiting, ordered = list(graph.node), []
    while waiting:
        ready = [node for node in waiting if known.issuperset(node.input)]
        if not ready:
            raise ModelError(f"{waiting[0].op_type} {waiting[0].name}: reads what no node makes")
        ordered += ready
        known.update(name for node in ready for name in node.output)
        waiting = [node for node in waiting if not known.issuperset(node.output)]
    del graph.node[:]
    graph.node.extend(ordered)


def save_ort(model: ModelProto, path: Path) -> None:
    """Write the graph in ONNX Runtime's own format, which is mapped instead of parsed when it is opened.

    Raises OSError if the file cannot be written, because the disk is full for example.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC  # the same on every CPU
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has no type of its own for what the disk refuses
        if "Failed to save ORT format model" not in str(error):
            raise
        raise OSError(f"{path}: ONNX Runtime cannot write the model") from error
