"""Splitting neurons leaves what a graph computes as it was, and spreads the weights that would drown the others."""

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from semsearch.conversion.calibration import round_weights
from semsearch.conversion.quantize import COPIES, count_copies, quantize_graph, split_outliers
from semsearch.engine.embedder import TokenIds

INPUTS, NEURONS, OUTPUTS = 12, 40, 6


def weights(*shape: int, seed: int = 3) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def with_outlier(neuron: int = 7, output: int = 2, size: float = 60.0) -> NDArray[np.float32]:
    outgoing = weights(NEURONS, OUTPUTS, seed=4)
    outgoing[neuron, output] = size
    return outgoing


def node(kind: str, *names: str, domain: str = "") -> Any:
    """Return a node; the last of the names is its output."""
    return helper.make_node(kind, names[:-1], names[-1:], domain=domain)


def graph(nodes: list[Any], outputs: dict[str, int], **tensors: NDArray[np.float32]) -> ModelProto:
    made = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["tokens", INPUTS])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["tokens", width]) for name, width in outputs.items()],
        [numpy_helper.from_array(values, name) for name, values in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=opsets, ir_version=8)


def feed_forward(activation: str = "Relu", bias_first: bool = False, bias: bool = True) -> ModelProto:
    names = ["b", "xu"] if bias_first else ["xu", "b"]
    domain = "com.microsoft" if activation in ("Gelu", "FastGelu", "QuickGelu") else ""
    nodes = [
        node("MatMul", "x", "u", "xu"),
        *([node("Add", *names, "hidden")] if bias else []),
        node(activation, "hidden" if bias else "xu", "bent", domain=domain),
        node("MatMul", "bent", "d", "y"),
    ]
    tensors = {"u": weights(INPUTS, NEURONS), "d": with_outlier()}
    return graph(nodes, {"y": OUTPUTS}, **tensors, **({"b": weights(NEURONS, seed=5)} if bias else {}))


def run(model: ModelProto, x: NDArray[np.float32]) -> list[NDArray[Any]]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": x}))


def assert_computes_the_same_when_split(model: ModelProto, tolerance: float) -> None:
    x = weights(30, INPUTS, seed=6)
    (before,) = run(model, x)
    split_outliers(model)
    (after,) = run(model, x)
    np.testing.assert_allclose(after, before, atol=tolerance * np.abs(before).max())


def read(model: ModelProto, output: str, position: int) -> NDArray[Any]:
    """Return the constant that the node with this output reads."""
    (node,) = (node for node in model.graph.node if output in node.output)
    (tensor,) = (tensor for tensor in model.graph.initializer if tensor.name == node.input[position])
    return numpy_helper.to_array(tensor)


@pytest.mark.parametrize("activation", ["Relu", "Gelu"])
@pytest.mark.parametrize("bias", ["none", "first", "second"])
def test_a_split_layer_computes_the_same(activation: str, bias: str) -> None:
    model = feed_forward(activation, bias_first=bias == "first", bias=bias != "none")
    assert_computes_the_same_when_split(model, 2e-5)
    assert read(model, "xu", 1).shape == (INPUTS, NEURONS + COPIES)
    assert read(model, "y", 1).shape == (NEURONS + COPIES, OUTPUTS)


def test_in_8_bit_the_other_weights_of_that_output_are_no_longer_rounded_away() -> None:
    random = np.random.default_rng(8)
    x = np.maximum(random.standard_normal((500, NEURONS)), 0)
    outgoing = with_outlier()
    counts = count_copies(outgoing, COPIES)
    wide, shares = np.repeat(x, counts, axis=1), np.repeat(outgoing / counts[:, np.newaxis], counts, axis=0)

    def error(inputs: NDArray[Any], values: NDArray[Any]) -> float:
        codes, scales = round_weights(values.astype(np.float32), inputs.T @ inputs)
        return float(np.linalg.norm(inputs @ (codes * scales) - x @ outgoing))

    assert error(wide, shares) < 0.25 * error(x, outgoing)


def test_neurons_that_something_else_reads_are_left_alone() -> None:
    model = feed_forward()
    model.graph.node.append(node("Identity", "bent", "z"))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    before = model.SerializeToString(deterministic=True)
    split_outliers(model)
    assert model.SerializeToString(deterministic=True) == before


def test_layers_that_share_their_weights_stay_layers_of_the_same_function() -> None:
    nodes = []
    for number, (first, last) in enumerate([("x", "middle"), ("middle", "y")]):
        nodes += [
            node("MatMul", first, "u", f"xu{number}"),
            node("Add", f"xu{number}", "b", f"hidden{number}"),
            node("Relu", f"hidden{number}", f"bent{number}"),
            node("MatMul", f"bent{number}", "d", last),
        ]
    outgoing = weights(NEURONS, INPUTS, seed=4)
    outgoing[3, 5] = 40
    model = graph(nodes, {"y": INPUTS}, u=weights(INPUTS, NEURONS), b=weights(NEURONS, seed=5), d=outgoing)
    assert_computes_the_same_when_split(model, 1e-4)
    assert read(model, "xu0", 1).shape == read(model, "xu1", 1).shape == (INPUTS, NEURONS + COPIES)


def test_the_feed_forward_layers_of_a_bert_are_found(tiny_graph: ModelProto, tiny_tokens: list[TokenIds]) -> None:
    quantized = quantize_graph(tiny_graph, tiny_tokens[:40])
    codes = {
        tensor.name: tuple(tensor.dims) for tensor in quantized.graph.initializer if tensor.name.endswith("/codes")
    }
    intermediate, hidden = 64, 32
    assert sum(shape == (intermediate + COPIES, hidden) for shape in codes.values()) == 2
