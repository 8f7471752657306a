"""Split neurons with outlier weights into copies: the graph computes the same, and 8 bit loses less.

All weights of one output share a scale, which the largest weight sets. In the feed-forward layers of a BERT, a few
weights are so much larger than the others that the others lose most of their digits. A neuron can be replaced by n
copies, each with an n-th of its outgoing weights: their sum is the same, and the largest weight is an n-th.

This is outlier channel splitting (Zhao et al., https://arxiv.org/abs/1901.09504). It is done between two products of
matrices only, where a copy is one more column of the first matrix and one more row of the second.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, numpy_helper

from export.model.onnx_helpers import add_constant, initializers

COPIES = 8  # most neurons that are added to a layer; many more gain little and make the layer wider
ACTIVATIONS = {"FastGelu", "Gelu", "QuickGelu", "Relu", "Sigmoid", "Tanh"}  # each output depends on one neuron alone


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
            position = 0 if bias.input[0] in tensors else 1
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
        node = makers.get(name)
        return node if node is not None and node.op_type in kinds and reads[name] == 1 else None

    def is_product(node: NodeProto | None) -> bool:
        return node is not None and node.op_type == "MatMul" and constants.get(node.input[1]) == 2

    for down in graph.node:
        activation = maker(down.input[0], *ACTIVATIONS) if is_product(down) else None
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
