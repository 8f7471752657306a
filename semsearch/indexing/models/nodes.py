"""Change the nodes of an ONNX graph, without PyTorch: for the conversion and for the graph that runs in browsers."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"  # domain of ONNX Runtime's own operators


def initializers(model: ModelProto) -> dict[str, TensorProto]:
    """Return the graph's constant tensors by name."""
    return {tensor.name: tensor for tensor in model.graph.initializer}


def add_constant(model: ModelProto, name: str, values: NDArray[np.generic] | np.generic) -> str:
    """Add a constant tensor to the graph and return its name."""
    model.graph.initializer.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
    return name


def add_node(
    model: ModelProto,
    operator: str,
    inputs: list[str],
    output: str,
    domain: str = "",
    attributes: Mapping[str, int | float] | None = None,
) -> str:
    """Add a node, named like its one output, at the end of the graph; return the output's name."""
    node = helper.make_node(operator, inputs, [output], name=output, domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in (attributes or {}).items())
    model.graph.node.append(node)
    return output


def drop_unused(model: ModelProto) -> None:
    """Remove the constants that no node reads."""
    read = {name for node in model.graph.node for name in node.input}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name not in read]:
        model.graph.initializer.remove(tensor)


def sort_nodes(model: ModelProto) -> None:
    """Sort the nodes so that each one follows the nodes whose outputs it reads."""
    graph = model.graph
    known = {value.name for value in graph.input} | set(initializers(model)) | {""}
    waiting, ordered = list(graph.node), []
    while waiting:
        ready = [node for node in waiting if known.issuperset(node.input)]
        ordered += ready
        known.update(name for node in ready for name in node.output)
        waiting = [node for node in waiting if not known.issuperset(node.output)]
    del graph.node[:]
    graph.node.extend(ordered)
